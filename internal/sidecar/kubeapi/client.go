// Package kubeapi is the handful of Kubernetes API requests that sidecars make, without generated clients.
//
// It exists to keep the sidecar binary and its memory small: a clientset costs 20 MiB of code that no sidecar calls.
// Every request has a timeout and every response a size limit, because the API servers asked belong to tenants.
package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// requestTimeout bounds one request; an API server that needs longer for a single small object is as good as down.
	requestTimeout = 10 * time.Second
	// maxBody bounds a response. The largest answer expected is the discovery document of a group with many resources.
	maxBody = 8 << 20
)

// Client sends requests to one API server.
type Client struct {
	http *http.Client
	base *url.URL
}

// FromKubeconfig returns a client for the current context of a kubeconfig file. An empty path means the cluster that the
// pod runs in.
func FromKubeconfig(path string) (*Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %q: %w", path, err)
	}
	return FromConfig(cfg)
}

// FromKubeconfigBytes returns a client for the current context of a kubeconfig. It refuses one that would run a program
// or read files, because its content may come from an object of the API.
func FromKubeconfigBytes(raw []byte) (*Client, error) {
	loaded, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("parsing kubeconfig: %w", err)
	}
	for name, user := range loaded.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "" {
			return nil, fmt.Errorf("parsing kubeconfig: user %q must hold its credentials as data, not as files or programs", name)
		}
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("parsing kubeconfig: %w", err)
	}
	return FromConfig(cfg)
}

// FromConfig returns a client for a connection's configuration.
func FromConfig(cfg *rest.Config) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "hcp-sidecar"
	hc, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("setting up TLS: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("parsing server address: %w", err)
	}
	return &Client{http: hc, base: base}, nil
}

// Close drops idle connections; a client that is replaced must be closed.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get reads path (with an optional query after "?") into out.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.do(ctx, http.MethodGet, path, "", nil, out)
}

// Post sends in to path and reads the answer into out.
func (c *Client) Post(ctx context.Context, path string, in, out any) error {
	raw, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encoding request: %w", err)
	}
	return c.do(ctx, http.MethodPost, path, "application/json", raw, out)
}

// Apply server-side applies a YAML or JSON object at path as owner, taking fields from other owners.
func (c *Client) Apply(ctx context.Context, path, owner string, object []byte) error {
	query := url.Values{"fieldManager": {owner}, "force": {"true"}}
	return c.do(ctx, http.MethodPatch, path+"?"+query.Encode(), "application/apply-patch+yaml", object, nil)
}

// do sends one request. A status of 300 or above becomes an error that apierrors understands.
func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	path, query, _ := strings.Cut(path, "?")
	target := c.base.JoinPath(path)
	target.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("building request %s %s: %w", method, path, err)
	}
	req.Header.Set("Accept", "application/json")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err // *url.Error: names method, URL and cause
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return fmt.Errorf("reading answer of %s %s: %w", method, path, err)
	}
	if len(raw) > maxBody {
		return fmt.Errorf("reading answer of %s %s: longer than %d bytes", method, path, maxBody)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return statusError(method, path, resp.StatusCode, raw)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("decoding answer of %s %s: %w", method, path, err)
	}
	return nil
}

func statusError(method, path string, code int, raw []byte) error {
	status := metav1.Status{}
	if err := json.Unmarshal(raw, &status); err == nil && status.Kind == "Status" && status.Message != "" {
		status.Code = int32(code)
		return &apierrors.StatusError{ErrStatus: status}
	}
	reason := metav1.StatusReasonUnknown
	if code == http.StatusNotFound {
		reason = metav1.StatusReasonNotFound
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: fmt.Sprintf("%s %s: %s", method, path, http.StatusText(code)),
	}}
}

// ResourcePath is the path of the named object of a kind, found by discovery. The error is NotFound (apierrors.IsNotFound)
// when the server doesn't serve the kind (yet).
func (c *Client) ResourcePath(ctx context.Context, apiVersion, kind, namespace, name string) (string, error) {
	group := GroupVersionPath(apiVersion)
	list := metav1.APIResourceList{}
	if err := c.Get(ctx, group, &list); err != nil {
		return "", err
	}
	for _, r := range list.APIResources {
		if r.Kind != kind || strings.Contains(r.Name, "/") {
			continue
		}
		path := group
		if r.Namespaced {
			if namespace == "" {
				namespace = metav1.NamespaceDefault
			}
			path += "/namespaces/" + url.PathEscape(namespace)
		}
		return path + "/" + r.Name + "/" + url.PathEscape(name), nil
	}
	return "", &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("kind %s is not served in %s", kind, apiVersion),
	}}
}

// GroupVersionPath is where an API version lives: "/api/v1", "/apis/apps/v1".
func GroupVersionPath(apiVersion string) string {
	if strings.Contains(apiVersion, "/") {
		return "/apis/" + apiVersion
	}
	return "/api/" + apiVersion
}
