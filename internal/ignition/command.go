package ignition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/ignition/child"
	"hcp.internal/platform/internal/ignition/imagefiles"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/ignition/server"
	"hcp.internal/platform/internal/ignition/tokens"
	"hcp.internal/platform/internal/ignition/tools"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/release"
)

// Options are the settings of the process.
type Options struct {
	Namespace         string // the control plane namespace
	Kubeconfig        string // of the management cluster; empty: the one that the pod runs in
	Addr              string
	CertFile, KeyFile string
	RegistryOverrides string
	Mirrors           string // as RegistryOverrides; those of the management cluster
	MetricsAddr       string
	HealthAddr        string

	// WorkDir and FeatureGateManifest are for OpenShift releases. Platform is there so that one Deployment fits every operator: the HostedControlPlane says it.
	Platform, WorkDir, FeatureGateManifest string
	// Alone: nothing else starts processes in this one, so that all of its children are those of a release's tools.
	Alone bool

	// securePort and insecurePort are those of a release's machine-config-server, for tests, several of which may run on a machine; 0: the usual ones.
	securePort, insecurePort int
}

func (o Options) validate() error {
	var errs []error
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace, or the environment variable MY_NAMESPACE, must be given: the namespace of the hosted control plane"))
	}
	if o.CertFile == "" || o.KeyFile == "" {
		errs = append(errs, errors.New("--cert-file and --key-file must be given: the certificate that machines trust"))
	}
	return errors.Join(errs...)
}

// Command is `ignition-server`, which also `control-plane-operator ignition-server` starts.
func Command() *cobra.Command {
	o := Options{}
	cmd := &cobra.Command{
		Use:   names.IgnitionServer,
		Short: "Serve the configuration that new machines start with",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			cfg, err := process.Connect(cmd.Context(), o.Kubeconfig, "")
			if err != nil {
				return err
			}
			o.Alone = true
			o.Mirrors = strings.TrimPrefix(os.Getenv("OPENSHIFT_IMG_OVERRIDES"), "=") // which is all of it when there are none
			return run(cmd.Context(), cfg, o, ctrlmetrics.Registry)
		},
	}
	const secretDir = "/var/run/secrets/ignition/serving-cert/"
	f := cmd.Flags()
	f.StringVar(&o.Namespace, "namespace", os.Getenv("MY_NAMESPACE"), "namespace of the hosted control plane")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	f.StringVar(&o.Addr, "addr", "0.0.0.0:9090", "address of the server")
	f.StringVar(&o.CertFile, "cert-file", secretDir+"tls.crt", "certificate of the server; read again when it changes")
	f.StringVar(&o.KeyFile, "key-file", secretDir+"tls.key", "key of the certificate")
	f.StringVar(&o.RegistryOverrides, "registry-overrides", "", "source=mirror,... of registries, for release images; machines get the images' own names")
	f.StringVar(&o.MetricsAddr, "metrics-addr", "0.0.0.0:8080", "address of the metrics; 0 for none")
	f.StringVar(&o.HealthAddr, "health-addr", ":6060", "address of /healthz and /readyz of the process; 0 for none")
	f.StringVar(&o.Platform, "platform", "", "accepted and not needed: the HostedControlPlane says it")
	f.StringVar(&o.WorkDir, "work-dir", "/payloads", "folder for making payloads, and for what was made; for OpenShift releases")
	f.StringVar(&o.FeatureGateManifest, "feature-gate-manifest", "/shared/99_feature-gate.yaml", "file with the FeatureGate that the user wants; for OpenShift releases")
	return cmd
}

// run is the process. It ends with ctx.
func run(ctx context.Context, cfg *rest.Config, o Options, metrics prometheus.Registerer) error {
	mirrors, err := mirrorsOf("--registry-overrides", o.RegistryOverrides)
	if err != nil {
		return err
	}
	more, err := mirrorsOf("the environment variable OPENSHIFT_IMG_OVERRIDES", o.Mirrors)
	if err != nil {
		return err
	}
	mirrors = append(mirrors, more...)
	store, ready := &tokens.Store{}, &readiness{}
	mgr, err := newManager(cfg, o, ready.check)
	if err != nil {
		return err
	}
	certificate, err := certwatcher.New(o.CertFile, o.KeyFile)
	if err != nil {
		return fmt.Errorf("reading --cert-file and --key-file: %w", err)
	}
	live, err := client.New(cfg, client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("building a client of the management cluster: %w", err)
	}
	clk := clock.RealClock{}
	noted := newNotes(live, o.Namespace, clk, mgr.GetEventRecorder(names.IgnitionServer))
	reconciler := &Reconciler{
		Client: live, Live: live, Namespace: o.Namespace, Clock: clk, Tokens: store,
		Releases: release.NewRegistryProvider(release.Options{Mirrors: mirrors, Clock: clk}),
		NewToken: uuid.NewString, Kubernetes: payload.Kubernetes{}, OpenShift: openShiftGenerator(o, mirrors, clk), FeatureGates: o.FeatureGateManifest,
		Metrics: NewMetrics(metrics),
	}
	names, err := metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("building a client of the management cluster: %w", err)
	}
	secrets := newListed(mgr.GetClient(), names, o.Namespace, ready.begin, noted.forget)
	reconciler.Listed = secrets.Has
	handler := &server.Handler{
		Tokens: store, Clock: clk, Limiter: &server.Limiter{}, Served: noted.served, Failed: noted.failed, Metrics: server.NewMetrics(metrics),
	}
	l, err := listen(ctx, o.Addr)
	if err != nil {
		return err
	}
	err = errors.Join(
		addReconciler(mgr, reconciler, ready, secrets),
		mgr.Add(secrets),
		mgr.Add(noted),
		mgr.Add(certificate),
		addServer(mgr, l, handler, certificate.GetCertificate),
	)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

// mirrorsOf turns overrides into mirrors: both find the release, but only overrides would also change the images that are in it, and
// machines have mirrors of their own.
func mirrorsOf(from, overrides string) ([]rewrite.Mirror, error) {
	list, err := rewrite.ParseOverrides(overrides)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	var mirrors []rewrite.Mirror
	for _, o := range list {
		mirrors = append(mirrors, rewrite.Mirror{Source: o.Source, Mirrors: []string{o.To}})
	}
	return mirrors, nil
}

// openShiftGenerator runs the tools of releases in --work-dir, which nobody else uses.
func openShiftGenerator(o Options, mirrors []rewrite.Mirror, clk clock.PassiveClock) payload.Generator {
	return &tools.Generator{
		Work:   o.WorkDir,
		Images: &imagefiles.Store{Root: filepath.Join(o.WorkDir, "images"), Mirrors: mirrors},
		Runner: child.Runner{Orphans: o.Alone}, Clock: clk, HostRHEL: tools.HostRHEL(), SecurePort: o.securePort, InsecurePort: o.insecurePort,
	}
}
