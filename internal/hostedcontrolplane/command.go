package hostedcontrolplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/controlplane"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/controlplane/etcd/defrag"
	"hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/controlplane/openshift/oauthserver/issuers"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/fresh"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/kube/skew"
	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/platform/privatelinks"
	"hcp.internal/platform/internal/release"
)

// Options of the process, from flags and environment.
type Options struct {
	Namespace            string
	DeploymentName       string
	Kubeconfig           string
	MetricsAddr          string
	HealthAddr           string
	LeaderElect          bool
	EnableCIDebugOutput  bool
	RegistryOverrides    string
	ImageOverrides       string
	FeatureGates         string
	HCCOImage            string
	Socks5ProxyImage     string
	ProberImage          string
	TokenMinterImage     string
	OperatorImage        string
	OperateOnRelease     string
	MirrorOverrides      string
	MetricsSet           string
	CertificateValidity  string
	CertificateAlgorithm string
	PodName              string

	// started is called when the control plane has been ready for a while; nil: nobody wants to know.
	started func()
	// bootstrap makes the first objects of the hosted cluster in place of the component of kube-apiserver, for tests.
	bootstrap func(ctx context.Context, kubeconfig []byte) error
}

// environment variables of the process.
const (
	envMirrors          = "OPENSHIFT_IMG_OVERRIDES"
	envMetricsSet       = "METRICS_SET"
	envOperatorImage    = "CONTROL_PLANE_OPERATOR_IMAGE"
	envHCCOImage        = "HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE"
	envSocks5Image      = "SOCKS5_PROXY_IMAGE"
	envProberImage      = "AVAILABILITY_PROBER_IMAGE"
	envTokenMinterImage = "TOKEN_MINTER_IMAGE"
	envValidity         = "CERTIFICATE_VALIDITY"
	envKeyAlgorithm     = "CERTIFICATE_KEY_ALGORITHM"
	envNamespace        = "MY_NAMESPACE"
	envCertRotation     = "CERT_ROTATION_SCALE"
	envPodName          = "POD_NAME"
)

// The process counts as started some time after its control plane is ready, when the passes that this causes are over.
const (
	startTail    = 5 * time.Second
	startLongest = 10 * time.Minute
)

func (o *Options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", os.Getenv(envNamespace), "Control plane namespace to work in (default $"+envNamespace+")")
	flags.StringVar(&o.DeploymentName, "deployment-name", "control-plane-operator", "Name of the Deployment that runs this process")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	flags.StringVar(&o.MetricsAddr, "metrics-addr", "0.0.0.0:8080", "Address to serve metrics on; 0 serves none")
	flags.StringVar(&o.HealthAddr, "health-probe-addr", ":6060", "Address to serve /healthz and /readyz on; 0 serves none")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "Take a lease before working, so that two processes never work at once")
	flags.BoolVar(&o.EnableCIDebugOutput, "enable-ci-debug-output", false, "Make components log more")
	flags.StringVar(&o.RegistryOverrides, "registry-overrides", "", "Registries to replace in image references: source=destination,…")
	flags.StringVar(&o.ImageOverrides, "image-overrides", "", "Images to use for tags of the release: tag=image,…")
	flags.StringVar(&o.FeatureGates, "feature-gates", "", "Feature gates of the operator; none exist yet, the flag is accepted so that manifests carry over")
	flags.StringVar(&o.HCCOImage, "hosted-cluster-config-operator-image", os.Getenv(envHCCOImage), "Image for the tag of that name, if the release has none")
	flags.StringVar(&o.Socks5ProxyImage, "socks5-proxy-image", os.Getenv(envSocks5Image), "Image for the tag socks5-proxy, if the release has none")
	flags.StringVar(&o.ProberImage, "availability-prober-image", os.Getenv(envProberImage), "Image for the tag of that name, if the release has none")
	flags.StringVar(&o.TokenMinterImage, "token-minter-image", os.Getenv(envTokenMinterImage), "Image for the tag of that name, if the release has none")
}

func (o *Options) readEnvironment() {
	o.OperateOnRelease, o.MirrorOverrides, o.MetricsSet = os.Getenv(releaseimage.EnvOperateOn), os.Getenv(envMirrors), os.Getenv(envMetricsSet)
	o.OperatorImage, o.PodName = os.Getenv(envOperatorImage), os.Getenv(envPodName)
	o.CertificateValidity, o.CertificateAlgorithm = os.Getenv(envValidity), os.Getenv(envKeyAlgorithm)
}

// Command is `control-plane-operator run`.
func Command() *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the operator of one hosted control plane",
		Long: `Run the operator of one hosted control plane: it keeps the Services, certificates and components of the HostedControlPlane in
--namespace, and reports in its status.`,
		Example: `  control-plane-operator run --namespace clusters-demo
  control-plane-operator run --namespace clusters-demo --kubeconfig ~/.kube/config --leader-elect=false --metrics-addr 0 --health-probe-addr 0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.readEnvironment()
			// An end that never comes is put off no longer than this; a control plane that cannot start has no use for the memory.
			started := process.StartThenRest(cmd.Context(), process.Settled)
			time.AfterFunc(startLongest, started)
			o.started = started
			cfg, err := process.Connect(cmd.Context(), o.Kubeconfig, "")
			if err != nil {
				return err
			}
			return Run(cmd.Context(), cfg, o)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// settings are the options, parsed.
type settings struct {
	images     Images
	overrides  []rewrite.Override
	mirrors    []rewrite.Mirror
	pki        pki.Spec
	management component.Management
}

func (o Options) parse() (settings, error) {
	if o.Namespace == "" {
		return settings{}, errors.New("--namespace must name the control plane namespace")
	}
	s := settings{images: Images{Own: map[string]string{operatorTag: o.OperatorImage}}}
	for tag, image := range map[string]string{
		"hosted-cluster-config-operator": o.HCCOImage, "socks5-proxy": o.Socks5ProxyImage, "availability-prober": o.ProberImage, "token-minter": o.TokenMinterImage,
		"controlplane-pki-operator": "",
	} {
		if image == "" {
			image = o.OperatorImage
		}
		s.images.Own[tag] = image
	}
	var errs []error
	var err error
	s.images.Overrides, err = pairs("--image-overrides", o.ImageOverrides)
	errs = append(errs, err)
	s.overrides, s.mirrors, err = o.registries()
	errs = append(errs, err)
	s.pki, err = o.certificates()
	errs = append(errs, err)
	s.management, err = cpo.ManagementFromEnv(os.Getenv)
	errs = append(errs, err)
	return s, errors.Join(errs...)
}

func (o Options) certificates() (pki.Spec, error) {
	var spec pki.Spec
	if o.CertificateValidity != "" {
		d, err := time.ParseDuration(o.CertificateValidity)
		if err != nil || d < pki.MinValidity {
			return spec, fmt.Errorf("%s=%q must be a duration of at least %s", envValidity, o.CertificateValidity, pki.MinValidity)
		}
		spec.Validity = d
	}
	switch kind := pki.KeyKind(o.CertificateAlgorithm); kind {
	case "", pki.ECDSA, pki.RSA:
		spec.KeyKind = kind
	default:
		return spec, fmt.Errorf("%s=%q must be %s or %s", envKeyAlgorithm, kind, pki.ECDSA, pki.RSA)
	}
	return spec, nil
}

// pairs reads "a=b,c=d".
func pairs(what, text string) (map[string]string, error) {
	out := map[string]string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" || item == "=" { // an old operator writes "=" for none
			continue
		}
		key, value, ok := strings.Cut(item, "=")
		if !ok || key == "" || value == "" {
			return nil, fmt.Errorf("%s: %q must be written as name=value", what, item)
		}
		out[key] = value
	}
	return out, nil
}

// Run works until ctx ends.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	s, err := o.parse()
	if err != nil {
		return err
	}
	var known prometheus.AlreadyRegisteredError
	clk := clock.RealClock{}
	clocks := &skew.Watch{Clock: clk}
	cfg = rest.CopyConfig(cfg)
	clocks.Attach(cfg)
	mgr, err := newManager(cfg, o)
	if err != nil {
		return err
	}
	own := fresh.New(mgr.GetClient(), clk, componentKind)
	wake := newWaker(mgr.GetCache(), o.Namespace)
	spaces := defrag.New(mgr.GetClient(), o.Namespace)
	spaces.Changed = wake.Wake
	first := &bootstrapper{clock: clk, ensure: o.bootstrap, changed: wake.Wake, background: ctx}
	if first.ensure == nil {
		first.ensure = kubeapiserver.Bootstrap
	}
	catalogs := release.NewRegistryProvider(release.Options{Overrides: s.overrides, Mirrors: s.mirrors, Clock: clk, Patience: catalogPatience})
	catalogs.Subscribe(func(types.NamespacedName) { wake.Wake(ctx) })
	r := &Reconciler{
		Client: own, Live: mgr.GetAPIReader(), Clock: clk, Events: mgr.GetEventRecorder(names.ControlPlaneOperator),
		Components: controlplane.ComponentsOf, EtcdSpaces: spaces.Spaces, MissingImages: controlplane.MissingImages,
		Releases: release.NewRegistryProvider(release.Options{Overrides: s.overrides, Mirrors: s.mirrors, Clock: clk}),
		Images:   s.images, OperateOn: o.OperateOnRelease,
		PKIBase: s.pki, PKI: &pki.Reconciler{Client: own, Owner: names.ControlPlaneOperator, Clock: clk, Keys: pki.NewKey, Rand: rand.Reader, ClockErr: clocks.Err},
		Background: ctx, Inspector: catalogs.For(types.NamespacedName{Namespace: o.Namespace, Name: "catalogs"}), Issuers: &issuers.Book{Clock: clk, Changed: wake.Wake},
		Management: newManagementCluster(mgr.GetAPIReader(), mgr.GetRESTMapper(), o.Namespace, clk, s.management),
		Context: component.WorkloadContext{
			OperatorImage: o.OperatorImage, EnableCIDebugOutput: o.EnableCIDebugOutput, MetricsSet: o.MetricsSet, RegistryOverrides: o.RegistryOverrides,
			CertRotationScale: os.Getenv(envCertRotation), BootstrapHosted: first.Ensure,
			CAPIProxyImage: os.Getenv(capiproxy.EnvImage), StoredCAPIGroups: true,
			Environment: component.EnvironmentFrom(os.Getenv),
		},
	}
	r.Checker = newHealthChecker(clk, r.told(wake.Wake))
	if o.started != nil {
		r.Ready = sync.OnceFunc(func() { time.AfterFunc(startTail, o.started) })
	}
	if err := errors.Join(setup(mgr, r, wake), r.setupCloud(mgr, o), privatelinks.Setup(mgr, apply.New(mgr.GetClient(), names.ControlPlaneOperator), clk, os.Getenv)); err != nil {
		return err
	}
	if err := mgr.Add(spaces); err != nil {
		return fmt.Errorf("adding the defragmentation of etcd: %w", err)
	}
	for _, collector := range []prometheus.Collector{pki.NewExpiry(mgr.GetClient(), o.Namespace), spaces} {
		if err := metrics.Registry.Register(collector); err != nil && !errors.As(err, &known) {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the operator: %w", err)
	}
	return nil
}

// registries reads --registry-overrides, and the mirrors of the management cluster: source=mirror,source=othermirror,…
func (o Options) registries() ([]rewrite.Override, []rewrite.Mirror, error) {
	overrides, err := rewrite.ParseOverrides(strings.TrimPrefix(o.RegistryOverrides, "="))
	if err != nil {
		return nil, nil, fmt.Errorf("--registry-overrides: %w", err)
	}
	pairs, err := rewrite.ParseOverrides(strings.TrimPrefix(o.MirrorOverrides, "="))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", envMirrors, err)
	}
	var mirrors []rewrite.Mirror
	for _, p := range pairs {
		mirrors = append(mirrors, rewrite.Mirror{Source: p.Source, Mirrors: []string{p.To}})
	}
	return overrides, mirrors, nil
}
