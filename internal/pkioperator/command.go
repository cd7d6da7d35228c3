package pkioperator

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/pki"
)

// Options are the settings of the process.
type Options struct {
	Namespace          string
	HostedControlPlane string
	Kubeconfig         string        // of the management cluster; empty: the one that the pod runs in
	Day                time.Duration // what counts as a day in the life of certificates
	MetricsAddr        string
	HealthAddr         string
	LeaderElect        bool
}

// wholeDay is the longest that may count as a day.
const wholeDay = 24 * time.Hour

func (o Options) validate() error {
	var errs []error
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace must be given: the namespace of the hosted control plane"))
	}
	if o.HostedControlPlane == "" {
		errs = append(errs, errors.New("--hosted-control-plane must be given: the name of the HostedControlPlane"))
	}
	if o.Day <= 0 || o.Day > wholeDay {
		errs = append(errs, fmt.Errorf("CERT_ROTATION_SCALE %s: must be more than 0 and at most %s", o.Day, wholeDay))
	}
	return errors.Join(errs...)
}

// Command is `control-plane-pki-operator run`.
func Command() *cobra.Command {
	o := Options{Day: wholeDay}
	cmd := &cobra.Command{
		Use:     "run",
		Aliases: []string{"operator"}, // what manifests of OpenShift payloads call it
		Short:   "Run the operator of certificates for break-glass access to one hosted cluster",
		Long: `Run the operator of certificates for those who cannot log in to a hosted cluster in any other way. It keeps two signers,
approves and signs CertificateSigningRequests for them when the control plane namespace has a CertificateSigningRequestApproval
of the same name, and carries out CertificateRevocationRequests.`,
		Example: `  control-plane-pki-operator run --namespace clusters-demo --hosted-control-plane demo
  control-plane-pki-operator run --namespace clusters-demo --hosted-control-plane demo --kubeconfig ~/.kube/config --metrics-addr 0 --health-addr 0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if text := os.Getenv("CERT_ROTATION_SCALE"); text != "" {
				day, err := time.ParseDuration(text)
				if err != nil {
					return fmt.Errorf("CERT_ROTATION_SCALE %q must be a duration such as 24h", text)
				}
				o.Day = day
			}
			if err := o.validate(); err != nil {
				return err
			}
			cfg, err := process.Connect(cmd.Context(), o.Kubeconfig, names.PKIOperator)
			if err != nil {
				return err
			}
			mgr, err := newManager(cfg, o, config{clock: clock.RealClock{}, keys: pki.NewKey, rand: rand.Reader}, nil)
			if err != nil {
				return err
			}
			ctrl.Log.Info("starting", "namespace", o.Namespace, "day", o.Day)
			return mgr.Start(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Namespace, "namespace", os.Getenv("HOSTED_CONTROL_PLANE_NAMESPACE"), "namespace of the hosted control plane (default $HOSTED_CONTROL_PLANE_NAMESPACE)")
	f.StringVar(&o.HostedControlPlane, "hosted-control-plane", os.Getenv("HOSTED_CONTROL_PLANE_NAME"), "name of the HostedControlPlane (default $HOSTED_CONTROL_PLANE_NAME)")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	f.StringVar(&o.MetricsAddr, "metrics-addr", ":8443", "address of the metrics; 0 for none")
	f.StringVar(&o.HealthAddr, "health-addr", ":6060", "address of /healthz; 0 for none")
	f.String("config", "", "accepted, so that manifests of OpenShift payloads carry over: what is in the file is fixed here")
	f.StringSlice("terminate-on-files", nil, "accepted, as --config: the process is restarted with its pod")
	f.BoolVar(&o.LeaderElect, "leader-elect", true, "take the lease "+leaseName+" before doing anything")
	return cmd
}
