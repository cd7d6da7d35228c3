//go:build e2e && live

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectortracev1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// collector takes traces by OTLP, as that of an installation does.
type collector struct {
	collectortracev1.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans map[string][]*tracev1.Span // by service
}

func (c *collector) Export(_ context.Context, in *collectortracev1.ExportTraceServiceRequest) (*collectortracev1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range in.GetResourceSpans() {
		service := ""
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range of.GetScopeSpans() {
			c.spans[service] = append(c.spans[service], scope.GetSpans()...)
		}
	}
	return &collectortracev1.ExportTraceServiceResponse{}, nil
}

// passes are the spans of a service with this name, and how many requests were made in them.
func (c *collector) passes(service, name string) (passes, requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for _, s := range c.spans[service] {
		if s.GetName() == name {
			ids = append(ids, string(s.GetSpanId()))
		}
	}
	for _, s := range c.spans[service] {
		if slices.Contains(ids, string(s.GetParentSpanId())) && strings.Contains(s.GetName(), " /api") {
			requests++
		}
	}
	return len(ids), requests
}

// known are the services and names that were sent.
func (c *collector) known() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for service, spans := range c.spans {
		for _, s := range spans {
			out = append(out, service+" "+s.GetName())
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// TestLiveTraces switches on what is off by default: the passes of the operator go to a collector, each with the requests that it makes.
func TestLiveTraces(t *testing.T) {
	k, pool := management(), demoPool(t)
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	took := &collector{spans: map[string][]*tracev1.Span{}}
	server := grpc.NewServer()
	collectortracev1.RegisterTraceServiceServer(server, took)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	node := k.run(t, "get", "nodes", "-o", "jsonpath={.items[0].status.addresses[?(@.type=='InternalIP')].address}")

	if args := k.run(t, "get", "deployment", "operator", "-n", "hypershift", "-o", "jsonpath={.spec.template.spec.containers[*].env[*].name}"); strings.Contains(args, "OTEL_") {
		t.Errorf("traces are on by default: %s", args)
	}
	set := func(value string) {
		k.run(t, "set", "env", "deployment/operator", "-n", "hypershift", value)
		k.run(t, "rollout", "status", "deployment/operator", "-n", "hypershift", "--timeout=55s")
	}
	set(fmt.Sprintf("OTEL_EXPORTER_OTLP_ENDPOINT=http://%s", net.JoinHostPort(node, fmt.Sprint(listener.Addr().(*net.TCPAddr).Port))))
	t.Cleanup(func() { set("OTEL_EXPORTER_OTLP_ENDPOINT-") })
	eventually(t, 2*time.Minute, "traces of passes", func() error {
		for _, of := range []string{"hostedcluster/demo", "nodepool/" + pool} {
			k.run(t, "annotate", "-n", "clusters", of, "--overwrite", "touched="+time.Now().Format("150405"))
		}
		var missing []error
		for _, name := range []string{"hostedcluster.Reconciler", "nodepool.Reconciler"} {
			if passes, requests := took.passes("hypershift-operator", name); passes == 0 || requests == 0 {
				missing = append(missing, fmt.Errorf("%d passes of %s with %d requests came", passes, name, requests))
			} else {
				t.Logf("%d passes of %s with %d requests came", passes, name, requests)
			}
		}
		if missing != nil {
			return errors.Join(append(missing, errors.New(took.known()))...)
		}
		return nil
	})
}
