package proxy

import (
	"encoding/json"
	"net/http"
)

// status is an error as an API server would tell it.
type status struct {
	Kind       string         `json:"kind"`
	APIVersion string         `json:"apiVersion"`
	Metadata   struct{}       `json:"metadata"`
	Status     string         `json:"status"`
	Message    string         `json:"message"`
	Reason     string         `json:"reason"`
	Details    *statusDetails `json:"details,omitempty"`
	Code       int            `json:"code"`
}

type statusDetails struct {
	RetryAfterSeconds int `json:"retryAfterSeconds,omitempty"`
}

func newStatus(code int, reason, message string) *status {
	s := &status{Kind: "Status", APIVersion: "v1", Status: "Failure", Message: message, Reason: reason, Code: code}
	if code == http.StatusServiceUnavailable {
		s.Details = &statusDetails{RetryAfterSeconds: 1}
	}
	return s
}

func badRequest(message string) *status {
	return newStatus(http.StatusBadRequest, "BadRequest", message)
}

// notFound is what an API server says of a group that it doesn't serve.
func notFound() *status {
	return newStatus(http.StatusNotFound, "NotFound", "the server could not find the requested resource")
}

func unsupported(message string) *status {
	return newStatus(http.StatusUnsupportedMediaType, "UnsupportedMediaType", message)
}

func (s *status) write(w http.ResponseWriter) {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(s.Code)
	_, _ = w.Write(append(raw, '\n')) // a client that left needs no answer
}
