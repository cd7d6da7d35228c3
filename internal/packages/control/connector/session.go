package connector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"hcp.internal/platform/internal/packages/engine/watch"
)

// Times of a connection. The target is a few hops away at most.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	// pingAfter is how long a connection may be silent before it is asked whether it is alive; watches are silent for long.
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10
)

// connection is how a target is talked to.
type connection struct {
	config    *rest.Config
	http      *http.Client
	transport *http.Transport
	guard     *guard
}

// connect prepares to talk to the cluster of cfg. It asks nothing yet.
func connect(cfg *rest.Config, limits Limits, clk clock.PassiveClock) (*connection, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // priority and fairness of the API server does this job
	cfg.UserAgent = Name
	cfg.WarningHandler = rest.NoWarnings{}
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates in it: %w", err)
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout, ResponseHeaderTimeout: limits.Request,
		MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	if cfg.Proxy != nil {
		transport.Proxy = cfg.Proxy
	}
	c := &connection{config: cfg, transport: transport, guard: newGuard(transport, limits, clk)}
	wrapped, err := rest.HTTPWrappersForConfig(cfg, c.guard)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials in it: %w", err)
	}
	c.http = &http.Client{Transport: wrapped}
	return c, nil
}

func (c *connection) close() { c.transport.CloseIdleConnections() }

// probed is an object that every cluster has. Reading it takes credentials, the API server and its etcd, and costs them next to nothing.
var probed = client.ObjectKey{Name: metav1.NamespaceSystem}

// maxProbe bounds the answer to a probe, in bytes.
const maxProbe = 1 << 20

// probe asks the target for something small and says what is wrong, nil when nothing is.
func (c *connection) probe(ctx context.Context, timeout time.Duration) *Trouble {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cfg := rest.CopyConfig(c.config)
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	cfg.GroupVersion = &schema.GroupVersion{Version: "v1"}
	api, err := rest.UnversionedRESTClientForConfigAndClient(cfg, c.http)
	if err != nil {
		return unreachable("the kubeconfig is not usable")
	}
	raw, err := api.Get().AbsPath("/api/v1/namespaces", probed.Name).SetHeader("Accept", "application/json").MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return troubleOfProbe(err)
	}
	if len(raw) > maxProbe {
		return misbehaves("an answer is larger than allowed")
	}
	answer := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, answer); err != nil || answer.Kind != "Namespace" || answer.Name != probed.Name {
		return misbehaves("it is not one of Kubernetes")
	}
	return nil
}

func troubleOfProbe(err error) *Trouble {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code == 0 {
		if t := troubleOf(err); t != nil {
			return t
		}
		return unreachable("it does not answer in time") // canceled: the process ends
	}
	code := int(status.Status().Code)
	switch {
	case code == http.StatusForbidden || code == http.StatusNotFound:
		return nil // it works; what phases may not do, each of them reports
	case troubleOfStatus(code) != nil:
		return troubleOfStatus(code)
	}
	return misbehaves("it answers %d to a simple question", code)
}

// session is a time during which the target answers.
type session struct {
	*connection
	ctx     context.Context // it is the session's life, not that of a call
	end     context.CancelFunc
	client  client.Client
	mapper  meta.RESTMapper
	watches *watch.Cache
}

// open begins a session, which lasts until its end is called or ctx ends. It asks nothing yet, either.
func (c *connection) open(ctx context.Context) (*session, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(c.config, c.http)
	if err != nil {
		return nil, fmt.Errorf("setting up discovery: %w", err)
	}
	api, err := client.New(c.config, client.Options{HTTPClient: c.http, Mapper: mapper, Scheme: runtime.NewScheme()})
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	watches, err := watch.New(c.config, c.http, mapper, nil)
	if err != nil {
		return nil, err
	}
	s := &session{connection: c, client: api, mapper: mapper, watches: watches}
	s.ctx, s.end = context.WithCancel(ctx)
	return s, nil
}

// overflow says which kind has more objects than may be watched.
func (s *session) overflow(ctx context.Context) *Trouble {
	for _, kind := range s.watches.Kinds() {
		if s.watches.Count(ctx, kind) > s.guard.limits.Objects {
			return misbehaves("more than %d objects of kind %s carry the label of packages", s.guard.limits.Objects, kind.Kind)
		}
	}
	return nil
}

// bound is ctx that also ends with the session.
func (s *session) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
