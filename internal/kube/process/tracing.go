package process

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Variables that switch tracing on, as OpenTelemetry has them. All its other variables are heeded, too: OTEL_EXPORTER_OTLP_HEADERS,
// OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, OTEL_SDK_DISABLED and so on.
var tracingVariables = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// flushTimeout bounds how long a process that ends waits for a collector to take what is left.
const flushTimeout = 5 * time.Second

// traced says whether somebody wants traces.
func traced(getenv func(string) string) bool {
	if getenv("OTEL_SDK_DISABLED") == "true" {
		return false
	}
	for _, name := range tracingVariables {
		if getenv(name) != "" {
			return true
		}
	}
	return false
}

// trace sends traces of passes, and of requests to the API server that they make, to where the environment says. Without a word there nothing is set up,
// and passes are not measured. A collector that is away costs nothing but its traces: they are sent in the background, from a queue of bounded length.
//
// It returns the configuration for clients, and what sends the rest when the process ends; nil: nothing does.
func trace(ctx context.Context, name string, cfg *rest.Config) (*rest.Config, manager.Runnable, error) {
	if !traced(os.Getenv) {
		return cfg, nil, nil
	}
	exporter, err := otlptracegrpc.New(ctx) // connects in the background
	if err != nil {
		return nil, nil, fmt.Errorf("setting up traces as OTEL_… variables say: %w", err)
	}
	return traceTo(ctx, name, cfg, sdktrace.WithBatcher(exporter))
}

// inPass tells a request that a pass makes: watches and leases are no part of one, and would be traces of their own.
func inPass(r *http.Request) bool { return oteltrace.SpanContextFromContext(r.Context()).IsValid() }

func traceTo(ctx context.Context, name string, cfg *rest.Config, to sdktrace.TracerProviderOption) (*rest.Config, manager.Runnable, error) {
	// What the environment says comes last, and wins.
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", name)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(to, sdktrace.WithResource(about))
	otel.SetTracerProvider(provider)
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(provider),
			otelhttp.WithFilter(inPass), otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + r.URL.Path }))
	})
	return cfg, manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			return fmt.Errorf("sending the last traces: %w", err)
		}
		return nil
	}), nil
}
