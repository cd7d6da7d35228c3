// Package olm has the components of the Operator Lifecycle Manager that run beside the control plane: its operators, the server of its package API,
// the catalogs, and the job that collects profiles.
package olm

import (
	"embed"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

//go:embed assets
var assets embed.FS

var (
	catalogSource = schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "CatalogSource"}

	// operatorAPIs are those that the olm-operator cannot start without.
	operatorAPIs = []schema.GroupVersionKind{
		catalogSource,
		{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "Subscription"},
		{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"},
		{Group: "operators.coreos.com", Version: "v1", Kind: "OperatorGroup"},
		{Group: "operators.coreos.com", Version: "v1", Kind: "OLMConfig"},
	}
)

// NewOperator makes olm-operator, which installs operators in the hosted cluster.
func NewOperator() *component.WorkloadComponent {
	return builder("olm-operator", component.Options{}, operatorAPIs, nil).
		WithManifestAdapter("service.yaml", component.DisableIfAnnotationExist(hyperv1.DisableMonitoringServices)).
		Build()
}

// NewCatalogOperator makes catalog-operator, which looks up in catalogs what there is to install.
func NewCatalogOperator() *component.WorkloadComponent {
	adapt := func(ctx component.WorkloadContext, _ *appsv1.Deployment, main *corev1.Container) {
		kit.SetEnv(main, "OLM_OPERATOR_IMAGE", kit.Image(ctx, "operator-lifecycle-manager"))
		kit.SetEnv(main, "OPERATOR_REGISTRY_IMAGE", kit.Image(ctx, "operator-registry"))
	}
	return builder("catalog-operator", component.Options{}, []schema.GroupVersionKind{catalogSource}, adapt).
		WithManifestAdapter("service.yaml", component.DisableIfAnnotationExist(hyperv1.DisableMonitoringServices)).
		Build()
}

// NewPackageServer makes packageserver, which serves a part of the hosted cluster's API.
func NewPackageServer() *component.WorkloadComponent {
	adapt := func(ctx component.WorkloadContext, d *appsv1.Deployment, main *corev1.Container) {
		main.Args = append(main.Args, kit.TLSOf(ctx.HCP).Args()...)
		if ctx.HCP.Spec.Platform.Type == hyperv1.IBMCloudPlatform && ctx.HighlyAvailable() {
			d.Spec.Replicas = ptr.To[int32](2)
		}
		kit.AddReadinessCheck(ctx, &d.Spec.Template.Spec)
	}
	return builder("packageserver", component.Options{MultiZoneSpread: true}, []schema.GroupVersionKind{catalogSource}, adapt).
		WithManifestAdapter("pdb.yaml", component.AdaptPodDisruptionBudget()).
		Build()
}

// builder starts one of the three programs that reach catalogs through the tunnel, or beside them. adapt may be nil.
func builder(name string, options component.Options, apis []schema.GroupVersionKind, adapt func(component.WorkloadContext, *appsv1.Deployment, *corev1.Container)) *component.Builder[*appsv1.Deployment] {
	return component.NewDeploymentComponent(name, assets, options).
		WithAssetDir("assets/" + name).
		InjectAvailabilityProber(component.AvailabilityProber{KubeconfigVolume: "kubeconfig", RequiredAPIs: apis}).
		InjectKonnectivityContainer(component.KonnectivityProxy{Mode: component.Socks5Proxy}).
		WithAdaptFunction(func(ctx component.WorkloadContext, d *appsv1.Deployment) error {
			main := component.Container(&d.Spec.Template.Spec, name)
			kit.SetEnv(main, "NO_PROXY", noProxy(ctx))
			if slices.ContainsFunc(main.Env, func(e corev1.EnvVar) bool { return e.Name == "RELEASE_VERSION" }) {
				kit.SetEnv(main, "RELEASE_VERSION", ctx.UserRelease.Version)
			}
			if adapt != nil {
				adapt(ctx, d, main)
			}
			return nil
		})
}

// noProxy are the hosts that are reached without the tunnel: the catalogs, too, where they run beside the control plane.
func noProxy(ctx component.WorkloadContext) string {
	if ctx.HCP.Spec.OLMCatalogPlacement == hyperv1.ManagementOLMCatalogPlacement {
		return "kube-apiserver,certified-operators,community-operators,redhat-operators"
	}
	return "kube-apiserver"
}
