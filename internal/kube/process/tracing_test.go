package process

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hcp.internal/platform/internal/kube/outcome"
)

func TestTraced(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want bool
	}{
		"When nothing is said it should be off":                 {nil, false},
		"When a collector is named it should be on":             {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317"}, true},
		"When one for traces alone is named it should be on":    {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4317"}, true},
		"When it is switched off it should be off all the same": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317", "OTEL_SDK_DISABLED": "true"}, false},
		"When there is only one for metrics it should stay off": {map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://collector:4317"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(traced(func(name string) string { return tc.env[name] })).To(Equal(tc.want))
		})
	}
}

// gets is a reconciler that asks a server once.
type gets struct {
	client *http.Client
	url    string
	err    error
}

func (r *gets) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/api/v1/pods?limit=1", nil)
	if err != nil {
		return reconcile.Result{}, err
	}
	response, err := r.client.Do(req)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: time.Minute}, errors.Join(response.Body.Close(), r.err)
}

func TestTrace(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=mgmt")
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	spans := tracetest.NewInMemoryExporter()
	cfg, flush, err := traceTo(t.Context(), "operator", &rest.Config{Host: server.URL}, sdktrace.WithSyncer(spans))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { otel.SetTracerProvider(noop.NewTracerProvider()) })
	client, err := rest.HTTPClientFor(cfg)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "clusters", Name: "demo"}}

	t.Run("When a pass asks the API server it should be a trace of both", func(t *testing.T) {
		g := NewWithT(t)
		spans.Reset()
		_, err := outcome.Wrap(&gets{client, server.URL, nil}).Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		got := spans.GetSpans()
		g.Expect(got).To(HaveLen(2))
		asked, pass := got[0], got[1]
		g.Expect(asked.Name).To(Equal("GET /api/v1/pods"))
		g.Expect(pass.Name).To(Equal("process.gets"))
		g.Expect(asked.Parent.SpanID()).To(Equal(pass.SpanContext.SpanID()))
		g.Expect(pass.Attributes).To(ContainElements(attribute.String("k8s.namespace.name", "clusters"), attribute.String("k8s.object.name", "demo"),
			attribute.Float64("requeue_after_seconds", 60)))
		g.Expect(pass.Resource.Attributes()).To(ContainElements(attribute.String("service.name", "operator"), attribute.String("k8s.cluster.name", "mgmt")))
	})
	t.Run("When a pass fails it should say so", func(t *testing.T) {
		g := NewWithT(t)
		spans.Reset()
		_, err := outcome.Wrap(&gets{client, server.URL, errors.New("the disk is full")}).Reconcile(t.Context(), request)
		g.Expect(err).To(HaveOccurred())
		pass := spans.GetSpans()[1]
		g.Expect(pass.Status.Code).To(Equal(codes.Error))
		g.Expect(pass.Status.Description).To(Equal("the disk is full"))
	})
	t.Run("When nobody passes it should trace no requests", func(t *testing.T) {
		g := NewWithT(t)
		spans.Reset()
		_, err := (&gets{client, server.URL, nil}).Reconcile(t.Context(), request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(spans.GetSpans()).To(BeEmpty())
	})
	t.Run("When the process ends it should send the rest", func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		end()
		NewWithT(t).Expect(flush.Start(ctx)).To(Succeed())
	})
}

func TestUntraced(t *testing.T) {
	t.Run("When nobody wants traces it should leave everything as it is", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
		t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
		g, cfg := NewWithT(t), &rest.Config{Host: "https://localhost"}
		same, flush, err := trace(t.Context(), "operator", cfg)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(same).To(BeIdenticalTo(cfg))
		g.Expect(flush).To(BeNil())
	})
}

func BenchmarkUntracedPass(b *testing.B) {
	pass := outcome.Wrap(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = pass.Reconcile(b.Context(), reconcile.Request{})
	}
}
