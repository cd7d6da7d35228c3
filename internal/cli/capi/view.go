package capi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/proxy"
	"hcp.internal/platform/internal/capigroup/translate"
)

const (
	// modeFor is how long it is remembered how a namespace stores its objects; a migration changes that while a command may run.
	modeFor = 5 * time.Second
	// maxModes bounds what is remembered.
	maxModes = 10000
	// askTimeout bounds the question how a namespace stores its objects.
	askTimeout = 10 * time.Second
	// maxAnswer bounds the answer to it: a list of one object's metadata.
	maxAnswer = 4 << 20
)

// View is an http.Handler that shows Cluster API's objects under their standard names. Requests about a namespace whose Clusters are
// stored in standard groups pass as they are; all others are translated, if the management cluster has private groups at all.
type View struct {
	// Private tells whether the management cluster has HyperShift's own groups.
	Private bool

	upstream             *proxy.Upstream
	translated, verbatim http.Handler
	clock                clock.PassiveClock
	every                time.Duration // how often open watches look whether it is time to ask for the mode again

	mu      sync.Mutex
	modes   map[string]mode
	watches map[*watching]bool
}

// answer is how a namespace stores objects, and the version of the API server's storage when it said so.
type answer struct {
	private bool
	version uint64
}

type mode struct {
	answer
	until time.Time
	// flipped is the version of the first answer that was different from that before; 0: there was none.
	flipped uint64
}

// Upstream connects to the management cluster with all that a kubeconfig may say: certificates, tokens, programs that fetch some,
// impersonation, an HTTP proxy.
func Upstream(cfg *rest.Config) (*proxy.Upstream, error) {
	conf, err := cfg.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of the kubeconfig: %w", err)
	}
	tlsConfig, err := transport.TLSConfigFor(conf)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates of the kubeconfig: %w", err)
	}
	address, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("reading the server of the kubeconfig: %w", err)
	}
	via := cfg.Proxy
	if via == nil {
		via = http.ProxyFromEnvironment
	}
	u := proxy.UpstreamConfig{URL: (&url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path}).String(), TLS: tlsConfig, Proxy: via}
	u.Wrap = func(rt http.RoundTripper) http.RoundTripper {
		wrapped, err := transport.HTTPWrappersForConfig(conf, rt)
		if err != nil {
			return broken{err}
		}
		return wrapped
	}
	return proxy.NewUpstream(u)
}

// broken is a connection with credentials that can't be read.
type broken struct{ err error }

func (b broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

// NewView asks the management cluster once what it has.
func NewView(ctx context.Context, upstream *proxy.Upstream, now clock.PassiveClock) (*View, error) {
	v := &View{
		upstream: upstream, clock: now, every: modeFor, modes: map[string]mode{}, watches: map[*watching]bool{},
		translated: proxy.New(proxy.Config{Upstream: upstream}), verbatim: proxy.New(proxy.Config{Upstream: upstream, Verbatim: true}),
	}
	code, _, err := v.get(ctx, "/apis/"+translate.Private)
	switch {
	case err != nil:
		return nil, fmt.Errorf("asking the management cluster for its APIs: %w", err)
	case code == http.StatusOK:
		v.Private = true
	case code != http.StatusNotFound:
		return nil, fmt.Errorf("asking the management cluster for its APIs: status %d: check the credentials of the kubeconfig", code)
	}
	return v, nil
}

// ServeHTTP implements http.Handler.
func (v *View) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	through := v.verbatim
	if v.Private {
		through = v.translated
		// What can't be parsed is refused by either.
		if parsed, err := translate.Parse(r.Method, r.URL.EscapedPath(), r.URL.RawQuery); err == nil {
			switch {
			case parsed.Namespace != "":
				// What is written must not go where objects were a moment ago.
				m, err := v.mode(r.Context(), parsed.Namespace, parsed.Mapped() && r.Method != http.MethodGet && r.Method != http.MethodHead)
				switch {
				case err != nil:
					fail(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err)
				case parsed.Mapped():
					v.serve(w, r, &parsed, m)
				default:
					v.handler(m.private).ServeHTTP(w, r)
				}
				return
			case parsed.Mapped() && parsed.List && v.mixed(r.Context()):
				w.Header().Add("Warning", `299 - "objects of namespaces that store them in cluster.x-k8s.io are not shown: name a namespace to see those"`)
			}
		}
	}
	through.ServeHTTP(w, r)
}

func (v *View) handler(private bool) http.Handler {
	if private {
		return v.translated
	}
	return v.verbatim
}

// private tells how a namespace stores its objects, or stored them a moment ago.
func (v *View) private(ctx context.Context, namespace string) (bool, error) {
	m, err := v.mode(ctx, namespace, false)
	return m.private, err
}

// mode tells how a namespace stores its objects: as its HostedControlPlane says, which changes with the commit of a move and not when copies are
// made; without one, where its Clusters are. Without an answer nothing may be guessed: what is then written would be nobody's.
func (v *View) mode(ctx context.Context, namespace string, anew bool) (mode, error) {
	m, err := v.remembered(namespace, anew, func() (answer, error) {
		in := "/namespaces/" + url.PathEscape(namespace)
		if noted, known, err := v.noted(ctx, in); known || err != nil {
			return noted, err
		}
		stored, version, err := v.any(ctx, translate.Private, in)
		if err != nil {
			return answer{}, err
		}
		standard, later, err := v.any(ctx, translate.Standard, in)
		if err != nil {
			return answer{}, err
		}
		if stored && standard {
			return answer{}, errors.New("there are Clusters in both groups, since they are being moved: try again later, or with the right to list hostedcontrolplanes in the namespace")
		}
		return answer{!standard, max(version, later)}, nil
	})
	if err != nil {
		return mode{}, fmt.Errorf("finding out how namespace %s stores objects of Cluster API: %w", namespace, err)
	}
	return m, nil
}

// noted is what a namespace's HostedControlPlane says, if there is one and the user may read it.
func (v *View) noted(ctx context.Context, in string) (found answer, known bool, err error) {
	code, body, err := v.get(ctx, "/apis/"+hyperv1.GroupVersion.String()+in+"/hostedcontrolplanes?limit=1")
	if err != nil {
		return found, false, fmt.Errorf("listing hostedcontrolplanes: %w", err)
	}
	if code != http.StatusOK {
		return found, false, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	if err := json.Unmarshal(body, list); err != nil {
		return found, false, fmt.Errorf("listing hostedcontrolplanes: %w", err)
	}
	if len(list.Items) == 0 {
		return found, false, nil
	}
	return answer{list.Items[0].Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true", versionOf(list.ResourceVersion)}, true, nil
}

// mixed tells whether some namespaces store Clusters in standard groups, as far as the user may know.
func (v *View) mixed(ctx context.Context) bool {
	m, err := v.remembered("", false, func() (answer, error) {
		standard, version, err := v.any(ctx, translate.Standard, "")
		return answer{standard, version}, err
	})
	return err == nil && m.private
}

// remembered asks find, unless it was asked a moment ago and need not be asked anew. Errors are not remembered. Watches of before a flip end.
func (v *View) remembered(key string, anew bool, find func() (answer, error)) (mode, error) {
	now := v.clock.Now()
	v.mu.Lock()
	got, ok := v.modes[key]
	v.mu.Unlock()
	if ok && !anew && now.Before(got.until) {
		return got, nil
	}
	found, err := find()
	if err != nil {
		return mode{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	before, known := v.modes[key]
	if known && found.version > 0 && found.version < before.version {
		return before, nil // somebody else asked later, and was answered earlier
	}
	m := mode{found, now.Add(modeFor), before.flipped}
	if known && before.private != m.private {
		m.flipped = found.version
	}
	if len(v.modes) >= maxModes {
		clear(v.modes)
	}
	v.modes[key] = m
	v.endFlipped(key)
	return m, nil
}

// any tells whether there is a Cluster, and the version of the list. A group that is not served has none.
func (v *View) any(ctx context.Context, group, in string) (bool, uint64, error) {
	code, body, err := v.get(ctx, "/apis/"+group+"/v1beta2"+in+"/clusters?limit=1")
	list := &metav1.PartialObjectMetadataList{}
	switch {
	case err != nil:
		return false, 0, fmt.Errorf("listing clusters.%s: %w", group, err)
	case code == http.StatusNotFound:
		return false, 0, nil
	case code == http.StatusForbidden || code == http.StatusUnauthorized:
		return false, 0, fmt.Errorf("listing clusters.%s: status %d: this command needs the right to list them in the namespace", group, code)
	case code != http.StatusOK:
		return false, 0, fmt.Errorf("listing clusters.%s: status %d: try again", group, code)
	}
	if err := json.Unmarshal(body, list); err != nil {
		return false, 0, fmt.Errorf("listing clusters.%s: %w", group, err)
	}
	return len(list.Items) > 0, versionOf(list.ResourceVersion), nil
}

// fail answers as an API server that can't do what it is asked for.
func fail(w http.ResponseWriter, code int32, reason metav1.StatusReason, err error) {
	raw, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: code, Message: err.Error(),
	})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_, _ = w.Write(raw) // a client that has gone needs no answer
}

// get asks the management cluster itself.
func (v *View) get(ctx context.Context, path string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	resp, err := v.upstream.Get(ctx, path, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errors.New("answer is larger than 4 MiB")
	}
	return resp.StatusCode, body, err
}
