// Servers and frameworks of other languages, as Debian packages them. Each is skipped by name where its program is not there.
import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import { program, PROGRAMS, type Place, type Program } from './program.ts';
import { isPaid } from './raw.ts';
import type { UpstreamSpec } from '../upstream.ts';

const PYTHON = '/usr/lib/python3/dist-packages';
const file = (name: string): string => path.join(PROGRAMS, name);

const python = (which: string) => (): Program => ({ command: '/usr/bin/python3', args: [file('apps.py'), which] });
const needsPython = (module: string): string[] => ['/usr/bin/python3', `${PYTHON}/${module}/__init__.py`];

const ruby =
  (name: string, ...args: string[]) =>
  (): Program => ({ command: '/usr/bin/ruby', args: [file(name), ...args] });

const php =
  (how: string, ...script: string[]) =>
  ({ port }: Place): Program => ({
    command: 'php',
    args: ['-S', `127.0.0.1:${port}`, ...script],
    env: { HOW: how },
  });

const GO_PACKAGES =
  'golang-go golang-github-gin-gonic-gin-dev golang-github-go-chi-chi-dev golang-github-gorilla-mux-dev golang-github-labstack-echo-dev';
const GOCODE = '/usr/share/gocode/src/github.com';
const needsGo = [
  'go',
  ...['gin-gonic/gin', 'go-chi/chi', 'gorilla/mux', 'labstack/echo'].map((name) => `${GOCODE}/${name}`),
];
/** Compiled by the first that starts; the cache of the compiler makes the others quick. */
const go =
  (which: string) =>
  ({ folder }: Place): Program => ({
    command: '/bin/sh',
    args: ['-c', `go build -o ${folder}/servers ${file('servers.go')} && exec ${folder}/servers ${which}`],
    env: { GO111MODULE: 'off', GOPATH: '/usr/share/gocode', GOCACHE: '/tmp/tollgate-bypass-go' },
  });

/** The routes as locations that hand on to the counter. */
const nginx = ({ folder, port, counter }: Place): Program => ({
  command: 'nginx',
  args: ['-p', folder, '-c', `${folder}/nginx.conf`, '-e', `${folder}/error.log`, '-g', 'daemon off;'],
  files: {
    'nginx.conf': `pid ${folder}/nginx.pid; worker_processes 1; events {}
http { access_log off; client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b; fastcgi_temp_path ${folder}/c; uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
  server { listen 127.0.0.1:${port};
    location / { return 200 "free"; }
    location = /v1/reports/open { return 200 "free"; }
    location = /v1/files/public { return 200 "free"; }
    location = /v1/export { proxy_pass ${counter}/hit; }
    location ~ "^/v1/reports/[^/]+$" { proxy_pass ${counter}; }
    location /v1/files/ { proxy_pass ${counter}/hit/; }
    location ~ "^/v1/teams/[^/]+/jobs/[^/]+$" { proxy_pass ${counter}; }
    location = /v1/Kiss/Data { proxy_pass ${counter}/hit; }
    location = "/v1/my report" { proxy_pass ${counter}/hit; }
  } }`,
  },
});

/** The path becomes a parameter of a query, as in \`try_files $uri /index.php?url=$uri\`. */
const nginxQuery = ({ folder, port, counter }: Place): Program => ({
  ...nginx({ folder, port, counter }),
  files: {
    'nginx.conf': `pid ${folder}/nginx.pid; worker_processes 1; events {}
http { access_log off; client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b; fastcgi_temp_path ${folder}/c; uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
  server { listen 127.0.0.1:${port}; location / { proxy_pass ${counter}/index?url=$uri; } } }`,
  },
});

const APACHE = '/usr/lib/apache2/modules';
const apache =
  (rules: (counter: string) => string) =>
  ({ folder, port, counter }: Place): Program => ({
    command: 'apache2',
    args: ['-d', folder, '-f', `${folder}/apache.conf`, '-DFOREGROUND'],
    files: {
      'apache.conf': `ServerName localhost
Listen 127.0.0.1:${port}
PidFile ${folder}/apache.pid
ErrorLog ${folder}/error.log
LoadModule mpm_event_module ${APACHE}/mod_mpm_event.so
LoadModule authz_core_module ${APACHE}/mod_authz_core.so
LoadModule proxy_module ${APACHE}/mod_proxy.so
LoadModule proxy_http_module ${APACHE}/mod_proxy_http.so
LoadModule rewrite_module ${APACHE}/mod_rewrite.so
DocumentRoot ${folder}
RewriteEngine On
${rules(counter)}
`,
    },
  });

const apacheRules = (counter: string): string => `RewriteRule ^/v1/(reports/open|files/public)$ - [L]
RewriteRule ^/v1/(export|Kiss/Data|my\\ report|reports/[^/]+|files/.*|teams/[^/]+/jobs/[^/]+)$ ${counter}/hit [P]`;
const apacheLoose = (counter: string): string =>
  apacheRules(counter).replaceAll('[L]', '[L,NC]').replaceAll('[P]', '[P,NC]');
const apacheQuery = (counter: string): string => `RewriteRule ^/?(.*)$ ${counter}/index?url=$1 [P,QSA]`;

/** A front controller that takes its route from the query that a rewrite rule made. */
function routedByQuery(req: IncomingMessage): boolean {
  const value = new URL(req.url ?? '/', 'http://counter').searchParams.get('url') ?? '';
  return isPaid(`/${value.replace(/^\/+|[/ ]+$/g, '')}`);
}

const caddy = ({ folder, port, counter }: Place): Program => ({
  command: 'caddy',
  args: ['run', '--config', `${folder}/Caddyfile`, '--adapter', 'caddyfile'],
  env: { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  files: {
    Caddyfile: `{
  admin off
  auto_https off
}
http://:${port} {
  bind 127.0.0.1
  @free path /v1/reports/open /v1/files/public
  handle @free {
    respond "free"
  }
  @paid path /v1/export /v1/files/* /v1/Kiss/Data "/v1/my report"
  handle @paid {
    reverse_proxy ${counter}
  }
  @parametric path_regexp ^/v1/(reports/[^/]+|teams/[^/]+/jobs/[^/]+)$
  handle @parametric {
    reverse_proxy ${counter}
  }
  respond "free"
}
`,
  },
});

const TOMCAT = '/usr/share/tomcat10';
const tomcat = ({ folder, port }: Place): Program => ({
  command: '/bin/sh',
  args: [
    '-c',
    `mkdir -p conf temp work logs webapps/ROOT/WEB-INF && mv server.xml conf/ && cp /etc/tomcat10/web.xml conf/ && mv web.xml webapps/ROOT/WEB-INF/ && mv *.jsp webapps/ROOT/WEB-INF/ && export JRE_HOME=$(dirname $(dirname $(readlink -f /usr/bin/java))) && exec ${TOMCAT}/bin/catalina.sh run`,
  ],
  env: { CATALINA_HOME: TOMCAT, CATALINA_BASE: folder, CATALINA_TMPDIR: `${folder}/temp` },
  files: {
    'server.xml': `<Server port="-1"><Service name="S"><Connector port="${port}" address="127.0.0.1"/><Engine name="E" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine></Service></Server>`,
    'web.xml': `<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
${[
  ['paid', '/v1/export', '/v1/reports/*', '/v1/files/*', '/v1/teams/*', '/v1/Kiss/Data', '/v1/my report'],
  ['free', '/v1/reports/open', '/v1/files/public', '/free/*'],
]
  .map(
    ([name, ...patterns]) =>
      `<servlet><servlet-name>${name}</servlet-name><jsp-file>/WEB-INF/${name}.jsp</jsp-file></servlet><servlet-mapping><servlet-name>${name}</servlet-name>${patterns.map((pattern) => `<url-pattern>${pattern}</url-pattern>`).join('')}</servlet-mapping>`,
  )
  .join('\n')}
</web-app>`,
    'paid.jsp': `<%@ page import="java.nio.file.*" session="false" %><%
String at = request.getServletPath() + (request.getPathInfo() == null ? "" : request.getPathInfo());
if (!at.startsWith("/v1/reports") && !at.startsWith("/v1/teams") || at.matches("/v1/reports/[^/]+") || at.matches("/v1/teams/[^/]+/jobs/[^/]+"))
  Files.write(Path.of(System.getenv("HITS")), "x".getBytes(), StandardOpenOption.APPEND);
%>done`,
    'free.jsp': 'free',
  },
});

/** The routes as conditions that hand on to the counter, and one as a script that is asked for as a file. */
const lighttpd = ({ folder, port, counter }: Place): Program => ({
  command: '/bin/sh',
  args: ['-c', 'mkdir -p v1 && mv data.json v1/ && exec /usr/sbin/lighttpd -D -f lighttpd.conf'],
  files: {
    'data.json': `printf x >> ${folder}/hits; printf 'Content-Type: text/plain\\r\\n\\r\\npaid for'`,
    'lighttpd.conf': `server.document-root = "${folder}"
server.port = ${port}
server.bind = "127.0.0.1"
server.modules = ("mod_proxy", "mod_cgi")
cgi.assign = (".json" => "/bin/sh")
$HTTP["url"] =~ "^/v1/(reports/open|files/public)$" {
} else $HTTP["url"] =~ "^/v1/(export|Kiss/Data|my report|daily_report|reports/[^/]+|files/.*|teams/[^/]+/jobs/[^/]+)$" {
  proxy.server = ("" => (("host" => "127.0.0.1", "port" => ${new URL(counter).port})))
}
`,
  },
});

export const DEBIAN: readonly UpstreamSpec[] = [
  program({ name: 'nginx', profile: 'nginx', needs: ['nginx'], packages: 'nginx', program: nginx }),
  program({
    name: 'nginx, path rewritten into a query',
    needs: ['nginx'],
    packages: 'nginx',
    program: nginxQuery,
    counts: routedByQuery,
  }),
  program({ name: 'Apache, mod_rewrite', needs: ['apache2'], packages: 'apache2', program: apache(apacheRules) }),
  program({
    name: 'Apache, mod_rewrite ignoring case',
    needs: ['apache2'],
    packages: 'apache2',
    program: apache(apacheLoose),
  }),
  program({
    name: 'Apache, path rewritten into a query',
    profile: 'php',
    needs: ['apache2'],
    packages: 'apache2',
    program: apache(apacheQuery),
    counts: routedByQuery,
  }),
  program({ name: 'lighttpd', needs: ['lighttpd'], packages: 'lighttpd', program: lighttpd }),
  program({ name: 'Caddy', profile: 'caddy', needs: ['caddy'], packages: 'caddy', program: caddy }),
  program({
    name: 'PHP, router script, raw target',
    profile: 'php',
    needs: ['php'],
    packages: 'php-cli',
    program: php('raw', file('router.php')),
  }),
  program({
    name: 'PHP, router script, decoded',
    profile: 'php',
    needs: ['php'],
    packages: 'php-cli',
    program: php('decoded', file('router.php')),
  }),
  program({
    name: 'PHP, urldecode',
    profile: 'php',
    needs: ['php'],
    packages: 'php-cli',
    program: php('urldecode', file('router.php')),
  }),
  program({
    name: 'PHP, parse_str',
    profile: 'php',
    needs: ['php'],
    packages: 'php-cli',
    program: php('query', file('router.php')),
  }),
  program({
    name: 'PHP, methods of a controller',
    profile: 'php',
    needs: ['php'],
    packages: 'php-cli',
    program: php('actions', file('router.php')),
  }),
  program({
    name: 'PHP, index.php with PATH_INFO',
    profile: 'php',
    needs: ['php'],
    packages: 'php-cli',
    program: (place) => ({
      ...php('path_info')(place),
      files: { 'index.php': `<?php require '${file('router.php')}';` },
    }),
  }),
  program({
    name: 'Symfony',
    profile: 'php',
    needs: ['php', '/usr/share/php/Symfony/Component/Routing/autoload.php'],
    packages: 'php-cli php-symfony',
    program: php('', file('symfony.php')),
  }),
  program({
    name: 'Laravel',
    profile: 'php',
    needs: ['php', '/usr/share/php/Illuminate/Routing/autoload.php'],
    packages: 'php-cli php-laravel-framework',
    program: php('', file('laravel.php')),
  }),
  program({
    name: 'CherryPy under gunicorn',
    needs: [...needsPython('cherrypy'), 'gunicorn'],
    packages: 'python3-cherrypy3 gunicorn',
    program: python('cherrypy'),
  }),
  program({
    name: 'Pyramid under gunicorn',
    needs: [...needsPython('pyramid'), 'gunicorn'],
    packages: 'python3-pyramid gunicorn',
    program: python('pyramid'),
  }),
  program({
    name: 'Flask under gunicorn',
    profile: 'flask',
    needs: [...needsPython('flask'), 'gunicorn'],
    packages: 'python3-flask gunicorn',
    program: python('flask'),
  }),
  program({
    name: 'Flask, strict_slashes off',
    profile: 'flask',
    needs: [...needsPython('flask'), 'gunicorn'],
    packages: 'python3-flask gunicorn',
    program: python('flask-loose'),
  }),
  program({
    name: 'Django under gunicorn',
    profile: 'django',
    needs: [...needsPython('django'), 'gunicorn'],
    packages: 'python3-django gunicorn',
    program: python('django'),
  }),
  program({
    name: 'Django, (?i) patterns',
    needs: [...needsPython('django'), 'gunicorn'],
    packages: 'python3-django gunicorn',
    program: python('django-loose'),
  }),
  program({
    name: 'FastAPI under uvicorn',
    profile: 'fastapi',
    needs: [...needsPython('fastapi'), ...needsPython('uvicorn')],
    packages: 'python3-fastapi python3-uvicorn',
    program: python('fastapi'),
  }),
  program({
    name: 'Starlette, mounted, under uvicorn',
    profile: 'fastapi',
    needs: [...needsPython('starlette'), ...needsPython('uvicorn')],
    packages: 'python3-starlette python3-uvicorn',
    program: python('starlette'),
  }),
  program({ name: 'aiohttp', needs: needsPython('aiohttp'), packages: 'python3-aiohttp', program: python('aiohttp') }),
  program({ name: 'Tornado', needs: needsPython('tornado'), packages: 'python3-tornado', program: python('tornado') }),
  program({
    name: 'Sinatra under puma',
    profile: 'sinatra',
    needs: ['ruby', 'puma', '/usr/share/doc/ruby-sinatra'],
    packages: 'ruby-sinatra puma',
    program: ruby('sinatra.rb'),
  }),
  program({
    name: 'Sinatra, strict_paths off, MethodOverride',
    profile: 'sinatra',
    needs: ['ruby', 'puma', '/usr/share/doc/ruby-sinatra'],
    packages: 'ruby-sinatra puma',
    program: ruby('sinatra.rb', 'loose'),
  }),
  program({
    name: 'Rails under puma',
    profile: 'rails',
    needs: ['ruby', 'puma', '/usr/share/doc/ruby-railties'],
    packages: 'ruby-railties ruby-actionpack puma',
    program: ruby('rails.rb'),
  }),
  program({
    name: 'Mojolicious',
    needs: ['perl', '/usr/share/perl5/Mojolicious.pm'],
    packages: 'libmojolicious-perl',
    program: () => ({ command: '/usr/bin/perl', args: [file('mojolicious.pl')] }),
  }),
  program({
    name: 'Tomcat 10',
    profile: 'spring',
    needs: [`${TOMCAT}/bin/catalina.sh`],
    packages: 'tomcat10',
    program: tomcat,
  }),
  ...(
    [
      ['Go, ServeMux', 'mux'],
      ['Go, gin', 'gin'],
      ['Go, gin with UseRawPath and RemoveExtraSlash', 'gin-loose'],
      ['Go, chi', 'chi'],
      ['Go, gorilla/mux', 'gorilla'],
      ['Go, gorilla/mux with SkipClean and StrictSlash', 'gorilla-loose'],
      ['Go, Echo', 'echo'],
    ] as const
  ).map(([name, which]) => program({ name, profile: 'go', needs: needsGo, packages: GO_PACKAGES, program: go(which) })),
  program({ name: 'Go, strings.EqualFold', needs: needsGo, packages: GO_PACKAGES, program: go('fold') }),
];
