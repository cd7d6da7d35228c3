package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	auditlogv1alpha1 "hcp.internal/api/auditlogpersistence/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/auditlogs"
	"hcp.internal/platform/internal/capiadmission"
	"hcp.internal/platform/internal/contract/capiproxy"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/hostedcluster/admission"
	"hcp.internal/platform/internal/hostedcluster/adoption"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/cloud"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/hostedcluster/metrics"
	"hcp.internal/platform/internal/hostedcluster/migration"
	"hcp.internal/platform/internal/hostedcluster/versions"
	"hcp.internal/platform/internal/hostedcluster/watches"
	"hcp.internal/platform/internal/kube/hotloop"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/oci/signature"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// leaseName is as the installed manifests and their users know it.
const leaseName = "hypershift-operator-leader-elect"

// EnvEtcdRecovery is the variable that switches the recovery of etcd's members on, when it is 1.
const EnvEtcdRecovery = "ENABLE_ETCD_RECOVERY"

// operatorContainer is the name of our container in the operator's Deployment.
const operatorContainer = "operator"

// flags are those of "hypershift-operator run".
type flags struct {
	kubeconfig                string
	namespace                 string
	podName                   string
	metricsAddr               string
	secure                    process.MetricsSecurity
	healthAddr, pprofAddr     string
	controlPlaneOperatorImage string
	registryOverrides         string
	signaturePolicy           string
	enableOCPMonitoring       bool
	enableCIDebugOutput       bool
	leaderElect               bool
	privateCAPI               bool
	capacity                  string
	etcdBackups               int
	dedicatedNodes            bool
	featureGates              map[string]string
	cloud                     cloud.Flags
}

// Command is "hypershift-operator run", with the controllers of extensions besides that of HostedClusters.
func Command(extensions ...operator.Extension) *cobra.Command {
	f := flags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the operator until it is told to stop",
		Long: `Run the operator of a management cluster: it makes a control plane for every HostedCluster.

Inside a cluster it uses the credentials of its pod. Outside of one, give it a kubeconfig, and the image from which control planes are run,
which it can't find out by itself there.`,
		Example: `  # as "hypershift install" deploys it
  hypershift-operator run --namespace hypershift --pod-name "$MY_NAME" --metrics-addr :9000

  # from a shell
  hypershift-operator run --kubeconfig ~/.kube/config --control-plane-operator-image registry.example.com/hypershift/operator:v1 --metrics-addr 127.0.0.1:9000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), extensions) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	fs.StringVar(&f.namespace, "namespace", envOr("MY_NAMESPACE", "hypershift"), "namespace that the operator runs in, for its lease")
	fs.StringVar(&f.podName, "pod-name", envOr("POD_NAME", os.Getenv("MY_NAME")), "name of the pod that the operator runs in; empty outside a cluster")
	fs.StringVar(&f.metricsAddr, "metrics-addr", ":9000", "address that metrics are served on; 0 for none")
	f.secure.AddFlags(fs)
	fs.StringVar(&f.healthAddr, "health-probe-bind-address", "0", "address that health checks are served on; 0 for none, which leaves the metrics for probes to ask")
	fs.StringVar(&f.pprofAddr, "pprof-addr", "", "address that profiles are served on, to this host alone: :PORT; empty for none")
	fs.StringVar(&f.controlPlaneOperatorImage, "control-plane-operator-image", "", "image from which control-plane operators run unless their release has one; empty: the operator's own")
	fs.StringVar(&f.registryOverrides, "registry-overrides", "", "registries to use instead of those that releases name: source=destination,…")
	fs.StringVar(&f.signaturePolicy, "image-signature-policy", "", "file with the signatures that release images need; empty: none")
	fs.BoolVar(&f.enableOCPMonitoring, "enable-ocp-cluster-monitoring", false, "label control-plane namespaces for the monitoring of an OpenShift management cluster")
	fs.BoolVar(&f.enableCIDebugOutput, "enable-ci-debug-output", false, "let control-plane operators log more")
	fs.BoolVar(&f.privateCAPI, "private-capi-types", os.Getenv(capiproxy.EnvPrivateTypes) == "true", "store the objects of Cluster API in HyperShift's own groups (default $"+capiproxy.EnvPrivateTypes+"); the kubeconfig must lead to a capi-proxy then")
	fs.StringVar(&f.capacity, "control-plane-capacity", envOr(admission.EnvMode, admission.Auto), "what to do with a control plane that finds no room on the nodes: Wait makes nothing of it until there is, Ignore leaves its pods to the scheduler, Auto waits unless an autoscaler of nodes is found")
	fs.IntVar(&f.etcdBackups, "etcd-backup-max-count", 5, "how many successful HCPEtcdBackups of a hosted cluster are kept")
	fs.BoolVar(&f.dedicatedNodes, "enable-dedicated-request-serving-isolation", true, "give hosted clusters with annotation hypershift.openshift.io/topology=dedicated-request-serving-components nodes of their own, while they have sizes ($ENABLE_SIZE_TAGGING)")
	fs.StringToStringVar(&f.featureGates, "feature-gates", nil, "single feature gates, as NAME=true|false,…, that differ from the feature set of $HYPERSHIFT_FEATURESET")
	f.cloud.Add(fs)
	fs.BoolVar(&f.leaderElect, "leader-elect", true, "wait for the lease before doing anything, so that only one operator works at a time")
	return cmd
}

func envOr(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}

// NewScheme has the kinds that the operator uses, and does with those of Cluster API what its webhooks would.
func NewScheme() (*runtime.Scheme, error) {
	return process.Scheme(clientgoscheme.AddToScheme, hyperv1.AddToScheme, schedulingv1alpha1.AddToScheme, auditlogv1alpha1.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme, capiadmission.AddToScheme)
}

func (f flags) run(ctx context.Context, extensions []operator.Extension) error {
	if f.etcdBackups < 1 {
		return fmt.Errorf("--etcd-backup-max-count must be at least 1, got %d", f.etcdBackups)
	}
	if err := f.cloud.Validate(); err != nil {
		return err
	}
	if _, err := operator.NewFeatures(os.Getenv("HYPERSHIFT_FEATURESET"), f.featureGates); err != nil {
		return err
	}
	cfg, err := process.Connect(ctx, f.kubeconfig, names.HypershiftOperator)
	if err != nil {
		return err
	}
	if f.privateCAPI {
		if err := capi.ExpectProxy(ctx, cfg); err != nil {
			return err
		}
	}
	mgr, err := f.manager(cfg)
	if err != nil {
		return err
	}
	image := f.controlPlaneOperatorImage
	if image == "" {
		if image, err = ownImage(ctx, mgr.GetAPIReader(), f.namespace, f.podName); err != nil {
			return err
		}
	}
	if err := f.setup(mgr, cfg, image, extensions); err != nil {
		return err
	}
	if inert := operator.Inert(f.featureGates); len(inert) > 0 {
		ctrl.LoggerFrom(ctx).Info("some of --feature-gates change nothing", "gates", inert)
	}
	ctrl.LoggerFrom(ctx).Info("starting", "controlPlaneOperatorImage", image)
	return mgr.Start(ctx)
}

func (f flags) manager(cfg *rest.Config) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	options := process.Options{
		Name: names.HypershiftOperator, Scheme: scheme, Cache: watches.CacheOptions(),
		Serve:    process.Serve{Metrics: f.metricsAddr, Secure: f.secure, Health: f.healthAddr, Pprof: f.pprofAddr},
		HotLoops: hotloop.New(scheme, clock.RealClock{}), HotLoopOwner: watches.ClusterOf,
	}
	if f.leaderElect {
		options.Lease = process.NewLease(f.namespace, lease(), f.podName)
	}
	mgr, err := process.NewManager(cfg, options)
	if err != nil {
		return nil, err
	}
	return mgr, process.ForgetUnused(mgr)
}

// lease is the name of the operator's. The operator for hosted clusters from before private types runs beside the other, in one namespace.
func lease() string {
	if s := scope.FromEnvironment(); s != nil && *s == hyperv1.LegacyScope {
		return leaseName + "-" + hyperv1.LegacyScope
	}
	return leaseName
}

func (f flags) setup(mgr ctrl.Manager, cfg *rest.Config, image string, extensions []operator.Extension) error {
	if err := admission.CheckMode("--control-plane-capacity", f.capacity); err != nil {
		return err
	}
	sources, err := operator.NewSourceCache(cfg, mgr)
	if err != nil {
		return fmt.Errorf("setting up the cache of referenced objects: %w", err)
	}
	if err := mgr.Add(sources); err != nil {
		return err
	}
	overrides, err := rewrite.ParseOverrides(f.registryOverrides)
	if err != nil {
		return fmt.Errorf("--registry-overrides: %w", err)
	}
	mirrors := &management.Mirrors{Reader: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Clock: clock.RealClock{}}
	signatures, err := signature.ReadPolicy(f.signaturePolicy)
	if err != nil {
		return fmt.Errorf("--image-signature-policy: %w", err)
	}
	releases := release.NewRegistryProvider(release.Options{Overrides: overrides, MoreMirrors: mirrors.Get, Patience: operator.LookupPatience, Signatures: signatures})
	r, err := f.reconciler(mgr, cfg)
	if err != nil {
		return err
	}
	r.OperatorImage, r.Releases, r.Mirrors, r.Documents = image, releases, mirrors, f.cloud.Bucket != ""
	r.PrivateLink, r.AzureLink = f.cloud.PrivateLink(), f.cloud.AzureLink()
	if err := f.cloud.Setup(mgr, f.kubeconfig, f.privateCAPI); err != nil {
		return err
	}
	r.Admission = r.newQueue(f.capacity)
	directCfg, direct, err := f.direct()
	if err != nil {
		return err
	}
	if direct != nil {
		r.Direct = direct
	}
	if err := errors.Join(r.Admission.Register(ctrlmetrics.Registry), r.SetupWithManager(mgr, sources)); err != nil {
		return err
	}
	if err := (&admission.Machines{Client: mgr.GetClient(), Queue: r.Admission}).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := addFleet(mgr, cfg, f.namespace, r.Clock); err != nil {
		return err
	}
	if r.PrivateCAPI && r.Scope == nil {
		end := func(ctx context.Context) error {
			migration.EndLegacy(ctx, mgr.GetClient(), mgr.GetAPIReader(), f.namespace)
			return nil
		}
		if err := mgr.Add(manager.RunnableFunc(end)); err != nil {
			return err
		}
		if direct != nil {
			if err := addMigration(mgr, r, directCfg, direct, f.namespace); err != nil {
				return err
			}
		}
	}
	features, err := operator.NewFeatures(os.Getenv("HYPERSHIFT_FEATURESET"), f.featureGates)
	if err != nil {
		return err
	}
	if err := features.Register(ctrlmetrics.Registry); err != nil {
		return err
	}
	shared := operator.Shared{Clock: r.Clock, Releases: releases, Sources: sources, Capabilities: r.Capabilities, Scope: r.Scope, PrivateCAPI: r.PrivateCAPI, Platforms: r.Platforms,
		Namespace: f.namespace, OperatorImage: image, Features: features, EtcdBackups: f.etcdBackups, DedicatedNodes: f.dedicatedNodes}
	for _, extend := range extensions {
		if err := extend(mgr, shared); err != nil {
			return err
		}
	}
	return nil
}

// reconciler is that of HostedClusters, with what the flags, the environment and the management cluster say.
func (f flags) reconciler(mgr ctrl.Manager, cfg *rest.Config) (*Reconciler, error) {
	caps, err := management.CapabilitiesOf(mgr.GetRESTMapper())
	if err != nil {
		return nil, fmt.Errorf("finding out what the management cluster offers: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	sidecars, err := management.NativeSidecars(disco)
	if err != nil {
		return nil, err
	}
	closed, err := management.ParseNetworks(os.Getenv(management.EnvEgressBlock))
	if err != nil {
		return nil, err
	}
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Capabilities: caps,
		Management: &management.Cluster{Reader: mgr.GetClient(), Mapper: mgr.GetRESTMapper(), NativeSidecars: sidecars, Networks: closed, Clock: clock.RealClock{}},
		RandomID:   adoption.RandomID, UUID: uuid.NewString,
		ControlPlaneOperator: operatorOptions(), Environment: component.EnvironmentFrom(os.Getenv), Events: mgr.GetEventRecorder(names.HypershiftOperator),
		EnableCIDebugOutput: f.enableCIDebugOutput, MetricsSet: os.Getenv("METRICS_SET"),
		RegistryOverrides: f.registryOverrides, ClusterMonitoring: f.enableOCPMonitoring, PrivateCAPI: f.privateCAPI, CAPIProxyImage: os.Getenv(capiproxy.EnvImage),
	}
	r.Scope, r.EtcdRecovery, r.AuditLogs = scope.FromEnvironment(), os.Getenv(EnvEtcdRecovery) == "1", auditlogs.Enabled()
	r.Journal = &journal.Book{Client: r.Client, Live: r.Live, Clock: r.Clock}
	r.Platforms, r.Images = platform.ParseEnabled(os.Getenv(platform.EnvInstalled)), platform.ImagesFrom(os.Getenv)
	return r, nil
}

// operatorOptions is what control-plane-operators are told of the installation; the environment is that of the operator itself.
func operatorOptions() cpo.Options {
	return cpo.Options{
		CertRotationScale: os.Getenv("CERT_ROTATION_SCALE"), FeatureSet: os.Getenv("HYPERSHIFT_FEATURESET"),
		ManagedService: os.Getenv("MANAGED_SERVICE"), DefaultIngressDomain: os.Getenv("DEFAULT_INGRESS_DOMAIN"),
		EnableSizeTagging: os.Getenv("ENABLE_SIZE_TAGGING") == "1",
	}
}

// How long the operator's own pod may take to report its image.
const (
	ownImagePoll  = 5 * time.Second
	ownImageLimit = 30 * time.Second
)

// ownImage is the image that this pod runs, by digest when the container runtime tells it.
func ownImage(ctx context.Context, reader client.Reader, namespace, podName string) (string, error) {
	if podName == "" {
		return "", errors.New("outside a pod the image of control-plane operators can't be found out: give --control-plane-operator-image")
	}
	image := ""
	err := wait.PollUntilContextTimeout(ctx, ownImagePoll, ownImageLimit, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: podName}, pod); err != nil {
			return false, fmt.Errorf("reading pod %s/%s: %w", namespace, podName, err)
		}
		image = imageOf(pod)
		return image != "", nil
	})
	if err != nil {
		return "", fmt.Errorf("finding out the operator's own image: %w", err)
	}
	return image, nil
}

func imageOf(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name != operatorContainer && len(pod.Status.ContainerStatuses) > 1 {
			continue
		}
		id := strings.TrimPrefix(s.ImageID, "docker-pullable://")
		if strings.Contains(id, "@sha256:") {
			return id
		}
		if s.ImageID != "" {
			return s.Image
		}
	}
	return ""
}

// direct reaches the management cluster itself, whatever KUBECONFIG says; nil where private types aren't used, and outside of a pod.
func (f flags) direct() (*rest.Config, client.Client, error) {
	if !f.privateCAPI {
		return nil, nil, nil
	}
	cfg, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("finding the management cluster: %w", err)
	}
	cfg.QPS = -1 // the API server's own limits hold
	scheme, err := NewScheme()
	if err != nil {
		return nil, nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("setting up the look at standard groups: %w", err)
	}
	return cfg, c, nil
}

// addFleet adds what is about the operator and all its clusters: metrics, and the supported versions.
func addFleet(mgr ctrl.Manager, cfg *rest.Config, namespace string, clk clock.PassiveClock) error {
	known := prometheus.AlreadyRegisteredError{}
	if err := metrics.Register(ctrlmetrics.Registry, metrics.NewCollector(mgr.GetCache(), clk)); err != nil && !errors.As(err, &known) {
		return fmt.Errorf("registering metrics: %w", err)
	}
	// Not the manager's client: its cache has only the ConfigMaps with our label.
	uncached, err := client.NewWithWatch(cfg, client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		versions.Publish(ctx, uncached, namespace)
		return nil
	}))
}
