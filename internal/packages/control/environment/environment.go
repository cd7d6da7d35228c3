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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
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

	// looking is held while the cluster is read, so that one reads at a time; mu never, so that those who know enough don't wait.
	looking sync.Mutex

	mu      sync.Mutex
	known   bool
	base    manifests.PackageEnvironment
	hosted  map[string]manifests.PackageEnvironmentHyperShiftHostedCluster
	fetched time.Time
	// changed is whether somebody has yet to be told of a change, whoever found it; wake has an element then.
	changed bool
	wake    chan struct{}
}

// Source is what template.Environment uses.
func (d *Detector) Source(ctx context.Context, namespace string) (any, error) {
	return d.Get(ctx, namespace)
}

// Get is the environment of packages in a namespace, "" for cluster-scoped ones. What it points to is shared, and only read.
func (d *Detector) Get(ctx context.Context, namespace string) (manifests.PackageEnvironment, error) {
	out, enough := d.get(namespace)
	if enough {
		return out, nil
	}
	if err := d.look(ctx, unknownInterval); err != nil {
		return out, err
	}
	out, _ = d.get(namespace)
	return out, nil
}

// get is what is known, and whether that is enough to go on.
func (d *Detector) get(namespace string) (out manifests.PackageEnvironment, enough bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if out = d.base; !d.known || out.HyperShift == nil || namespace == "" {
		return out, d.known
	}
	hc, ok := d.hosted[namespace]
	if ok {
		out.HyperShift = &manifests.PackageEnvironmentHyperShift{HostedCluster: &hc}
	}
	return out, ok || d.Clock.Since(d.fetched) <= unknownInterval
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (d *Detector) NeedLeaderElection() bool { return true }

// Start looks again and again until ctx ends, and tells of changes.
func (d *Detector) Start(ctx context.Context) error {
	ticker := d.Clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := d.look(ctx, 0); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "looking at the environment")
		}
		d.tell(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-d.woken():
			d.tell(ctx)
			select { // at most one message in a while: each makes all packages look
			case <-ctx.Done():
				return nil
			case <-ticker.C():
			}
		}
	}
}

// tell passes on that something has changed since it was called last.
func (d *Detector) tell(ctx context.Context) {
	d.mu.Lock()
	changed := d.changed
	d.changed = false
	d.mu.Unlock()
	if changed && d.Changed != nil {
		d.Changed(ctx)
	}
}

func (d *Detector) woken() chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wake == nil {
		d.wake = make(chan struct{}, 1)
	}
	return d.wake
}

// look reads everything, unless somebody did so within age while this waited for its turn.
func (d *Detector) look(ctx context.Context, age time.Duration) error {
	d.looking.Lock()
	defer d.looking.Unlock()
	d.mu.Lock()
	recent := d.known && age > 0 && d.Clock.Since(d.fetched) <= age
	d.mu.Unlock()
	if recent {
		return nil
	}
	base, hosted, err := d.read(ctx)
	if err != nil {
		return err
	}
	wake := d.woken()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known && (!same(d.base, base) || !same(d.hosted, hosted)) {
		d.changed = true
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	d.base, d.hosted, d.known, d.fetched = base, hosted, true, d.Clock.Now()
	return nil
}

func (d *Detector) read(ctx context.Context) (base manifests.PackageEnvironment, hosted map[string]manifests.PackageEnvironmentHyperShiftHostedCluster, err error) {
	v, err := d.Server.ServerVersion()
	if err != nil {
		return base, nil, fmt.Errorf("reading the version of the API server: %w", err)
	}
	base = manifests.PackageEnvironment{Kubernetes: manifests.PackageEnvironmentKubernetes{Version: v.GitVersion}}
	if base.OpenShift, err = d.openShift(ctx); err != nil {
		return base, nil, err
	}
	if base.OpenShift != nil {
		if base.Proxy, err = d.proxy(ctx); err != nil {
			return base, nil, err
		}
	}
	hosted, served, err := d.hostedClusters(ctx)
	if err != nil {
		return base, nil, err
	}
	if served {
		base.HyperShift = &manifests.PackageEnvironmentHyperShift{}
	}
	return base, hosted, nil
}

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// find reads an object that may not be there, nor its kind.
func (d *Detector) find(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
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
	obj, err := d.find(ctx, schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"}, "", "version")
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
	managed, err := d.find(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "openshift-config", "osd-cluster-metadata")
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
	obj, err := d.find(ctx, schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"}, "", "cluster")
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

// hostedClusters are those of the cluster by the namespace of their control plane. Two may have the same name for it, ("a", "b-c") and ("a-b", "c"): the
// namespace says whose it is.
func (d *Detector) hostedClusters(ctx context.Context) (out map[string]manifests.PackageEnvironmentHyperShiftHostedCluster, served bool, err error) {
	out = map[string]manifests.PackageEnvironmentHyperShiftHostedCluster{}
	oldest := map[string]metav1.Time{}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: hyperv1.GroupVersion.Group, Version: hyperv1.GroupVersion.Version, Kind: "HostedClusterList"})
	var owners map[string]string
	for read := 0; ; {
		err := d.Reader.List(ctx, list, client.Limit(pageSize), client.Continue(list.GetContinue()))
		if absent(err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("listing HostedClusters: %w", err)
		}
		if owners == nil {
			if owners, err = d.owners(ctx); err != nil {
				return nil, false, err
			}
		}
		for i := range list.Items {
			hc := &list.Items[i]
			namespace := names.ControlPlaneNamespace(hc.GetNamespace(), hc.GetName())
			if owner := owners[namespace]; owner != "" && owner != hc.GetNamespace()+"/"+hc.GetName() {
				continue
			}
			// Of a namespace that says nothing, or isn't there yet: the hosted cluster that was first.
			if first, taken := oldest[namespace]; taken && !ptr.To(hc.GetCreationTimestamp()).Before(&first) {
				continue
			}
			oldest[namespace] = hc.GetCreationTimestamp()
			selector, _, _ := unstructured.NestedStringMap(hc.Object, "spec", "nodeSelector")
			out[namespace] = manifests.PackageEnvironmentHyperShiftHostedCluster{
				TemplateContextObjectMeta: manifests.TemplateContextObjectMeta{
					Name: hc.GetName(), Namespace: hc.GetNamespace(), Labels: hc.GetLabels(), Annotations: hc.GetAnnotations(),
				},
				HostedClusterNamespace: namespace, NodeSelector: selector,
			}
		}
		if read += len(list.Items); list.GetContinue() == "" || read >= maxHostedClusters {
			return out, true, nil
		}
	}
}

// owners are the hosted clusters, as namespace/name, that control-plane namespaces say they belong to.
func (d *Detector) owners(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"})
	for read := 0; ; {
		if err := d.Reader.List(ctx, list, client.HasLabels{hyperv1.HostedControlPlaneLabel}, client.Limit(pageSize), client.Continue(list.Continue)); err != nil {
			return nil, fmt.Errorf("listing the namespaces of control planes: %w", err)
		}
		for i := range list.Items {
			out[list.Items[i].Name] = list.Items[i].Annotations[hyperv1.HostedClusterAnnotation]
		}
		if read += len(list.Items); list.Continue == "" || read >= maxHostedClusters {
			return out, nil
		}
	}
}
