// Package configoperator is the component that runs the hosted-cluster-config-operator, in payload form.
package configoperator

import (
	"cmp"
	"embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = "hosted-cluster-config-operator"

// The kubeconfig of the cluster that virtual machines run in, where that is another than the management cluster.
const (
	infraKubeconfig       = "kubevirt-infra-kubeconfig"
	infraKubeconfigSecret = "kubevirt-infra-credentials"
	infraKubeconfigDir    = "/etc/kubernetes/kubevirt-infra-kubeconfig"
)

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("role.yaml", component.AdaptManifest(adaptRole)).
		InjectAvailabilityProber(component.AvailabilityProber{KubeconfigVolume: "kubeconfig", RequiredAPIs: requiredAPIs(), RequiredAPIsOf: ingressAPI}).
		Build()
}

// requiredAPIs are the kinds that the operator writes from its start, and that the payload's other operators define.
func requiredAPIs() []schema.GroupVersionKind {
	list := []schema.GroupVersionKind{{Group: "imageregistry.operator.openshift.io", Version: "v1", Kind: "Config"}}
	for _, kind := range []string{"Infrastructure", "DNS", "Ingress", "Network", "Proxy", "Build", "Image", "Project", "ClusterVersion", "FeatureGate", "ClusterOperator", "OperatorHub"} {
		list = append(list, schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: kind})
	}
	for _, kind := range []string{"Network", "CloudCredential", "Storage", "CSISnapshotController", "ClusterCSIDriver"} {
		list = append(list, schema.GroupVersionKind{Group: "operator.openshift.io", Version: "v1", Kind: kind})
	}
	return list
}

// ingressAPI is the kind that only hosted clusters with ingress have.
func ingressAPI(hcp *hyperv1.HostedControlPlane) []schema.GroupVersionKind {
	if !kit.HasCapability(hcp, hyperv1.IngressCapability) {
		return nil
	}
	return []schema.GroupVersionKind{{Group: "operator.openshift.io", Version: "v1", Kind: "IngressController"}}
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	hcp, pod := ctx.HCP, &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	main.Command = append(main.Command,
		"--platform-type", string(hcp.Spec.Platform.Type),
		fmt.Sprintf("--enable-ci-debug-output=%t", ctx.EnableCIDebugOutput),
		"--hosted-control-plane="+hcp.Name,
		"--konnectivity-address="+ctx.Infra.KonnectivityHost,
		fmt.Sprintf("--konnectivity-port=%d", ctx.Infra.KonnectivityPort),
		"--oauth-address="+ctx.Infra.OAuthHost,
		fmt.Sprintf("--oauth-port=%d", ctx.Infra.OAuthPort),
		"--registry-overrides", kit.MapFlag(ctx.RegistryOverrides))
	if hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		main.Command = append(main.Command, "--controllers=controller-manager-ca,resources,inplaceupgrader,drainer,hcpstatus")
	}
	if k := hcp.Spec.Platform.Kubevirt; k != nil && k.Credentials != nil {
		main.Command = append(main.Command, "--kubevirt-infra-kubeconfig="+infraKubeconfigDir+"/kubeconfig")
		pod.Volumes = append(pod.Volumes, component.SecretVolume(infraKubeconfig, infraKubeconfigSecret))
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: infraKubeconfig, MountPath: infraKubeconfigDir})
	}
	image := kit.Image(ctx, Name)
	for _, e := range [][2]string{
		{"OPENSHIFT_RELEASE_VERSION", ctx.Release.Version},
		{"KUBERNETES_VERSION", cmp.Or(ctx.Release.ComponentVersions["kubernetes"], ctx.Release.KubernetesVersion)},
		{"OPERATE_ON_RELEASE_IMAGE", hcp.Spec.ReleaseImage},
		{"OPENSHIFT_IMG_OVERRIDES", kit.MapFlag(ctx.RegistryMirrors)},
		{"HOSTED_CLUSTER_CONFIG_OPERATOR_IMAGE", image},
	} {
		kit.SetEnv(main, e[0], e[1])
	}
	if ctx.Environment.SizeTagging {
		kit.SetEnv(main, "ENABLE_SIZE_TAGGING", "1")
	}
	if ctx.Environment.ManagedService != "" {
		kit.SetEnv(main, "MANAGED_SERVICE", ctx.Environment.ManagedService)
	}
	component.ManagementProxy(ctx, main)
	return nil
}

//go:embed rights/role.yaml
var rights embed.FS

// adaptRole grants what the operator needs, which is less than what is published: it parses what hosted clusters say. Previews show what is published.
func adaptRole(ctx component.WorkloadContext, role *rbacv1.Role) error {
	if !ctx.PublishedRights {
		rules, err := Rights(ctx.HCP)
		role.Rules = rules
		return err
	}
	role.Rules = append(role.Rules, platformRights(ctx.HCP)...)
	return nil
}

// Rights are those of the operator beside a control plane.
func Rights(hcp *hyperv1.HostedControlPlane) ([]rbacv1.PolicyRule, error) {
	rules, err := component.RoleRules(rights, "rights/role.yaml", Name)
	return append(rules, platformRights(hcp)...), err
}

// platformRights are those that depend on the platform.
func platformRights(hcp *hyperv1.HostedControlPlane) (rules []rbacv1.PolicyRule) {
	rule := func(group string, resources, verbs []string) {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs})
	}
	const routes = "route.openshift.io"
	if hcp.Spec.Platform.Type == hyperv1.KubevirtPlatform {
		all := []string{"create", "get", "patch", "update", "list", "watch"}
		rule(routes, []string{"routes"}, all)
		rule(routes, []string{"routes/custom-host"}, []string{"create"})
		rule("discovery.k8s.io", []string{"endpointslices", "endpointslices/restricted"}, append([]string{"delete"}, all...))
		rule("kubevirt.io", []string{"virtualmachines"}, []string{"get", "list", "watch"})
		rule("kubevirt.io", []string{"virtualmachines/finalizers"}, []string{"update"})
		rule("", []string{"services"}, all)
	}
	rule(routes, []string{"routes"}, []string{"get", "list", "watch"})
	return rules
}
