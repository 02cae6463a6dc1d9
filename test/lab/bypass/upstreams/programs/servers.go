// One protected API in net/http's ServeMux and in the routers that Debian ships for Go; argument: which.
package main

import (
	"net/http"
	"os"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi"
	"github.com/gorilla/mux"
	"github.com/labstack/echo"
)

var hits, _ = os.OpenFile(os.Getenv("HITS"), os.O_WRONLY|os.O_APPEND, 0)

func ran() { hits.Write([]byte("x")) }

func paid(w http.ResponseWriter, r *http.Request) { ran(); w.Write([]byte("paid for")) }
func free(w http.ResponseWriter, r *http.Request) { w.Write([]byte("free")) }

func serveMux() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("/v1/export", paid)
	m.HandleFunc("/v1/reports/open", free)
	m.HandleFunc("/v1/files/public", free)
	m.HandleFunc("/v1/reports/", func(w http.ResponseWriter, r *http.Request) {
		id := strings.TrimPrefix(r.URL.Path, "/v1/reports/")
		if id != "" && !strings.Contains(id, "/") {
			paid(w, r)
		}
	})
	m.HandleFunc("/v1/files/", paid)
	m.HandleFunc("/v1/teams/", func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.URL.Path, "/")
		if len(parts) == 6 && parts[3] != "" && parts[4] == "jobs" && parts[5] != "" {
			paid(w, r)
		}
	})
	m.HandleFunc("/v1/Kiss/Data", paid)
	m.HandleFunc("/v1/my report", paid)
	m.HandleFunc("/free/", free)
	return m
}

// Compares without regard to letter case, as Go code does it.
func equalFold() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.Path
		is := func(text string) bool { return strings.EqualFold(p, text) || strings.ToLower(p) == strings.ToLower(text) }
		below := func(prefix string) bool { return strings.HasPrefix(strings.ToLower(p), prefix) }
		switch {
		case is("/v1/reports/open"), is("/v1/files/public"):
			free(w, r)
		case is("/v1/export"), is("/v1/Kiss/Data"), is("/v1/my report"), below("/v1/files/"):
			paid(w, r)
		case below("/v1/reports/") && strings.Count(p, "/") == 3 && len(p) > len("/v1/reports/"):
			paid(w, r)
		}
	})
}

func withGin(loose bool) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.RemoveExtraSlash = loose
	g.UseRawPath = loose
	g.RedirectFixedPath = loose
	on := func(run http.HandlerFunc) gin.HandlerFunc { return func(c *gin.Context) { run(c.Writer, c.Request) } }
	g.GET("/v1/reports/open", on(free))
	g.GET("/v1/export", on(paid))
	g.GET("/v1/reports/:id", on(paid))
	g.GET("/v1/files/*rest", func(c *gin.Context) {
		if c.Param("rest") != "/public" {
			paid(c.Writer, c.Request)
		}
	})
	g.POST("/v1/teams/:team/jobs/:job", on(paid))
	g.GET("/v1/Kiss/Data", on(paid))
	g.GET("/v1/my report", on(paid))
	g.Any("/free/*rest", on(free))
	return g
}

func withChi() http.Handler {
	c := chi.NewRouter()
	c.Get("/v1/reports/open", free)
	c.Get("/v1/files/public", free)
	c.Get("/v1/export", paid)
	c.Get("/v1/reports/{id}", paid)
	c.Get("/v1/files/*", paid)
	c.Post("/v1/teams/{team}/jobs/{job}", paid)
	c.Get("/v1/Kiss/Data", paid)
	c.Get("/v1/my report", paid)
	c.HandleFunc("/free/*", free)
	return c
}

func withMux(loose bool) http.Handler {
	m := mux.NewRouter().SkipClean(loose).StrictSlash(loose)
	m.HandleFunc("/v1/reports/open", free).Methods("GET")
	m.HandleFunc("/v1/files/public", free).Methods("GET")
	m.HandleFunc("/v1/export", paid).Methods("GET")
	m.HandleFunc("/v1/reports/{id}", paid).Methods("GET")
	m.PathPrefix("/v1/files/").HandlerFunc(paid).Methods("GET")
	m.HandleFunc("/v1/teams/{team}/jobs/{job}", paid).Methods("POST")
	m.HandleFunc("/v1/Kiss/Data", paid).Methods("GET")
	m.HandleFunc("/v1/my report", paid).Methods("GET")
	m.PathPrefix("/free/").HandlerFunc(free)
	return m
}

func withEcho() http.Handler {
	e := echo.New()
	on := func(run http.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { run(c.Response(), c.Request()); return nil }
	}
	e.GET("/v1/reports/open", on(free))
	e.GET("/v1/files/public", on(free))
	e.GET("/v1/export", on(paid))
	e.GET("/v1/reports/:id", on(paid))
	e.GET("/v1/files/*", on(paid))
	e.POST("/v1/teams/:team/jobs/:job", on(paid))
	e.GET("/v1/Kiss/Data", on(paid))
	e.GET("/v1/my report", on(paid))
	e.Any("/free/*", on(free))
	return e
}

func main() {
	handler := map[string]func() http.Handler{
		"mux": serveMux, "fold": equalFold, "gin": func() http.Handler { return withGin(false) }, "gin-loose": func() http.Handler { return withGin(true) }, "chi": withChi,
		"gorilla": func() http.Handler { return withMux(false) }, "gorilla-loose": func() http.Handler { return withMux(true) }, "echo": withEcho,
	}[os.Args[1]]()
	http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), handler)
}
