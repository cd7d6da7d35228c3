// Package world is the local cluster as the adversary sees it: clients of its API servers, pods and their processes.
package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/sleep"
	"hcp.internal/platform/test/adversary/plan"
)

// Names of what the adversary makes. Everything is in one of these namespaces, or has their prefix or Label.
const (
	// Clusters has the HostedClusters, Tenant what a tenant may do, Victim what no tenant may read.
	Clusters, Tenant, Victim = "adversary", "adversary-tenant", "adversary-victim"
	// Label is on everything that is outside of these namespaces.
	Label = "adversary.hypershift.test/mine"
	// demoNamespace is where the demo cluster's HostedCluster is.
	demoNamespace = "clusters"
	// callTimeout is what a request may take; with API servers that are stopped, each takes all of it.
	callTimeout = 5 * time.Second
)

// OperatorNamespaces have what the installation consists of.
var OperatorNamespaces = []string{"hypershift", "package-operator-system"}

// World is safe for use by several goroutines.
type World struct {
	// StateDir is that of the local cluster, Bin the folder with our programs.
	StateDir, Bin string
	Management    *rest.Config
	Client        client.Client
	Log           *slog.Logger

	mu     sync.Mutex
	hosted map[int]*rest.Config
}

// Scheme has all kinds that the adversary reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientscheme.AddToScheme(scheme), hyperv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// Open connects to the local cluster in stateDir.
func Open(stateDir, bin string, log *slog.Logger) (*World, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(stateDir, "kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the local cluster in %s (is it up? bin/hypershift local up --state-dir %s): %w", stateDir, stateDir, err)
	}
	cfg.QPS, cfg.Timeout, cfg.UserAgent = -1, callTimeout, "adversary"
	c, err := NewClient(cfg)
	return &World{StateDir: stateDir, Bin: bin, Management: cfg, Client: c, Log: log, hosted: map[int]*rest.Config{}}, err
}

// NewClient knows all kinds of Scheme.
func NewClient(cfg *rest.Config) (client.Client, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// Key is namespace and name of the HostedCluster with a number.
func Key(cluster int) client.ObjectKey {
	if cluster == plan.Demo {
		return client.ObjectKey{Namespace: demoNamespace, Name: plan.ClusterName(cluster)}
	}
	return client.ObjectKey{Namespace: Clusters, Name: plan.ClusterName(cluster)}
}

// ControlPlane is the namespace of a hosted cluster's control plane.
func ControlPlane(cluster int) string {
	key := Key(cluster)
	return names.ControlPlaneNamespace(key.Namespace, key.Name)
}

// Registry is the local cluster's.
func Registry() string { return components.RegistryHost }

// Hosted returns how the administrator of a hosted cluster reaches its API, once that is published.
func (w *World) Hosted(ctx context.Context, cluster int) (*rest.Config, error) {
	w.mu.Lock()
	cfg := w.hosted[cluster]
	w.mu.Unlock()
	if cfg != nil {
		return rest.CopyConfig(cfg), nil
	}
	hc := &hyperv1.HostedCluster{}
	key := Key(cluster)
	if err := w.Client.Get(ctx, key, hc); err != nil {
		return nil, err
	}
	if hc.Status.KubeConfig == nil {
		return nil, fmt.Errorf("%s has no kubeconfig yet", key)
	}
	secret := &corev1.Secret{}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: hc.Status.KubeConfig.Name}, secret); err != nil {
		return nil, err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", key, err)
	}
	cfg.QPS, cfg.Timeout, cfg.UserAgent = -1, callTimeout, "adversary"
	w.mu.Lock()
	w.hosted[cluster] = cfg
	w.mu.Unlock()
	return rest.CopyConfig(cfg), nil
}

// Forget is called when a hosted cluster is gone.
func (w *World) Forget(cluster int) {
	w.mu.Lock()
	delete(w.hosted, cluster)
	w.mu.Unlock()
}

// Namespace makes one of ours.
func (w *World) Namespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: "true"}}}
	return client.IgnoreAlreadyExists(w.Client.Create(ctx, ns))
}

// Until calls what until it returns nil, and returns its last error when ctx or the time is over. Faults make any single call fail.
func Until(ctx context.Context, patience time.Duration, what func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := what(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", patience, err)
		case <-time.After(time.Second):
		}
	}
}

// Wait returns false when ctx is over first.
func Wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	return sleep.For(ctx, d) == nil
}

// Gone says that an object isn't there.
func (w *World) Gone(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	switch err := w.Client.Get(ctx, key, obj); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%T %s is there", obj, key)
}
