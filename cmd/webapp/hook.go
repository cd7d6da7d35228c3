package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	hookAddress = ":8443"
	// maxReview is more than the API server takes for an object.
	maxReview = 4 << 20
	// refuseLabel on an object makes the webhook refuse it.
	refuseLabel = "refuse"
	// greetGroup is the group of the aggregated API.
	greetGroup, greetVersion = "greet.example.test", "v1"
)

// hook is what an API server calls in pods: a validating webhook at /validate, which refuses objects with label refuse=yes, and an
// aggregated API of one answer, /apis/greet.example.test/v1/hello. It is an example and believes whoever calls it.
func hook(ctx context.Context, cert, key, host string) error {
	server := &http.Server{Addr: hookAddress, Handler: hookHandler(host), ReadTimeout: slowest, WriteTimeout: slowest, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServeTLS(cert, key) }()
	fmt.Printf("webapp on %s answers an API server at %s\n", host, hookAddress)
	return untilTold(ctx, server, ended)
}

type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID    string `json:"uid"`
	Object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	} `json:"object"`
}

type response struct {
	UID     string  `json:"uid"`
	Allowed bool    `json:"allowed"`
	Status  *status `json:"status,omitempty"`
}

type status struct {
	Message string `json:"message"`
}

func hookHandler(host string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("POST /validate", func(w http.ResponseWriter, r *http.Request) {
		var in review
		if err := json.NewDecoder(io.LimitReader(r.Body, maxReview)).Decode(&in); err != nil || in.Request == nil {
			http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
			return
		}
		out := &response{UID: in.Request.UID, Allowed: in.Request.Object.Metadata.Labels[refuseLabel] != "yes"}
		if !out.Allowed {
			out.Status = &status{Message: "refused by " + host + ", as label " + refuseLabel + " asks"}
		}
		writeJSON(w, review{APIVersion: in.APIVersion, Kind: in.Kind, Response: out})
	})
	api := "/apis/" + greetGroup + "/" + greetVersion
	mux.HandleFunc("GET "+api, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": greetGroup + "/" + greetVersion, "resources": []any{}})
	})
	mux.HandleFunc("GET "+api+"/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "Hello from %s\n", host) })
	return mux
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the other side is gone, and nobody left to tell
}
