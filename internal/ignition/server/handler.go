// Package server hands payloads to machines over HTTPS.
//
// Everybody who can reach the endpoint may talk to it, and most of what it guards is in the payload: the kubeconfig with which nodes
// join. So every refusal looks the same, guessing is slowed down per source, and nothing that a stranger sends is kept, logged or
// counted by its content. Machines with a good token never wait for anybody.
package server

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/ignition/tokens"
)

const (
	authorization = "Authorization"
	bearer        = "Bearer "
	// refusal is the body of every answer that holds no payload.
	refusal = "refused\n"
	// maxHeader of an Authorization header: a token of the greatest length in base64, and room.
	maxHeader = len(bearer) + 2*tokens.MaxLength
)

// ignitionPath is what machines ask for. Anything that starts like it is taken, because user data was seen with a slash or a version
// behind it.
var ignitionPath = regexp.MustCompile(`^/ignition[^/ ]*$`)

// Lookup finds the payload of a token.
type Lookup interface {
	Lookup(token []byte, now time.Time) (*tokens.Payload, bool)
}

// Handler answers requests.
type Handler struct {
	Tokens Lookup
	Clock  clock.Clock
	// Limiter slows down who guesses.
	Limiter *Limiter
	// Served is told about each payload that a machine gets. It must not block.
	Served func(p *tokens.Payload)
	// Failed is told about a machine that has a good token and gets no payload. It must not block.
	Failed func(p *tokens.Payload)
	// Metrics may be nil.
	Metrics *Metrics
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if r.URL.Path == "/healthz" {
		header.Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
		return
	}
	if !ignitionPath.MatchString(r.URL.Path) {
		h.refuse(w, r, http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		h.refuse(w, r, http.StatusMethodNotAllowed)
		return
	}
	token, ok := tokenOf(r.Header)
	if !ok {
		h.refuse(w, r, http.StatusUnauthorized)
		return
	}
	payload, ok := h.Tokens.Lookup(token, h.Clock.Now())
	if !ok {
		// With this status Ignition asks again later; with 401 it would give up, and a machine may well be faster than its payload.
		h.refuse(w, r, http.StatusNetworkAuthenticationRequired)
		return
	}
	h.Metrics.request(payload.NodePool)
	if payload.Invalid || len(payload.Data) == 0 {
		if h.Failed != nil {
			h.Failed(payload)
		}
		h.answer(w, http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(payload.Data)))
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(payload.Data); err == nil && h.Served != nil {
		h.Served(payload)
	}
}

// refuse answers a stranger, after a while if they ask too often. The wait costs us a timer, and them one of the connections that
// they may have.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int) {
	h.Metrics.refused(status)
	if wait := h.Limiter.Wait(sourceOf(r.RemoteAddr), h.Clock.Now()); wait > 0 {
		h.Metrics.slowed()
		select {
		case <-h.Clock.After(wait):
		case <-r.Context().Done():
			return
		}
	}
	h.answer(w, status)
}

func (h *Handler) answer(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(refusal)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(refusal))
}

// tokenOf reads the only Authorization header.
func tokenOf(header http.Header) ([]byte, bool) {
	values := header.Values(authorization)
	if len(values) != 1 || len(values[0]) > maxHeader {
		return nil, false
	}
	encoded, ok := strings.CutPrefix(values[0], bearer)
	if !ok {
		return nil, false
	}
	token, err := base64.StdEncoding.DecodeString(encoded)
	return token, err == nil
}
