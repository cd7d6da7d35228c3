package provider

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"hcp.internal/platform/internal/kube/process"
)

// Options are the settings of the process.
type Options struct {
	Namespace   string // of the hosted control plane; nothing outside of it is read or written
	Kubeconfig  string // of the management cluster; empty: the one that the pod runs in
	MetricsAddr string
	HealthAddr  string
	LeaderElect bool
}

// Command is capi-provider-local.
func Command() *cobra.Command {
	o := Options{}
	cmd := &cobra.Command{
		Use:   "capi-provider-local",
		Short: "Infrastructure provider of Cluster API for platform Local: machines are privileged pods",
		Example: `  # on your machine, for the hosted cluster clusters/demo
  capi-provider-local --namespace=clusters-demo --kubeconfig=management.kubeconfig --metrics-addr=0 --health-addr=0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Namespace == "" {
				return errors.New("--namespace must be given: the namespace of the hosted control plane")
			}
			cfg, err := process.Connect(cmd.Context(), o.Kubeconfig, FieldOwner)
			if err != nil {
				return err
			}
			mgr, err := newManager(cfg, o)
			if err != nil {
				return err
			}
			ctrl.Log.Info("starting", "namespace", o.Namespace)
			return mgr.Start(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Namespace, "namespace", os.Getenv("MY_NAMESPACE"), "namespace of the hosted control plane")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	f.StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "address of the metrics; 0 for none")
	f.StringVar(&o.HealthAddr, "health-addr", ":9440", "address of /healthz and /readyz; 0 for none")
	f.BoolVar(&o.LeaderElect, "leader-elect", true, "take the lease "+LeaseName+" before doing anything")
	return cmd
}
