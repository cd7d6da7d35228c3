package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
)

const (
	// apiPort is that of the API server's container.
	apiPort = 6443
	// forwardAgain is the pause before a lost connection is made again.
	forwardAgain = time.Second
	// forwardReady is how long a connection may take to be made.
	forwardReady = 30 * time.Second
)

// Forwarding is a port of this machine, on the loopback alone, that leads to the API server of a hosted cluster by way of the management cluster.
type Forwarding struct {
	config    *rest.Config
	client    client.Client
	namespace string
	port      uint16
	ended     chan struct{}
}

// Forward begins to forward to the control plane of a HostedCluster, on a free port, and goes on in the background until ctx ends: a pod that goes is
// replaced by another one. Reasons of interruptions are told to notes.
func Forward(ctx context.Context, config *rest.Config, c client.Client, hostedNamespace, name string, notes io.Writer) (*Forwarding, error) {
	f := &Forwarding{config: config, client: c, namespace: names.ControlPlaneNamespace(hostedNamespace, name), ended: make(chan struct{})}
	first := make(chan error, 1)
	go func() {
		defer close(f.ended)
		f.keep(ctx, first, notes)
	}()
	select {
	case err := <-first:
		return f, err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(forwardReady):
		return nil, fmt.Errorf("forwarding to the API server in namespace %s: no connection within %s", f.namespace, forwardReady)
	}
}

// Wait returns when the forwarding has ended.
func (f *Forwarding) Wait() { <-f.ended }

// keep connects again and again. first is told how the first connection went; where that fails, it ends.
func (f *Forwarding) keep(ctx context.Context, first chan<- error, notes io.Writer) {
	begun := false
	for {
		ready := make(chan struct{})
		err := f.once(ctx, ready, func() {
			if !begun {
				begun = true
				first <- nil
			}
		})
		if !begun {
			first <- fmt.Errorf("forwarding to the API server in namespace %s: %w", f.namespace, err)
			return
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			fmt.Fprintf(notes, "the connection to the API server was lost, reconnecting: %v\n", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(forwardAgain):
		}
	}
}

// once forwards until the connection or ctx ends.
func (f *Forwarding) once(ctx context.Context, ready chan struct{}, up func()) error {
	pod, err := f.pod(ctx)
	if err != nil {
		return err
	}
	transport, upgrader, err := spdy.RoundTripperFor(f.config)
	if err != nil {
		return err
	}
	base, _, err := rest.DefaultServerUrlFor(f.config)
	if err != nil {
		return err
	}
	target := base.JoinPath("api/v1/namespaces", f.namespace, "pods", pod, "portforward")
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	stop, done := make(chan struct{}), make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-ctx.Done():
			close(stop)
		case <-done:
		}
	}()
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("%d:%d", f.port, apiPort)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-ready:
			if ports, err := forwarder.GetPorts(); err == nil && len(ports) == 1 {
				f.port = ports[0].Local // the next connection is on the same one
				up()
			}
		case <-done:
		}
	}()
	return forwarder.ForwardPorts()
}

// pod is one of the API server that is ready.
func (f *Forwarding) pod(ctx context.Context) (string, error) {
	list := &corev1.PodList{}
	if err := f.client.List(ctx, list, client.InNamespace(f.namespace), client.MatchingLabels{"app": names.KubeAPIServer}, client.Limit(pageSize)); err != nil {
		return "", fmt.Errorf("listing its pods: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.DeletionTimestamp.IsZero() && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
			return p.Name, nil
		}
	}
	return "", errors.New("none of its pods is ready: hypershift why hostedcluster/NAME tells why")
}

// Kubeconfig is raw with the forwarded port as its server. Certificates are still checked for the host that raw names.
func (f *Forwarding) Kubeconfig(raw []byte) ([]byte, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, errors.New("the kubeconfig of the hosted cluster can't be parsed") // the parser's error may quote a key
	}
	for _, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			return nil, errors.New("the kubeconfig of the hosted cluster names no server")
		}
		if cluster.TLSServerName == "" {
			cluster.TLSServerName = strings.Trim(server.Hostname(), "[]")
		}
		cluster.Server, cluster.ProxyURL = fmt.Sprintf("https://127.0.0.1:%d", f.port), ""
	}
	return clientcmd.Write(*config)
}
