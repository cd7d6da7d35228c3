// Package process is what the two programs of packages have in common, the operator and the connector: flags, environment variables, and how their
// manager is set up.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"hcp.internal/platform/internal/kube/hotloop"
	"hcp.internal/platform/internal/kube/leader"
	"hcp.internal/platform/internal/kube/mapper"
	"hcp.internal/platform/internal/kube/queue"
	"hcp.internal/platform/internal/memory"
)

// gcPercent trades processor time for memory. Caches are most of the heap and live long; what a pass allocates is small beside them, so that
// collecting more than twice as often costs some 4 % of the processor time of a rollout. Of the connector there is one for each hosted cluster.
const gcPercent = 40

// Config finds the API server: from a kubeconfig, KUBECONFIG, or the credentials of the pod.
func Config(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (give --kubeconfig outside of it): %w", err)
	}
	cfg.QPS = -1 // priority and fairness of the API server does this job
	return cfg, nil
}

// NewManager makes the manager of a program, with a lease of that name in the namespace of o. of says what differs: scheme, cache and client.
//
// Ready says that the process works. What a cluster that it serves is up to is in the status of objects.
func NewManager(cfg *rest.Config, o Options, lease string, of ctrl.Options, loops *hotloop.Detector) (ctrl.Manager, error) {
	of.Metrics = metricsserver.Options{BindAddress: o.MetricsAddr}
	of.HealthProbeBindAddress, of.PprofBindAddress = o.HealthAddr, o.PprofAddr
	of.LeaderElection, of.LeaderElectionID, of.LeaderElectionNamespace, of.LeaderElectionReleaseOnCancel = o.LeaderElection, lease, o.Namespace, true
	of.LeaseDuration, of.RenewDeadline, of.RetryPeriod = ptr.To(leader.Duration), ptr.To(leader.RenewDeadline), ptr.To(leader.RetryPeriod)
	if o.LeaderElection && o.Namespace != "" {
		// Under the name of the pod: a process that was killed finds its own lease, instead of waiting until it runs out, and anew after each kill.
		cfg = leader.Fenced(cfg, o.Namespace, lease)
		lock, err := leader.Lock(cfg, o.Namespace, lease, "")
		if err != nil {
			return nil, err
		}
		of.LeaderElectionResourceLockInterface = lock
	}
	// Names are ours alone; a test may run the process twice.
	of.Controller = queue.PlainUnnamed()
	of.MapperProvider = mapper.New
	of.Cache = loops.Watch(of.Cache)
	mgr, err := ctrl.NewManager(cfg, of)
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	if err := mgr.Add(settled{mgr.GetCache()}); err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return nil, fmt.Errorf("adding health checks: %w", err)
	}
	return mgr, loops.SetupWithManager(mgr, hotloop.Reporter{Events: mgr.GetEventRecorder("package-operator")})
}

// forgetEvery is how often the process gives back the parts of its program that it has not needed lately. Those that it does need come back
// within a few milliseconds.
const forgetEvery = time.Minute

// settled gives back what only starting needed, once caches are filled, and from then on what is needed rarely.
type settled struct{ cache cache.Cache }

// NeedLeaderElection says that a process that waits for the lease has started, too.
func (settled) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s settled) Start(ctx context.Context) error {
	if !s.cache.WaitForCacheSync(ctx) {
		return nil // the process ends
	}
	debug.FreeOSMemory()
	ticker := clock.RealClock{}.NewTicker(forgetEvery)
	defer ticker.Stop()
	for {
		if _, err := memory.ForgetProgram(); err != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("memory stays larger than it could be", "reason", err.Error())
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// SpareMemory makes the process collect garbage more often, unless GOGC says how often.
func SpareMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
