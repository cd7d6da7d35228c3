package configoperator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/approver"
	"hcp.internal/platform/internal/configoperator/connections"
	"hcp.internal/platform/internal/configoperator/hcpstatus"
	"hcp.internal/platform/internal/configoperator/hold"
	"hcp.internal/platform/internal/configoperator/inplace"
	"hcp.internal/platform/internal/configoperator/kmshealth"
	"hcp.internal/platform/internal/configoperator/nodecount"
	"hcp.internal/platform/internal/configoperator/nodes"
	"hcp.internal/platform/internal/configoperator/nodetrust"
	"hcp.internal/platform/internal/configoperator/reencryption"
	"hcp.internal/platform/internal/configoperator/spot"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/release"
)

// Pauses between passes that fail. This operator starts together with the API server that it waits for, so it tries again
// soon; an attempt on a server that is down costs one refused connection.
const minBackoff, maxBackoff = 500 * time.Millisecond, 15 * time.Second

// requestPause is the least time between two passes over certificate signing requests: machines wait for them.
const requestPause = 200 * time.Millisecond

func newScheme() (*runtime.Scheme, error) {
	return process.Scheme(hyperv1.AddToScheme, clusterv1.AddToScheme, certificatesv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, discoveryv1.AddToScheme,
		rbacv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme, coordinationv1.AddToScheme)
}

// newManager puts the process together.
func newManager(management, hosted *rest.Config, o Options) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	options := process.Options{
		Name: names.ConfigOperator, Scheme: scheme, Serve: process.Serve{Metrics: o.MetricsAddr, Health: o.HealthAddr},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{o.Namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
		},
	}
	if o.LeaderElect {
		options.Lease = process.NewLease(o.Namespace, LeaseName, os.Getenv("POD_NAME"))
		if hosted, err = options.Lease.Guard(hosted); err != nil {
			return nil, err
		}
	}
	mgr, err := process.NewManager(management, options)
	if err != nil {
		return nil, err
	}
	hostedAPI, err := hostedClient(hosted, mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	uncached, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("building a client of the management cluster: %w", err)
	}
	for _, controller := range []struct {
		wanted bool
		add    func() error
	}{
		{o.enabled(resourcesController), func() error { return addResources(mgr, uncached, hostedAPI, o) }},
		{o.enabled(connections.Controller), func() error { return addConnections(mgr, uncached, hostedAPI, hosted, o) }},
		{o.enabled(approver.Controller), func() error { return addApprover(mgr, uncached, hostedAPI, o) }},
		{o.enabled(nodes.Controller), func() error { return addNodes(mgr, hostedAPI) }},
		{o.enabled(spot.Controller), func() error { return addSpot(mgr, hostedAPI) }},
		{o.enabled(nodetrust.Controller), func() error { return addNodeTrust(mgr, uncached, hostedAPI, o) }},
		{true, func() error { return addInPlace(mgr, uncached, hostedAPI, o) }},
		{o.enabled(nodecount.Controller) && o.CountNodes, func() error { return addNodeCount(mgr, uncached, hostedAPI, o) }},
		{o.enabled(hcpstatus.Controller) && release.IsPayload(o.Version), func() error { return addStatus(mgr, uncached, hostedAPI, o) }},
		{o.enabled(kmshealth.Controller), func() error { return addKMSHealth(mgr, uncached, hosted, o) }},
		{o.enabled(reencryption.Controller), func() error { return addReencryption(mgr, uncached, hostedAPI, o) }},
	} {
		if !controller.wanted {
			continue
		}
		if err := controller.add(); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}

// addResources adds the controller of package resources.
func addResources(mgr manager.Manager, management client.Client, hosted client.WithWatch, o Options) error {
	changed := make(chan struct{}, 1)
	drift := NewDrift(hosted, changed)
	if err := mgr.Add(drift); err != nil {
		return fmt.Errorf("adding the watches of the hosted cluster: %w", err)
	}
	nodes := newDrift(hosted, changed)
	nodes.comings = true // their heartbeats call for nothing
	nodes.Ensure(corev1.SchemeGroupVersion.WithKind("Node"))
	if err := mgr.Add(nodes); err != nil {
		return fmt.Errorf("adding the watch of nodes: %w", err)
	}
	payload, err := o.payload()
	if err != nil {
		return err
	}
	r := &Reconciler{
		Management: management, Hosted: hosted, Clock: clock.RealClock{}, OperatesOn: o.OperatesOn, Watch: drift.Ensure, Payload: payload,
		Images: o.Images, TunnelHost: o.KonnectivityAddress, TunnelPort: o.KonnectivityPort,
	}
	err = builder.ControllerManagedBy(mgr).
		Named(resourcesController).
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(isOurs(o.HostedControlPlane), matters())).
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			go forward(ctx, changed, driftPause, queue, mgr.GetCache(), o)
			return nil
		})).
		WithOptions(oneByOne()).
		Complete(outcome.Wrap(r))
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", resourcesController, err)
	}
	return nil
}

// addConnections adds the controller that finds out who reaches whom. It goes by time alone: what it looks at changes by itself.
func addConnections(mgr manager.Manager, management, hosted client.Client, cfg *rest.Config, o Options) error {
	logs, err := connections.ReadLogs(bounded(cfg))
	if err != nil {
		return err
	}
	err = builder.ControllerManagedBy(mgr).
		Named(connections.Controller).
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(isOurs(o.HostedControlPlane), predicate.GenerationChangedPredicate{})).
		WithOptions(oneByOne()).
		Complete(outcome.Wrap(&connections.Reconciler{
			Management: management, Hosted: hosted, Logs: logs, Clock: clock.RealClock{},
			Hold: hold.For(o.OperatesOn),
		}))
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", connections.Controller, err)
	}
	return nil
}

// addStatus adds the controller that tells how far the hosted cluster of an OpenShift payload is.
func addStatus(mgr manager.Manager, management client.Client, hosted client.WithWatch, o Options) error {
	changed := make(chan struct{}, 1)
	told := newDrift(hosted, changed)
	told.Ensure(hcpstatus.ClusterVersion)
	told.Ensure(hcpstatus.Authentication)
	if err := mgr.Add(told); err != nil {
		return fmt.Errorf("adding the watch of the hosted cluster's version: %w", err)
	}
	err := builder.ControllerManagedBy(mgr).
		Named(hcpstatus.Controller).
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(isOurs(o.HostedControlPlane), predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			go forward(ctx, changed, driftPause, queue, mgr.GetCache(), o)
			return nil
		})).
		WithOptions(oneByOne()).
		Complete(outcome.Wrap(&hcpstatus.Reconciler{Management: management, Hosted: hosted, Clock: clock.RealClock{}, Hold: hold.For(o.OperatesOn)}))
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", hcpstatus.Controller, err)
	}
	return nil
}

// addApprover adds the controller that decides on certificates of nodes.
func addApprover(mgr manager.Manager, management client.Client, hosted client.WithWatch, o Options) error {
	changed := make(chan struct{}, 1)
	requests := newDrift(hosted, changed)
	if err := mgr.Add(requests); err != nil {
		return fmt.Errorf("adding the watch of certificate signing requests: %w", err)
	}
	pending := approver.NewPending(o.Namespace)
	if err := ctrlmetrics.Registry.Register(pending); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) { // by another operator of a test
		return fmt.Errorf("registering metrics of certificate requests: %w", err)
	}
	r := &approver.Reconciler{
		Pending: pending, Management: management, Hosted: hosted, Clock: clock.RealClock{},
		Watch: func() { requests.Ensure(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")) },
		Hold:  hold.For(o.OperatesOn),
	}
	err := builder.ControllerManagedBy(mgr).
		Named(approver.Controller).
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(isOurs(o.HostedControlPlane), predicate.Or(matters(), predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			go forward(ctx, changed, requestPause, queue, mgr.GetCache(), o)
			return nil
		})).
		WithOptions(oneByOne()).
		Complete(outcome.Wrap(r))
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", approver.Controller, err)
	}
	return nil
}

// machinesInterval is how often a management cluster without Machines is asked again.
const machinesInterval = time.Minute

// withMachines adds controllers that watch kinds of Cluster API: now, or once the management cluster has these. One for control planes alone need not have them, and
// may get them later.
func withMachines(mgr manager.Manager, interval time.Duration, add func() error) error {
	if ok, err := servesMachines(mgr); err != nil {
		return err
	} else if ok {
		return add()
	}
	ctrl.Log.Info("the management cluster has no Machines; controllers of nodes are off until it has")
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		err := wait.PollUntilContextCancel(ctx, interval, false, func(context.Context) (bool, error) {
			ok, err := servesMachines(mgr)
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "waiting for Machines")
			}
			return ok, nil
		})
		if err != nil {
			return nil //nolint:nilerr // because the process ends
		}
		return add()
	}))
}

// servesMachines tells whether the management cluster has Cluster API.
func servesMachines(mgr manager.Manager) (bool, error) {
	_, err := mgr.GetRESTMapper().RESTMapping(clusterv1.GroupVersion.WithKind("Machine").GroupKind(), clusterv1.GroupVersion.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking whether the management cluster has Machines: %w", err)
	}
	return true, nil
}

// addSpot adds the controller that has machines replaced which the cloud takes away.
func addSpot(mgr manager.Manager, hosted client.Reader) error {
	return withMachines(mgr, machinesInterval, func() error {
		err := builder.ControllerManagedBy(mgr).
			Named(spot.Controller).
			For(&clusterv1.Machine{}, builder.WithPredicates(spot.Matters())).
			WithOptions(oneByOne()).
			Complete(outcome.Wrap(&spot.Reconciler{Management: mgr.GetClient(), Hosted: hosted}))
		if err != nil {
			return fmt.Errorf("adding controller %s: %w", spot.Controller, err)
		}
		return nil
	})
}

// addNodes adds the controller that labels new nodes.
func addNodes(mgr manager.Manager, hosted client.Client) error {
	return withMachines(mgr, machinesInterval, func() error {
		err := builder.ControllerManagedBy(mgr).
			Named(nodes.Controller).
			For(&clusterv1.Machine{}, builder.WithPredicates(nodes.Matters())).
			WithOptions(oneByOne()).
			Complete(outcome.Wrap(&nodes.Reconciler{Management: mgr.GetClient(), Hosted: hosted}))
		if err != nil {
			return fmt.Errorf("adding controller %s: %w", nodes.Controller, err)
		}
		return nil
	})
}

// addNodeTrust adds the controller that has nodes trust new authorities. It goes by time, and by the annotations that ask for new ones.
func addNodeTrust(mgr manager.Manager, management, hosted client.Client, o Options) error {
	image := o.Images[images.APIProxy] // that of our programs on nodes
	if release.IsPayload(o.Version) {
		image = o.Image
	}
	err := builder.ControllerManagedBy(mgr).
		Named(nodetrust.Controller).
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(isOurs(o.HostedControlPlane), predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(oneByOne()).
		Complete(outcome.Wrap(&nodetrust.Reconciler{Management: management, Hosted: hosted, Clock: clock.RealClock{}, Hold: hold.For(o.OperatesOn), Image: image}))
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", nodetrust.Controller, err)
	}
	return nil
}

// addNodeCount adds the controller that tells how many nodes there are.
func addNodeCount(mgr manager.Manager, management client.Client, hosted client.WithWatch, o Options) error {
	changed := make(chan struct{}, 1)
	nodes := newDrift(hosted, changed)
	nodes.comings = true // their heartbeats call for nothing
	nodes.Ensure(corev1.SchemeGroupVersion.WithKind("Node"))
	if err := mgr.Add(nodes); err != nil {
		return fmt.Errorf("adding the watch of nodes to count: %w", err)
	}
	err := builder.ControllerManagedBy(mgr).
		Named(nodecount.Controller).
		For(&hyperv1.HostedControlPlane{}, builder.WithPredicates(isOurs(o.HostedControlPlane), predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			go forward(ctx, changed, driftPause, queue, mgr.GetCache(), o)
			return nil
		})).
		WithOptions(oneByOne()).
		Complete(outcome.Wrap(&nodecount.Reconciler{Management: management, Hosted: hosted, Clock: clock.RealClock{}, Hold: hold.For(o.OperatesOn)}))
	if err != nil {
		return fmt.Errorf("adding controller %s: %w", nodecount.Controller, err)
	}
	return nil
}

// addInPlace adds the controllers that change machines in place.
func addInPlace(mgr manager.Manager, management, hosted client.Client, o Options) error {
	if !o.enabled(inplace.Controller) && !o.enabled(inplace.DrainController) {
		return nil
	}
	return withMachines(mgr, machinesInterval, func() error { return addInPlaceNow(mgr, management, hosted, o) })
}

func addInPlaceNow(mgr manager.Manager, management, hosted client.Client, o Options) error {
	image := o.Images[images.MachineConfig]
	payload, err := o.payload()
	if err != nil {
		return err
	}
	var releases release.Provider
	if payload != nil {
		releases = payload.Releases
	}
	holds := hold.For("") // any release: what nodes are told is of their own, not of this process's
	for name, r := range map[string]reconcile.Reconciler{
		inplace.Controller:      &inplace.Reconciler{Management: management, Hosted: hosted, Image: image, Releases: releases, Clock: clock.RealClock{}, Hold: holds},
		inplace.DrainController: &inplace.Drainer{Management: management, Hosted: hosted, Clock: clock.RealClock{}, Hold: holds},
	} {
		if !o.enabled(name) {
			continue
		}
		err := builder.ControllerManagedBy(mgr).
			Named(name).
			For(&clusterv1.MachineSet{}, builder.WithPredicates(inplace.Matters())).
			Watches(&hyperv1.HostedControlPlane{}, handler.EnqueueRequestsFromMapFunc(inplace.SetsOf(mgr.GetClient())),
				builder.WithPredicates(isOurs(o.HostedControlPlane), predicate.GenerationChangedPredicate{})).
			WithOptions(oneByOne()).
			Complete(outcome.Wrap(r))
		if err != nil {
			return fmt.Errorf("adding controller %s: %w", name, err)
		}
	}
	return nil
}

func oneByOne() controller.Options { return process.Workers(1, minBackoff, maxBackoff) }

// forward turns changes in the hosted cluster into passes, at most one in pause.
func forward(ctx context.Context, changed <-chan struct{}, pause time.Duration, queue workqueue.TypedRateLimitingInterface[reconcile.Request], reader client.Reader, o Options) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		list := &hyperv1.HostedControlPlaneList{}
		if err := reader.List(ctx, list, client.InNamespace(o.Namespace)); err == nil {
			for i := range list.Items {
				if name := list.Items[i].Name; o.HostedControlPlane == "" || o.HostedControlPlane == name {
					queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: name}}, pause)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func isOurs(name string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return name == "" || o.GetName() == name })
}

// matters keeps the many status changes of a rollout from causing passes: only what a plan looks at counts, and our own
// condition, should somebody change it.
func matters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*hyperv1.HostedControlPlane)
		after, ok2 := e.ObjectNew.(*hyperv1.HostedControlPlane)
		return !ok1 || !ok2 || differ(before, after)
	}}
}

func differ(before, after *hyperv1.HostedControlPlane) bool {
	ours := hyperv1.ConfigOperatorReconciliationSucceeded
	return before.UID != after.UID || before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.Status.ControlPlaneEndpoint != after.Status.ControlPlaneEndpoint ||
		!equality.Semantic.DeepEqual(conditions.Get(before.Status.Conditions, ours), conditions.Get(after.Status.Conditions, ours))
}
