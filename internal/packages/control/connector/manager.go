package connector

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/hotloop"
	"hcp.internal/platform/internal/kube/process"
	packagemanager "hcp.internal/platform/internal/packages/control/manager"
	"hcp.internal/platform/internal/packages/control/program"
	"hcp.internal/platform/internal/packages/engine/scope"
)

// New sets the process up on the management cluster of cfg; its Start runs it. The target is not asked for anything.
func New(cfg *rest.Config, o Options) (ctrl.Manager, error) {
	return build(cfg, o, DefaultLimits(), DefaultTiming())
}

func build(cfg *rest.Config, o Options, limits Limits, timing Timing) (ctrl.Manager, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = Name
	scheme, err := packagemanager.NewScheme()
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	mgr, err := program.NewManager(cfg, o.Options, LeaseName, process.Options{Scheme: scheme, Cache: cacheOptions(o), HotLoops: hotloop.New(scheme, clock.RealClock{})})
	if err != nil {
		return nil, err
	}
	target := newTarget(o.TargetKubeconfig, cfg, limits, timing, clock.RealClock{})
	scopes := []scope.Scope{scope.Namespaced}
	if o.Namespace == "" {
		scopes = scope.Both()
	}
	var reconcilers []*reconciler
	for _, s := range scopes {
		r := newReconciler(s, o.Class, o.ForceAdoption, mgr.GetClient(), target, clock.RealClock{})
		if err := r.setUp(mgr); err != nil {
			return nil, err
		}
		reconcilers = append(reconcilers, r)
	}
	target.opened = func(s *session) {
		for _, r := range reconcilers {
			r.opened(s)
		}
	}
	target.changed = func(ctx context.Context) {
		for _, r := range reconcilers {
			r.changed(ctx)
		}
	}
	return mgr, mgr.Add(target)
}

// cacheOptions keep of the management cluster what concerns this process: phases of its class, and who its revisions are.
func cacheOptions(o Options) cache.Options {
	ofClass := labels.SelectorFromSet(labels.Set{v1alpha1.PhaseClassLabel: o.Class})
	byObject := map[client.Object]cache.ByObject{}
	for _, s := range scope.Both() {
		if s.IsCluster() && o.Namespace != "" {
			continue
		}
		byObject[s.Object(&v1alpha1.ObjectSetPhase{})] = cache.ByObject{Label: ofClass, UnsafeDisableDeepCopy: ptr.To(true)}
		byObject[s.Object(&v1alpha1.ObjectSet{})] = cache.ByObject{Transform: identityOnly, UnsafeDisableDeepCopy: ptr.To(true)}
	}
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: byObject}
	if o.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return options
}

// identityOnly keeps of a revision what it takes to know its siblings. Its objects may be megabytes.
func identityOnly(in any) (any, error) {
	switch os := in.(type) {
	case *v1alpha1.ObjectSet:
		os.ManagedFields, os.Annotations = nil, nil
		os.Spec, os.Status = v1alpha1.ObjectSetSpec{}, v1alpha1.ObjectSetStatus{RemotePhases: os.Status.RemotePhases}
	case *v1alpha1.ClusterObjectSet:
		os.ManagedFields, os.Annotations = nil, nil
		os.Spec, os.Status = v1alpha1.ObjectSetSpec{}, v1alpha1.ObjectSetStatus{RemotePhases: os.Status.RemotePhases}
	}
	return in, nil
}
