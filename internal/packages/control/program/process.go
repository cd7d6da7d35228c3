// Package program is what the two programs of packages have in common, the operator and the connector: flags, environment variables, and how their
// manager is set up.
package program

import (
	"os"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"hcp.internal/platform/internal/kube/process"
)

// NewManager makes the manager of a program, with a lease of that name in the namespace of o. of says what differs: scheme, cache and client.
func NewManager(cfg *rest.Config, o Options, lease string, of process.Options) (ctrl.Manager, error) {
	of.Name = "package-operator"
	of.Serve = process.Serve{Metrics: o.MetricsAddr, Secure: o.Secure, Health: o.HealthAddr, Pprof: o.PprofAddr}
	if o.LeaderElection {
		of.Lease = process.NewLease(o.Namespace, lease, os.Getenv("POD_NAME")) // without it, the name of the host, which is the pod's
	}
	mgr, err := process.NewManager(cfg, of)
	if err != nil {
		return nil, err
	}
	return mgr, process.ForgetUnused(mgr)
}
