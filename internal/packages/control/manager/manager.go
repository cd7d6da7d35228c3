// Package manager is the process that runs the controllers of package-operator.run.
package manager

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/hotloop"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/packages/author/gotemplate"
	"hcp.internal/platform/internal/packages/control/hostedclusterpackage"
	"hcp.internal/platform/internal/packages/control/metrics"
	"hcp.internal/platform/internal/packages/control/objectdeployment"
	"hcp.internal/platform/internal/packages/control/objectset"
	"hcp.internal/platform/internal/packages/control/objectsetphase"
	"hcp.internal/platform/internal/packages/control/objecttemplate"
	"hcp.internal/platform/internal/packages/control/program"
	"hcp.internal/platform/internal/packages/engine/phase"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
	"hcp.internal/platform/internal/packages/engine/watch"
)

// leaseName is the one that the installed manifests and their users know.
const leaseName = "8a4hp84a6s.package-operator-lock"

// Deps is what controllers of other packages are set up with; see Extension.
type Deps struct {
	Manager ctrl.Manager
	// Live reads and writes without a cache.
	Live client.Client
	// Watches watches objects that packages own, in this cluster.
	Watches *watch.Cache
	Metrics *metrics.Recorder
	// Environment is what templates see of the cluster; who finds out more than the version of Kubernetes replaces its source.
	Environment *objecttemplate.Environment
	// Share bounds the time that renderings of a namespace may take.
	Share   *gotemplate.Share
	Options Options
}

// Extension adds controllers to the process, for both scopes.
type Extension func(ctx context.Context, d Deps) error

// NewScheme has the kinds that the controllers use.
func NewScheme() (*runtime.Scheme, error) {
	return process.Scheme(clientgoscheme.AddToScheme, v1alpha1.AddToScheme)
}

// CacheOptions keeps in memory what is read often. Deployments and their revisions are the bulk of it: they are handed out without a copy, and
// whoever reads one changes nothing but its metadata and status, of which he makes copies.
func CacheOptions() cache.Options {
	byObject := map[client.Object]cache.ByObject{}
	for _, s := range scope.Both() {
		byObject[s.Object(&v1alpha1.ObjectDeployment{})] = cache.ByObject{UnsafeDisableDeepCopy: ptr.To(true)}
		byObject[s.Object(&v1alpha1.ObjectSet{})] = cache.ByObject{UnsafeDisableDeepCopy: ptr.To(true), Transform: objectset.Reduce}
		byObject[s.Object(&v1alpha1.ObjectSetPhase{})] = cache.ByObject{UnsafeDisableDeepCopy: ptr.To(true)}
	}
	byObject[&v1alpha1.Package{}] = cache.ByObject{Transform: withTime}
	return cache.Options{DefaultTransform: withoutBookkeeping, ByObject: byObject}
}

// withTime is withoutBookkeeping, but for the time at which a rollout last changed a Package, and which labels and annotations it has set.
func withTime(in any) (any, error) {
	p, ok := in.(*v1alpha1.Package)
	if !ok {
		return in, nil
	}
	kept := hostedclusterpackage.Remembered(p)
	_, err := withoutBookkeeping(p)
	p.ManagedFields = kept
	return p, err
}

// withoutBookkeeping drops what nobody here reads and that can be as large as the rest of an object.
func withoutBookkeeping(in any) (any, error) {
	if obj, err := meta.Accessor(in); err == nil {
		obj.SetManagedFields(nil)
		if annotations := obj.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
			delete(annotations, corev1.LastAppliedConfigAnnotation)
			obj.SetAnnotations(annotations)
		}
	}
	return in, nil
}

// New sets the process up; its Start runs it. Only errors of the machine or of the cluster's API are returned.
func New(ctx context.Context, cfg *rest.Config, o Options, extensions ...Extension) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	loops := hotloop.New(scheme, clock.RealClock{})
	mgr, err := program.NewManager(cfg, o.Options, leaseName, process.Options{
		Scheme: scheme, Cache: CacheOptions(), HotLoops: loops,
		// Slices are large and rarely looked at.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&v1alpha1.ObjectSlice{}, &v1alpha1.ClusterObjectSlice{}}}},
	})
	if err != nil {
		return nil, err
	}
	deps, err := dependencies(cfg, mgr, loops, o)
	if err != nil {
		return nil, err
	}
	if err := controllers(ctx, deps); err != nil {
		return nil, err
	}
	for _, add := range extensions {
		if err := add(ctx, deps); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}

func dependencies(cfg *rest.Config, mgr ctrl.Manager, loops *hotloop.Detector, o Options) (Deps, error) {
	watches, err := watch.New(cfg, mgr.GetHTTPClient(), mgr.GetRESTMapper(), loops)
	if err != nil {
		return Deps{}, err
	}
	if err := mgr.Add(watches); err != nil {
		return Deps{}, err
	}
	live, err := client.New(cfg, client.Options{HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper(), Scheme: mgr.GetScheme()})
	if err != nil {
		return Deps{}, fmt.Errorf("setting up a client: %w", err)
	}
	if o.Registry == nil {
		o.Registry = ctrlmetrics.Registry
	}
	recorder, err := metrics.New(o.Registry, watches)
	if err != nil {
		return Deps{}, fmt.Errorf("registering metrics: %w", err)
	}
	environment, err := kubernetesOnly(cfg, mgr)
	if err != nil {
		return Deps{}, err
	}
	return Deps{Manager: mgr, Live: live, Watches: watches, Metrics: recorder, Environment: environment, Options: o, Share: gotemplate.NewShare(clock.RealClock{})}, nil
}

// kubernetesOnly is the environment as far as every cluster has it.
func kubernetesOnly(cfg *rest.Config, mgr ctrl.Manager) (*objecttemplate.Environment, error) {
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("setting up discovery: %w", err)
	}
	return objecttemplate.NewEnvironment(func(context.Context, string) (any, error) {
		v, err := disco.ServerVersion()
		if err != nil {
			return nil, err
		}
		return manifests.PackageEnvironment{Kubernetes: manifests.PackageEnvironmentKubernetes{Version: v.GitVersion}}, nil
	}), nil
}

// controllers adds those of revisions, in both scopes.
func controllers(ctx context.Context, d Deps) error {
	engine := func(rules phase.Rules) *phase.Engine {
		return &phase.Engine{Client: d.Live, Mapper: d.Manager.GetRESTMapper(), Watch: d.Watches, Rules: rules, ForceAdoption: d.Options.ForceAdoption}
	}
	for _, s := range d.Options.Scopes() {
		c, live := s.Client(d.Manager.GetClient()), s.Reader(d.Live)
		writer := func(kind string) *status.Writer { return &status.Writer{Client: c, Kind: s.GroupVersionKind(kind)} }
		events := status.Events{Recorder: d.Manager.GetEventRecorder("package-operator"), Scope: s}
		deployments := &objectdeployment.Reconciler{Scope: s, Client: c, Live: live, Clock: clock.RealClock{}, Status: writer("ObjectDeployment"), Events: events}
		sets := &objectset.Reconciler{
			Scope: s, Client: c, Live: live, Clock: clock.RealClock{}, Status: writer("ObjectSet"), Metrics: d.Metrics, Engine: engine(phase.Unclassed()), Events: events,
		}
		phases := &objectsetphase.Reconciler{
			Scope: s, Class: v1alpha1.DefaultPhaseClass, Client: c, Clock: clock.RealClock{}, Status: writer("ObjectSetPhase"), Engine: engine(phase.SameCluster()),
		}
		templates := &objecttemplate.Reconciler{
			Scope: s, Client: c, Live: d.Live, Clock: clock.RealClock{}, Status: writer("ObjectTemplate"), Engine: engine(phase.Templated()), Environment: d.Environment, Share: d.Share,
			RetryInterval: d.Options.ObjectTemplateRetryInterval, OptionalRetryInterval: d.Options.ObjectTemplateOptionalRetryInterval,
		}
		err := errors.Join(deployments.SetupWithManager(ctx, d.Manager), sets.SetupWithManager(d.Manager, d.Watches))
		if !d.Options.Bootstrap {
			err = errors.Join(err, templates.SetupWithManager(d.Manager, d.Watches), phases.SetupWithManager(d.Manager, d.Watches))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
