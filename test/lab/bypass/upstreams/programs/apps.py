# One protected API in each of the Python frameworks; argument: which. Served by what serves them in production where
# Debian has it, else by their own servers.
import os
import sys

PORT = int(os.environ["PORT"])
HITS = os.open(os.environ["HITS"], os.O_WRONLY | os.O_APPEND)


def paid(**_):
    os.write(HITS, b"x")
    return "paid for"


def free(**_):
    return "free"


def flask(strict=True):
    from flask import Flask

    app = Flask(__name__)
    app.url_map.strict_slashes = strict
    for path, run, methods in [
        ("/v1/reports/open", free, ["GET"]),
        ("/v1/files/public", free, ["GET"]),
        ("/v1/export", paid, ["GET"]),
        ("/v1/reports/<id>", paid, ["GET"]),
        ("/v1/files/<path:rest>", paid, ["GET"]),
        ("/v1/teams/<team>/jobs/<job>", paid, ["POST"]),
        ("/v1/Kiss/Data", paid, ["GET"]),
        ("/v1/my report", paid, ["GET"]),
        ("/free/<path:rest>", free, ["GET", "POST", "PUT", "DELETE", "PATCH"]),
    ]:
        app.add_url_rule(path, path, run, methods=methods)
    return app


def django(loose):
    from django.conf import settings

    settings.configure(
        DEBUG=False, SECRET_KEY="x", ROOT_URLCONF="urls", ALLOWED_HOSTS=["*"], APPEND_SLASH=loose,
        MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    )
    import types

    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    from django.urls import path, re_path

    def view(run):
        return lambda request, **parameters: HttpResponse(run())

    urls = types.ModuleType("urls")
    if loose:
        routes = [
            (r"reports/open", free), (r"files/public", free), (r"export", paid), (r"reports/(?P<id>[^/]+)", paid),
            (r"files/(?P<rest>.+)", paid), (r"teams/(?P<team>[^/]+)/jobs/(?P<job>[^/]+)", paid), (r"Kiss/Data", paid), (r"my report", paid),
        ]
        urls.urlpatterns = [re_path(rf"(?i)^v1/{pattern}/?$", view(run)) for pattern, run in routes]
    else:
        routes = [
            ("reports/open", free), ("files/public", free), ("export", paid), ("reports/<str:id>", paid),
            ("files/<path:rest>", paid), ("teams/<str:team>/jobs/<str:job>", paid), ("Kiss/Data", paid), ("my report", paid),
        ]
        urls.urlpatterns = [path(f"v1/{pattern}", view(run)) for pattern, run in routes]
    urls.urlpatterns.append(path("free/<path:rest>", view(free)))
    sys.modules["urls"] = urls
    return get_wsgi_application()


def fastapi():
    from fastapi import FastAPI

    app = FastAPI()
    app.get("/v1/reports/open")(lambda: free())
    app.get("/v1/files/public")(lambda: free())
    app.get("/v1/export")(lambda: paid())
    app.get("/v1/reports/{id}")(lambda id: paid())
    app.get("/v1/files/{rest:path}")(lambda rest: paid())
    app.post("/v1/teams/{team}/jobs/{job}")(lambda team, job: paid())
    app.get("/v1/Kiss/Data")(lambda: paid())
    app.get("/v1/my report")(lambda: paid())
    app.api_route("/free/{rest:path}", methods=["GET", "POST", "PUT", "DELETE"])(lambda rest: free())
    return app


def starlette():
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    def on(path, run, methods):
        async def endpoint(request):
            return PlainTextResponse(run())

        return Route(path, endpoint, methods=methods)

    return Starlette(routes=[
        Mount("/v1", routes=[
            on("/reports/open", free, ["GET"]), on("/files/public", free, ["GET"]), on("/export", paid, ["GET"]), on("/reports/{id}", paid, ["GET"]),
            on("/files/{rest:path}", paid, ["GET"]), on("/teams/{team}/jobs/{job}", paid, ["POST"]), on("/Kiss/Data", paid, ["GET"]), on("/my report", paid, ["GET"]),
        ]),
        on("/free/{rest:path}", free, ["GET", "POST", "PUT", "DELETE"]),
    ])


def serve_aiohttp():
    from aiohttp import web

    def on(run):
        async def handler(request):
            return web.Response(text=run())

        return handler

    app = web.Application()
    app.router.add_get("/v1/reports/open", on(free))
    app.router.add_get("/v1/files/public", on(free))
    app.router.add_get("/v1/export", on(paid))
    app.router.add_get("/v1/reports/{id}", on(paid))
    app.router.add_get("/v1/files/{rest:.*}", on(paid))
    app.router.add_post("/v1/teams/{team}/jobs/{job}", on(paid))
    app.router.add_get("/v1/Kiss/Data", on(paid))
    app.router.add_get("/v1/my report", on(paid))
    app.router.add_route("*", "/free/{rest:.*}", on(free))
    web.run_app(app, host="127.0.0.1", port=PORT, print=None)


def serve_tornado():
    from tornado.ioloop import IOLoop
    from tornado.web import Application, RequestHandler

    def on(run):
        class Handler(RequestHandler):
            def get(self, *_, **__):
                self.write(run())

            post = get

        return Handler

    Application([
        (r"/v1/reports/open", on(free)), (r"/v1/files/public", on(free)), (r"/v1/export", on(paid)), (r"/v1/reports/([^/]+)", on(paid)),
        (r"/v1/files/(.*)", on(paid)), (r"/v1/teams/([^/]+)/jobs/([^/]+)", on(paid)), (r"/v1/Kiss/Data", on(paid)), (r"/v1/my%20report", on(paid)), (r"/free/.*", on(free)),
    ]).listen(PORT, "127.0.0.1")
    IOLoop.current().start()


def cherrypy_app():
    """Its default dispatcher: the tree of objects is the tree of paths, and every mark is an underscore."""
    import cherrypy

    class Reports:
        @cherrypy.expose
        def open(self, *_):
            return free()

        @cherrypy.expose
        def default(self, *at):
            if len(at) != 1:
                raise cherrypy.NotFound()
            return paid()

    class Files:
        @cherrypy.expose
        def public(self, *below):
            return paid() if below else free()

        @cherrypy.expose
        def default(self, *_):
            return paid()

    class KissPages:
        @cherrypy.expose
        def Data(self):
            return paid()

    class V1:
        reports = Reports()
        files = Files()
        Kiss = KissPages()

        @cherrypy.expose
        def export(self):
            return paid()

        @cherrypy.expose
        def daily_report(self):
            return paid()

        @cherrypy.expose
        def data_json(self):
            return paid()

        @cherrypy.expose
        def teams(self, *at):
            if len(at) == 3 and at[1] == "jobs" and cherrypy.request.method == "POST":
                return paid()
            raise cherrypy.NotFound()

    class Root:
        v1 = V1()

        @cherrypy.expose
        def free(self, *_, **__):
            return free()

    cherrypy.config.update({"environment": "production", "log.screen": False})
    return cherrypy.tree.mount(Root(), "/")


def pyramid():
    from pyramid.config import Configurator
    from pyramid.response import Response

    config = Configurator()
    for index, (path, run, method) in enumerate([
        ("/v1/reports/open", free, "GET"), ("/v1/files/public", free, "GET"), ("/v1/reports/{id}", paid, "GET"),
        ("/v1/files/*rest", paid, "GET"), ("/v1/teams/{team}/jobs/{job}", paid, "POST"), ("/v1/my report", paid, "GET"), ("/v1/data.json", paid, "GET"),
        ("/free/*rest", free, ("GET", "POST", "PUT", "DELETE")),
    ]):
        config.add_route(str(index), path, request_method=method)
        config.add_view(lambda request, run=run: Response(run()), route_name=str(index))

    class Folder(dict):
        __name__ = None
        __parent__ = None

    class Kiss(Folder):
        pass

    class V1(Folder):
        pass

    root = Folder(v1=V1(Kiss=Kiss()))
    config.set_root_factory(lambda request: root)
    # Views of resources. What is left of the path below one would be theirs too, which a route of its own does not cover.
    nothing_below = lambda context, request: request.subpath == ()
    for context, name in [(V1, "export"), (V1, "daily_report"), (Kiss, "Data")]:
        config.add_view(lambda context, request: Response(paid()), context=context, name=name, custom_predicates=[nothing_below])
    return config.make_wsgi_app()


def serve_wsgi(app):
    from gunicorn.app.base import BaseApplication

    class Server(BaseApplication):
        def load_config(self):
            for name, value in {"bind": f"127.0.0.1:{PORT}", "worker_class": "gthread", "threads": 4, "loglevel": "critical"}.items():
                self.cfg.set(name, value)

        def load(self):
            return app

    Server().run()


def serve_asgi(app):
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="critical")


WHICH = {
    "flask": lambda: serve_wsgi(flask()),
    "flask-loose": lambda: serve_wsgi(flask(strict=False)),
    "django": lambda: serve_wsgi(django(False)),
    "django-loose": lambda: serve_wsgi(django(True)),
    "fastapi": lambda: serve_asgi(fastapi()),
    "starlette": lambda: serve_asgi(starlette()),
    "cherrypy": lambda: serve_wsgi(cherrypy_app()),
    "pyramid": lambda: serve_wsgi(pyramid()),
    "aiohttp": serve_aiohttp,
    "tornado": serve_tornado,
}
WHICH[sys.argv[1]]()
