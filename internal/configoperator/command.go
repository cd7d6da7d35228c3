package configoperator

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/approver"
	"hcp.internal/platform/internal/configoperator/connections"
	"hcp.internal/platform/internal/configoperator/hcpstatus"
	"hcp.internal/platform/internal/configoperator/inplace"
	"hcp.internal/platform/internal/configoperator/kmshealth"
	"hcp.internal/platform/internal/configoperator/nodecount"
	"hcp.internal/platform/internal/configoperator/nodes"
	"hcp.internal/platform/internal/configoperator/nodetrust"
	"hcp.internal/platform/internal/configoperator/reencryption"
	"hcp.internal/platform/internal/configoperator/spot"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/kube/process"
)

// gcPercent keeps the heap near what is live, as $GOGC may, in a process that is idle nearly always; not while it starts, which takes startTime.
const (
	gcPercent = 50
	startTime = 30 * time.Second
)

// resourcesController is the controller of package resources.
const resourcesController = "resources"

// authoritiesController copies authorities of an OpenShift payload's hosted cluster to the control plane. It is a part of the resources here, and a name that is known.
const authoritiesController = "controller-manager-ca"

// allControllers are the names that --controllers knows.
var allControllers = []string{resourcesController, authoritiesController, approver.Controller, connections.Controller, hcpstatus.Controller, inplace.Controller, inplace.DrainController, kmshealth.Controller, nodecount.Controller, nodes.Controller, nodetrust.Controller, reencryption.Controller, spot.Controller}

// Options are the settings of the process.
type Options struct {
	Namespace          string // the control plane namespace
	HostedControlPlane string // the one of this name; empty: whichever is in the namespace
	Kubeconfig         string // of the management cluster; empty: the one that the pod runs in
	TargetKubeconfig   string // of the hosted cluster
	PlatformType       string
	Controllers        []string
	OperatesOn         string // release image that this process belongs to
	MetricsAddr        string
	HealthAddr         string
	LeaderElect        bool
	// Version and KubernetesVersion are those of the control plane's release; an OpenShift payload has one from 4 on.
	Version, KubernetesVersion string
	// ManagedService is "ARO-HCP" on Azure Red Hat OpenShift, empty elsewhere.
	ManagedService string
	// CountNodes: how many nodes there are is told to the management cluster, which sizes control planes by it.
	CountNodes bool
	// Image is that of this operator, for what it runs on nodes of an OpenShift payload.
	Image string
	// RegistryMirrors are source=mirror,… of the management cluster.
	RegistryMirrors string
	// Images of the release by tag, of what runs on nodes.
	Images map[string]string
	// KonnectivityAddress and KonnectivityPort are where agents on nodes reach the tunnel's servers; empty: there is no tunnel.
	KonnectivityAddress string
	KonnectivityPort    int32

	// OAuthAddress and OAuthPort are where users reach the OAuth server of an OpenShift payload.
	OAuthAddress string
	OAuthPort    int32
	// RegistryOverrides are source=destination,…
	RegistryOverrides string

	// What is accepted so that one Deployment fits every release: the authorities are read from the ConfigMaps that these files are mounted from.
	KubevirtInfraKubeconfig, InitialCAFile, ClusterSignerCAFile string
	EnableCIDebugOutput                                         bool
}

func (o Options) enabled(name string) bool {
	return !slices.Contains(o.Controllers, "-"+name) && (slices.Contains(o.Controllers, "*") || slices.Contains(o.Controllers, name))
}

func (o Options) validate() error {
	var errs []error
	if o.Namespace == "" {
		errs = append(errs, errors.New("--namespace must be given: the namespace of the hosted control plane"))
	}
	if o.TargetKubeconfig == "" {
		errs = append(errs, errors.New("--target-kubeconfig must be given: a kubeconfig of the hosted cluster (Secret hcco-kubeconfig)"))
	}
	if o.PlatformType == "" {
		errs = append(errs, errors.New("--platform-type must be given: spec.platform.type of the hosted control plane"))
	}
	for _, name := range o.Controllers {
		if name != "*" && !slices.Contains(allControllers, strings.TrimPrefix(name, "-")) {
			errs = append(errs, fmt.Errorf("--controllers: unknown controller %q; known are *, %s", name, strings.Join(allControllers, ", ")))
		}
	}
	return errors.Join(errs...)
}

// Command is `hosted-cluster-config-operator`, which also `control-plane-operator hosted-cluster-config-operator` starts.
func Command() *cobra.Command {
	o := Options{
		OperatesOn: os.Getenv(releaseimage.EnvOperateOn), Version: os.Getenv("OPENSHIFT_RELEASE_VERSION"), KubernetesVersion: os.Getenv("KUBERNETES_VERSION"),
		ManagedService: os.Getenv("MANAGED_SERVICE"), RegistryMirrors: os.Getenv("OPENSHIFT_IMG_OVERRIDES"),
		Image: os.Getenv("HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE"), CountNodes: os.Getenv("ENABLE_SIZE_TAGGING") == "1",
	}
	cmd := &cobra.Command{
		Use:   "hosted-cluster-config-operator",
		Short: "Maintain the objects that a hosted cluster has from the start",
		Example: `  # in the pod of a control plane
  hosted-cluster-config-operator --namespace=clusters-demo --hosted-control-plane=demo --platform-type=None \
    --target-kubeconfig=/etc/kubernetes/kubeconfig

  # on your machine, against two clusters
  hosted-cluster-config-operator --namespace=clusters-demo --platform-type=None --kubeconfig=management.kubeconfig \
    --target-kubeconfig=demo.kubeconfig --metrics-addr=0 --health-addr=0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			hosted, err := hostedConfig(o.TargetKubeconfig)
			if err != nil {
				return err
			}
			started := process.StartThenRest(cmd.Context(), gcPercent)
			management, err := process.Connect(cmd.Context(), o.Kubeconfig, names.ConfigOperator)
			if err != nil {
				return err
			}
			if err := awaitAPI(cmd.Context(), hosted, clock.RealClock{}, awaitLongest); err != nil {
				return err
			}
			mgr, err := newManager(management, hosted, o)
			if err != nil {
				return err
			}
			time.AfterFunc(startTime, started)
			ctrl.Log.Info("starting", "namespace", o.Namespace, "release", o.OperatesOn)
			return mgr.Start(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *Options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Namespace, "namespace", os.Getenv("MY_NAMESPACE"), "namespace of the hosted control plane")
	f.StringVar(&o.HostedControlPlane, "hosted-control-plane", "", "name of the HostedControlPlane; default: whichever is in the namespace")
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", process.KubeconfigUsage)
	f.StringVar(&o.TargetKubeconfig, "target-kubeconfig", "", "kubeconfig of the hosted cluster")
	f.StringVar(&o.PlatformType, "platform-type", "", "spec.platform.type of the hosted control plane ("+string(hyperv1.NonePlatform)+", ...)")
	f.StringSliceVar(&o.Controllers, "controllers", []string{"*"}, "controllers to run: * for all, NAME, -NAME for all but NAME; known: "+strings.Join(allControllers, ", "))
	f.StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "address of the metrics; 0 for none")
	f.StringVar(&o.HealthAddr, "health-addr", ":6060", "address of /healthz; 0 for none")
	f.BoolVar(&o.LeaderElect, "leader-elect", true, "take the lease "+LeaseName+" before doing anything")
	for _, later := range []struct {
		value *string
		name  string
	}{
		{&o.InitialCAFile, "initial-ca-file"},
		{&o.ClusterSignerCAFile, "cluster-signer-ca-file"},
	} {
		f.StringVar(later.value, later.name, "", "accepted, and not looked at: authorities are read from the ConfigMaps of the namespace")
	}
	f.StringVar(&o.KubevirtInfraKubeconfig, "kubevirt-infra-kubeconfig", "", "kubeconfig of the cluster that runs the virtual machines of a KubeVirt cluster; default: the management cluster")
	f.StringToStringVar(&o.Images, "images", imagesOf(os.Getenv(images.Env)), "TAG=REFERENCE,... of what runs on nodes (env RELEASE_IMAGES); known tags: "+strings.Join(images.Tags(), ", "))
	f.StringVar(&o.KonnectivityAddress, "konnectivity-address", "", "name or address at which nodes reach the tunnel's servers; default: there is no tunnel")
	f.Int32Var(&o.KonnectivityPort, "konnectivity-port", 0, "port of --konnectivity-address")
	f.StringVar(&o.OAuthAddress, "oauth-address", "", "name or address at which users reach the OAuth server of an OpenShift payload")
	f.Int32Var(&o.OAuthPort, "oauth-port", 0, "port of --oauth-address")
	f.StringVar(&o.RegistryOverrides, "registry-overrides", "", "SOURCE=DESTINATION,... registries to replace in references of an OpenShift payload; those of --images have them applied already")
	f.BoolVar(&o.EnableCIDebugOutput, "enable-ci-debug-output", false, "as --initial-ca-file")
}

// imagesOf reads TAG=REFERENCE,...
func imagesOf(list string) map[string]string {
	images := map[string]string{}
	for _, item := range strings.Split(list, ",") {
		if tag, reference, ok := strings.Cut(item, "="); ok && tag != "" && reference != "" {
			images[tag] = reference
		}
	}
	return images
}
