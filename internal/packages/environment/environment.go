// Package environment finds out what packages may want to know of the cluster: versions, the proxy, and the hosted cluster whose namespace
// they are in.
package environment

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/platform/internal/kube/names"
)

const (
	// interval between two looks at the cluster.
	interval = time.Minute
	// unknownInterval is how often a namespace that belongs to no hosted cluster makes it look again: the hosted cluster may be new.
	unknownInterval = 5 * time.Second
	// pageSize of the list of hosted clusters.
	pageSize = 500
	// maxHostedClusters bounds what is kept of them.
	maxHostedClusters = 20_000
)

// Server tells the version of the API server.
type Server interface {
	ServerVersion() (*version.Info, error)
}

// Detector looks at the cluster. It is safe for concurrent use.
type Detector struct {
	// Reader reads without a cache.
	Reader client.Reader
	Server Server
	Clock  clock.WithTicker
	// Changed is called, if set, after the environment of any package changed.
	Changed func(ctx context.Context)

	mu      sync.Mutex
	known   bool
	base    manifests.PackageEnvironment
	hosted  map[string]manifests.PackageEnvironmentHyperShiftHostedCluster
	fetched time.Time
}

// Source is what template.Environment uses.
func (d *Detector) Source(ctx context.Context, namespace string) (any, error) {
	return d.Get(ctx, namespace)
}

// Get is the environment of packages in a namespace, "" for cluster-scoped ones. What it points to is shared, and only read.
func (d *Detector) Get(ctx context.Context, namespace string) (manifests.PackageEnvironment, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.known {
		if _, err := d.look(ctx); err != nil {
			return manifests.PackageEnvironment{}, err
		}
	}
	out := d.base
	if out.HyperShift == nil || namespace == "" {
		return out, nil
	}
	if _, ok := d.hosted[namespace]; !ok && d.Clock.Since(d.fetched) > unknownInterval {
		if _, err := d.look(ctx); err != nil {
			return out, err
		}
	}
	if hc, ok := d.hosted[namespace]; ok {
		out.HyperShift = &manifests.PackageEnvironmentHyperShift{HostedCluster: &hc}
	}
	return out, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (d *Detector) NeedLeaderElection() bool { return true }

// Start looks again and again until ctx ends.
func (d *Detector) Start(ctx context.Context) error {
	ticker := d.Clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		d.mu.Lock()
		was := d.known
		changed, err := d.look(ctx)
		d.mu.Unlock()
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "looking at the environment")
		}
		if was && changed && d.Changed != nil {
			d.Changed(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// look reads everything; d.mu is held.
func (d *Detector) look(ctx context.Context) (changed bool, err error) {
	v, err := d.Server.ServerVersion()
	if err != nil {
		return false, fmt.Errorf("reading the version of the API server: %w", err)
	}
	base := manifests.PackageEnvironment{Kubernetes: manifests.PackageEnvironmentKubernetes{Version: v.GitVersion}}
	if base.OpenShift, err = d.openShift(ctx); err != nil {
		return false, err
	}
	if base.OpenShift != nil {
		if base.Proxy, err = d.proxy(ctx); err != nil {
			return false, err
		}
	}
	hosted, served, err := d.hostedClusters(ctx)
	if err != nil {
		return false, err
	}
	if served {
		base.HyperShift = &manifests.PackageEnvironmentHyperShift{}
	}
	changed = !same(d.base, base) || !same(d.hosted, hosted)
	d.base, d.hosted, d.known, d.fetched = base, hosted, true, d.Clock.Now()
	return changed, nil
}

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// get reads an object that may not be there, nor its kind.
func (d *Detector) get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	err := d.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", gvk.Kind, name, err)
	}
	return obj, nil
}

func absent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || discovery.IsGroupDiscoveryFailedError(err)
}

func (d *Detector) openShift(ctx context.Context) (*manifests.PackageEnvironmentOpenShift, error) {
	obj, err := d.get(ctx, schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"}, "", "version")
	if obj == nil || err != nil {
		return nil, err
	}
	out := &manifests.PackageEnvironmentOpenShift{}
	history, _, _ := unstructured.NestedSlice(obj.Object, "status", "history")
	for _, each := range history {
		entry, _ := each.(map[string]any)
		if entry["state"] == "Completed" {
			out.Version, _ = entry["version"].(string)
			break
		}
	}
	managed, err := d.get(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "openshift-config", "osd-cluster-metadata")
	if err != nil {
		return nil, err
	}
	if managed != nil {
		data, _, _ := unstructured.NestedStringMap(managed.Object, "data")
		out.Managed = &manifests.PackageEnvironmentManagedOpenShift{Data: data}
	}
	return out, nil
}

func (d *Detector) proxy(ctx context.Context) (*manifests.PackageEnvironmentProxy, error) {
	obj, err := d.get(ctx, schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"}, "", "cluster")
	if obj == nil || err != nil {
		return nil, err
	}
	text := func(name string) string {
		value, _, _ := unstructured.NestedString(obj.Object, "status", name)
		return value
	}
	out := manifests.PackageEnvironmentProxy{HTTPProxy: text("httpProxy"), HTTPSProxy: text("httpsProxy"), NoProxy: text("noProxy")}
	if out == (manifests.PackageEnvironmentProxy{}) {
		return nil, nil
	}
	return &out, nil
}

// hostedClusters are those of the cluster by the namespace of their control plane.
func (d *Detector) hostedClusters(ctx context.Context) (out map[string]manifests.PackageEnvironmentHyperShiftHostedCluster, served bool, err error) {
	out = map[string]manifests.PackageEnvironmentHyperShiftHostedCluster{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1", Kind: "HostedClusterList"})
	for {
		err := d.Reader.List(ctx, list, client.Limit(pageSize), client.Continue(list.GetContinue()))
		if absent(err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("listing HostedClusters: %w", err)
		}
		for i := range list.Items {
			hc := &list.Items[i]
			namespace := names.ControlPlaneNamespace(hc.GetNamespace(), hc.GetName())
			selector, _, _ := unstructured.NestedStringMap(hc.Object, "spec", "nodeSelector")
			out[namespace] = manifests.PackageEnvironmentHyperShiftHostedCluster{
				TemplateContextObjectMeta: manifests.TemplateContextObjectMeta{
					Name: hc.GetName(), Namespace: hc.GetNamespace(), Labels: hc.GetLabels(), Annotations: hc.GetAnnotations(),
				},
				HostedClusterNamespace: namespace, NodeSelector: selector,
			}
		}
		if list.GetContinue() == "" || len(out) >= maxHostedClusters {
			return out, true, nil
		}
	}
}
