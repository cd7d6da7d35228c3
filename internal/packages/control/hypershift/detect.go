// Package hypershift adds what packages can do on a management cluster of hosted control planes: HostedClusterPackages, and a connector beside
// every control plane, through which phases of class hosted-cluster get into the hosted cluster. It is added when the API of HostedClusters
// is there; when it comes later, the process ends so that its next start finds it.
package hypershift

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/packages/control/hostedclusterpackage"
	packagemanager "hcp.internal/platform/internal/packages/control/manager"
)

// look is how often a cluster without HostedClusters is looked at again.
const look = 10 * time.Second

// hostedCluster is the kind whose presence tells a management cluster of hosted control planes.
var hostedCluster = hyperv1.GroupVersion.WithKind("HostedCluster")

// Extend adds the controllers, or what waits for the API that they need.
func Extend(ctx context.Context, d packagemanager.Deps) error {
	if err := (&Orphans{Client: d.Manager.GetClient(), Live: d.Live}).SetupWithManager(d.Manager); err != nil {
		return err
	}
	there, err := served(d.Manager.GetRESTMapper())
	if err != nil {
		return err
	}
	if !there {
		return d.Manager.Add(&waiter{mapper: d.Manager.GetRESTMapper(), clock: clock.RealClock{}})
	}
	if err := hyperv1.AddToScheme(d.Manager.GetScheme()); err != nil {
		return fmt.Errorf("adding HostedClusters to the scheme: %w", err)
	}
	fleets := &hostedclusterpackage.Reconciler{
		Client: d.Manager.GetClient(), Live: d.Live, Namespace: d.Options.Namespace, Clock: clock.RealClock{},
		Events: d.Manager.GetEventRecorder("package-operator"), Metrics: d.Metrics,
		Journal: &journal.Book{Client: d.Manager.GetClient(), Live: d.Live, Clock: clock.RealClock{}, Namespace: d.Options.Namespace},
	}
	if err := fleets.SetupWithManager(d.Manager); err != nil {
		return err
	}
	return setUpConnectors(ctx, d)
}

// served tells whether the API server has HostedClusters.
func served(mapper meta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(hostedCluster.GroupKind(), hostedCluster.Version)
	if err == nil {
		return true, nil
	}
	if meta.IsNoMatchError(err) || discovery.IsGroupDiscoveryFailedError(err) || isNotServed(err) {
		return false, nil
	}
	return false, fmt.Errorf("looking for HostedClusters: %w", err)
}

// waiter ends the process when HostedClusters appear.
type waiter struct {
	mapper meta.RESTMapper
	clock  clock.WithTicker
}

var _ manager.LeaderElectionRunnable = (*waiter)(nil)

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (w *waiter) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. It returns nil when ctx ends.
func (w *waiter) Start(ctx context.Context) error {
	ticker := w.clock.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		there, err := served(w.mapper)
		if err != nil {
			return err
		}
		if there {
			ctrl.LoggerFrom(ctx).Info("detected hypershift installation after setup completed")
			return packagemanager.ErrRestart
		}
	}
}

// isNotServed unwraps what the lazy mapper says of a group that isn't there.
func isNotServed(err error) bool {
	for e := err; e != nil; {
		if meta.IsNoMatchError(e) || discovery.IsGroupDiscoveryFailedError(e) {
			return true
		}
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			return false
		}
		e = u.Unwrap()
	}
	return false
}
