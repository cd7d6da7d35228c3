// Package server answers the console: the program for the browser, lists from the shared world, details read with the rights of whoever asks, and
// streams of changes.
//
// Every answer is bounded, and so is what one person and all of them may ask for at a time. Texts of others are cleaned before they are sent; the
// browser shows them as text and nothing else.
package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/version"
)

// Bounds of what is asked and answered.
const (
	maxBody   = 64 << 10
	maxAnswer = 4 << 20
	maxURL    = 4 << 10
	maxHeader = 32 << 10
	// detailTime bounds a page that is read from the API server; see places for how many are.
	detailTime = 25 * time.Second
	// answerTime is how long an answer may take until its reader has it, from when it was asked for.
	answerTime = time.Minute
)

// Server answers. World, Gate, Log and Clock are required.
type Server struct {
	World *world.World
	Gate  access.Gate
	Log   logr.Logger
	Clock clock.PassiveClock
	// Hosts are what the Host header may say, such as 127.0.0.1:8080; nil: anything. Without it a page of a stranger whose name resolves to a loopback
	// address could ask.
	Hosts []string
	// Where says which management cluster it is, for people.
	Where string
	// OperatorNamespace and PackageOperatorNamespace; empty: the default ones.
	OperatorNamespace, PackageOperatorNamespace string
	// OnTicket is called when a ticket was used, so that there is another one for the next tab; nil: nobody wants to know.
	OnTicket func()

	epoch  string
	limits *limits
	places *places
	sweeps *sweeps
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	srv := s.http(ctx)
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the console: %w", err)
	}
	return nil
}

// http is the server with all its limits. Streams move their own deadline with each message.
func (s *Server) http(ctx context.Context) *http.Server {
	return &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: answerTime, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return ctx }}
}

// Handler is all of it. Call it once.
func (s *Server) Handler() http.Handler {
	s.epoch, s.limits, s.places = rand.Text()[:8], newLimits(s.Clock), newPlaces()
	s.sweeps = &sweeps{of: map[string]*sweep{}}
	mux := http.NewServeMux()
	api := func(pattern string, h func(*request) (any, error)) { mux.Handle("GET /api/v1/"+pattern, s.api(h)) }
	api("me", s.me)
	api("fleet", s.fleet)
	api("hc/{ns}/{name}", s.cluster)
	api("hc/{ns}/{name}/yaml", s.yaml)
	api("hc/{ns}/{name}/certificates", s.certificates)
	api("certificates", s.ending)
	api("rollouts", s.rollouts)
	api("rollout/{name}", s.rollout)
	api("packages", s.packages)
	api("pkg/{ns}/{name}", s.pkg)
	api("events", s.events)
	api("about", s.about)
	mux.Handle("POST /api/v1/rollout/{name}", s.api(s.changeRollout))
	mux.Handle("GET /api/v1/events/stream", s.guard(s.eventStream))
	mux.Handle("GET /api/v1/stream", s.guard(s.stream))
	mux.HandleFunc("POST /api/v1/session", s.session)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.World.Synced() {
			http.Error(w, "lists are not complete yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /api/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "there is no such page of the API")
	}))
	mux.Handle("GET /", static())
	return s.outer(mux)
}

// policy is what a page of the console may do: nothing but its own program, its own style and requests to where it came from.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// outer is around everything: what browsers are told, and which requests are none of ours.
func (s *Server) outer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for k, v := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
			"Permissions-Policy": "camera=(), geolocation=(), microphone=()"} {
			h.Set(k, v)
		}
		switch {
		case s.Hosts != nil && !slices.Contains(s.Hosts, r.Host):
			fail(w, http.StatusMisdirectedRequest, "this console answers to "+strings.Join(s.Hosts, " and ")+" only")
		case len(r.URL.RequestURI()) > maxURL:
			fail(w, http.StatusRequestURITooLong, "the address is too long")
		case r.Header.Get("Origin") != "" && !sameOrigin(r):
			fail(w, http.StatusForbidden, "requests of other sites are refused")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			next.ServeHTTP(w, r)
		}
	})
}

func sameOrigin(r *http.Request) bool {
	_, host, _ := strings.Cut(r.Header.Get("Origin"), "://")
	return host == r.Host
}

// request is one of somebody known.
type request struct {
	*http.Request
	viewer *access.Viewer
}

// guard lets requests of known people through, as often as they may, and writes down who asked for what.
func (s *Server) guard(next func(http.ResponseWriter, *request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		viewer, err := s.Gate.Viewer(r)
		log := s.Log.WithValues("path", r.URL.Path)
		switch {
		case errors.Is(err, access.ErrNobody):
			if s.limits.allow("nobody") { // so that nobody fills the log
				log.Info("refused a request without a valid token")
			}
			w.Header().Set("WWW-Authenticate", "Bearer")
			fail(w, http.StatusUnauthorized, err.Error())
			return
		case errors.Is(err, access.ErrTooMany):
			if s.limits.allow("nobody") {
				log.Info("refused a request: too many unknown tokens come from there", "from", r.RemoteAddr)
			}
			w.Header().Set("Retry-After", "1")
			fail(w, http.StatusTooManyRequests, err.Error())
			return
		case err != nil:
			log.Error(err, "could not tell who asks")
			fail(w, http.StatusBadGateway, "the API server could not say who you are; try again")
			return
		}
		if !s.limits.allow(viewer.ID) {
			log.Info("refused a request: too many", "user", viewer.Name)
			w.Header().Set("Retry-After", "1")
			fail(w, http.StatusTooManyRequests, "too many requests: wait a second")
			return
		}
		log.Info("let a request in", "user", viewer.Name, "method", r.Method)
		next(w, &request{r, viewer})
	})
}

// api answers with JSON.
func (s *Server) api(h func(*request) (any, error)) http.Handler {
	return s.guard(func(w http.ResponseWriter, r *request) {
		answer, err := h(r)
		if err != nil {
			code, text := explain(err)
			if code == http.StatusForbidden || code >= http.StatusInternalServerError {
				s.Log.Info("request failed", "path", r.URL.Path, "user", r.viewer.Name, "status", code, "reason", text)
			}
			if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
				w.Header().Set("Retry-After", "1")
			}
			fail(w, code, text)
			return
		}
		raw, err := json.Marshal(answer)
		if err == nil && len(raw) > maxAnswer {
			err = fmt.Errorf("the answer has %d MiB: narrow it down", len(raw)>>20)
		}
		if err != nil {
			fail(w, http.StatusInternalServerError, err.Error())
			return
		}
		send(w, r.Request, raw, "application/json; charset=utf-8")
	})
}

// problem is an error with a status.
type problem struct {
	code int
	text string
}

func (p problem) Error() string { return p.text }

func badRequest(format string, args ...any) error {
	return problem{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// explain is what is said of an error, without more of it than people need.
func explain(err error) (int, string) {
	var p problem
	switch {
	case errors.As(err, &p):
		return p.code, p.text
	case errors.Is(err, access.ErrRefused):
		return http.StatusForbidden, clip.Line(err.Error())
	case apierrors.IsConflict(err):
		return http.StatusConflict, "someone else is changing it: check it again, and repeat"
	case apierrors.IsInvalid(err):
		return http.StatusUnprocessableEntity, clip.Line(err.Error())
	case apierrors.IsNotFound(err):
		return http.StatusNotFound, "there is no such object"
	case apierrors.IsForbidden(err):
		return http.StatusForbidden, clip.Line(err.Error())
	case apierrors.IsUnauthorized(err):
		return http.StatusUnauthorized, access.ErrNobody.Error()
	case meta.IsNoMatchError(err):
		return http.StatusNotFound, "this management cluster does not serve that kind: run `hypershift install` first"
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "the API server did not answer in time; try again"
	}
	return http.StatusBadGateway, clip.Line(err.Error())
}

func fail(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // the browser is gone
}

// session gives a token for the ticket that the command printed.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	own, ok := s.Gate.(*access.Own)
	if !ok {
		fail(w, http.StatusNotFound, "this console takes tokens of the management cluster only")
		return
	}
	if !s.limits.allow("session") {
		fail(w, http.StatusTooManyRequests, "too many requests: wait a second")
		return
	}
	var in struct {
		Ticket string `json:"ticket"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		fail(w, http.StatusBadRequest, "the body must be {\"ticket\": \"…\"}")
		return
	}
	token, ok := own.Exchange(in.Ticket)
	if !ok {
		fail(w, http.StatusUnauthorized, "this link was used before, or is not of this console: open the one that the command printed last")
		return
	}
	if s.OnTicket != nil {
		s.OnTicket()
	}
	raw, _ := json.Marshal(map[string]string{"token": token}) // a string: it can't fail
	send(w, r, raw, "application/json; charset=utf-8")
}

// me says who asks, and how tokens are had.
func (s *Server) me(r *request) (any, error) {
	_, own := s.Gate.(*access.Own)
	return map[string]any{"user": r.viewer.Name, "own": own, "where": cmp.Or(s.Where, "management cluster"), "version": version.Semver()}, nil
}
