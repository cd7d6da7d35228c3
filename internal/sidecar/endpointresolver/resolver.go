// Package endpointresolver tells the metrics proxy where pods of the control plane are, so that the proxy needs no rights on the management cluster.
package endpointresolver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Bounds of a question and its answer.
const (
	maxQuestion = 64 << 10
	maxLabels   = 20
	maxPods     = 500
)

// Path is where the question is posted.
const Path = "/resolve"

// Question asks for pods by their labels.
type Question struct {
	Selector map[string]string `json:"selector"`
}

// Pod is one that is ready.
type Pod struct {
	Name string `json:"name"`
	IP   string `json:"ip"`
}

// Answer has the pods by name.
type Answer struct {
	Pods []Pod `json:"pods"`
}

// API reads an object or a list of the management cluster.
type API interface {
	Get(ctx context.Context, path string, out any) error
}

// podList is what counts of a list of pods.
type podList struct {
	Items []struct {
		Metadata struct {
			Name              string  `json:"name"`
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Status struct {
			PodIP      string `json:"podIP"`
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

// ready are the pods of a list that are, by name.
func (l podList) ready() (pods []Pod) {
	for _, p := range l.Items {
		if p.Status.PodIP == "" || p.Metadata.DeletionTimestamp != nil {
			continue
		}
		for _, c := range p.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" {
				pods = append(pods, Pod{p.Metadata.Name, p.Status.PodIP})
			}
		}
	}
	slices.SortFunc(pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// Handler answers questions about one namespace. 405: the method is another than POST; 400: no selector, or one that is none; 404: no pod is ready; 500: the
// pods can't be listed.
func Handler(api API, namespace string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "ask by POST", http.StatusMethodNotAllowed)
			return
		}
		selector, err := selectorOf(http.MaxBytesReader(w, r.Body, maxQuestion))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var list podList
		query := url.Values{"labelSelector": {selector}, "limit": {"500"}}
		if err := api.Get(r.Context(), "/api/v1/namespaces/"+namespace+"/pods?"+query.Encode(), &list); err != nil {
			http.Error(w, "the pods can't be listed", http.StatusInternalServerError) // the cause is nobody's business who asks
			return
		}
		pods := list.ready()
		if len(pods) == 0 {
			http.Error(w, "no pod is ready", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(Answer{Pods: pods[:min(len(pods), maxPods)]}) // who asked is gone when this fails
	})
	return mux
}

// selectorOf is the selector of a question as the API takes it.
func selectorOf(body io.Reader) (string, error) {
	var q Question
	raw, err := io.ReadAll(body)
	if err == nil {
		err = json.Unmarshal(raw, &q)
	}
	if err != nil {
		return "", errors.New(`the body must be {"selector": {"label": "value"}}`)
	}
	if len(q.Selector) == 0 || len(q.Selector) > maxLabels {
		return "", errors.New("selector must have 1 to 20 labels")
	}
	selector, err := labels.ValidatedSelectorFromSet(q.Selector)
	if err != nil {
		return "", errors.New("selector: " + strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return selector.String(), nil
}
