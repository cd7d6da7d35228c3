// Package kubeapi is the handful of Kubernetes API requests that sidecars make, on net/http alone.
//
// client-go would be the natural choice, and would make each of these many small processes resident with 12 MiB instead of 7 for
// code that none of them calls. Every request has a timeout and every answer a size limit,
// because the API servers asked belong to tenants.
package kubeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"hcp.internal/platform/internal/clip"
)

const (
	// requestTimeout bounds one request; an API server that needs longer for a single small object is as good as down.
	requestTimeout = 10 * time.Second
	// maxBody bounds an answer. The largest one expected is the discovery document of a group with many resources.
	maxBody = 8 << 20
	// idleTimeout ends connections of a client that nobody closed: a server need not end them itself. Whoever asks every minute keeps one.
	idleTimeout = 90 * time.Second
)

// Client sends requests to one API server.
type Client struct {
	http  *http.Client
	base  *url.URL
	token string
}

// FromKubeconfig returns a client for the current context of a kubeconfig file. An empty path means the cluster that the
// pod runs in.
func FromKubeconfig(path string) (*Client, error) {
	if path == "" {
		conn, err := inCluster()
		if err != nil {
			return nil, fmt.Errorf("finding the cluster: %w", err)
		}
		return newClient(conn), nil
	}
	raw, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	conn, err := parseKubeconfig(raw, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", path, err)
	}
	return newClient(conn), nil
}

// FromKubeconfigBytes returns a client for the current context of a kubeconfig that came from an object of the API. It
// refuses one that would make us read files.
func FromKubeconfigBytes(raw []byte) (*Client, error) {
	conn, err := parseKubeconfig(raw, "")
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	return newClient(conn), nil
}

func newClient(conn *connection) *Client {
	return &Client{base: conn.base, token: conn.token, http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: conn.tls, Proxy: http.ProxyFromEnvironment, IdleConnTimeout: idleTimeout},
		// An API server has no reason to send us elsewhere, and a tenant's must not.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
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

// Delete removes the object at path. The error is IsNotFound when it isn't there.
func (c *Client) Delete(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodDelete, path, "", nil, nil)
}

// do sends one request. An answer of 300 or above becomes a *StatusError.
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
	req.Header.Set("User-Agent", "hcp-sidecar")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
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

// maxMessage bounds what a server can make us write into a log by one answer.
const maxMessage = 500

// StatusError is an answer that isn't success.
type StatusError struct {
	Code    int
	Reason  string // as Kubernetes names it, may be empty
	Message string
}

func (e *StatusError) Error() string { return e.Message }

// IsNotFound says whether the server answered that there is no such thing.
func IsNotFound(err error) bool { return hasCode(err, http.StatusNotFound) }

// IsAlreadyExists says whether a create failed because the object is there.
func IsAlreadyExists(err error) bool { return hasCode(err, http.StatusConflict) }

func hasCode(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}

func statusError(method, path string, code int, raw []byte) error {
	status := struct{ Kind, Reason, Message string }{}
	e := &StatusError{Code: code, Message: fmt.Sprintf("%s %s: %d %s", method, path, code, http.StatusText(code))}
	if err := json.Unmarshal(raw, &status); err == nil && status.Kind == "Status" && status.Message != "" {
		e.Reason, e.Message = status.Reason, status.Message
	}
	e.Message = clip.Over(e.Message, maxMessage, "...")
	return e
}

// resourceList is the discovery document of one API version.
type resourceList struct {
	Resources []struct {
		Name       string `json:"name"`
		Kind       string `json:"kind"`
		Namespaced bool   `json:"namespaced"`
	} `json:"resources"`
}

// Kinds are the kinds that are served in an API version, none when the version isn't served (yet).
func (c *Client) Kinds(ctx context.Context, apiVersion string) (map[string]bool, error) {
	list := resourceList{}
	if err := c.Get(ctx, groupVersionPath(apiVersion), &list); err != nil && !IsNotFound(err) {
		return nil, err
	}
	kinds := map[string]bool{}
	for _, r := range list.Resources {
		kinds[r.Kind] = true
	}
	return kinds, nil
}

// ObjectPath is the path of the named object of a kind, found by discovery. The error is IsNotFound when the server doesn't
// serve the kind (yet).
func (c *Client) ObjectPath(ctx context.Context, apiVersion, kind, namespace, name string) (string, error) {
	path := groupVersionPath(apiVersion)
	list := resourceList{}
	if err := c.Get(ctx, path, &list); err != nil {
		return "", err
	}
	for _, r := range list.Resources {
		if r.Kind != kind || strings.Contains(r.Name, "/") {
			continue
		}
		if r.Namespaced {
			if namespace == "" {
				namespace = "default"
			}
			path += "/namespaces/" + url.PathEscape(namespace)
		}
		return path + "/" + url.PathEscape(r.Name) + "/" + url.PathEscape(name), nil
	}
	return "", &StatusError{Code: http.StatusNotFound, Reason: "NotFound", Message: fmt.Sprintf("kind %s is not served in %s", kind, apiVersion)}
}

// groupVersionPath is where an API version lives: "/api/v1", "/apis/apps/v1".
func groupVersionPath(apiVersion string) string {
	if strings.Contains(apiVersion, "/") {
		return "/apis/" + apiVersion
	}
	return "/api/" + apiVersion
}
