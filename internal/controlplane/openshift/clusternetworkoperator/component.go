// Package clusternetworkoperator is the component that runs the operator of the hosted cluster's network, which also makes parts of the network that
// run beside the control plane.
package clusternetworkoperator

import (
	"embed"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
)

// Name of the component, of its main container, and of the operator's ServiceAccount in the hosted cluster.
const Name = "cluster-network-operator"

const (
	kubeconfigVolume = "hosted-etc-kube"
	identityClass    = "managed-azure-network"
)

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithDependencies("openshift-apiserver").
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("role.yaml", component.AdaptManifest(adaptRole)).
		WithManifestAdapter("azure-secretproviderclass.yaml", kit.SecretProviderClass(identity)...).
		WithCustomOperandsRolloutCheckFunc(operands).
		InjectKonnectivityContainer(component.KonnectivityProxy{
			Mode: component.Socks5Proxy, Socks5: component.Socks5ProxyOptions{DisableResolver: true}, KubeconfigVolume: kubeconfigVolume,
		}).
		InjectAvailabilityProber(component.AvailabilityProber{
			KubeconfigVolume: kubeconfigVolume,
			RequiredAPIs: []schema.GroupVersionKind{
				{Group: "operator.openshift.io", Version: "v1", Kind: "Network"},
				{Group: "network.operator.openshift.io", Version: "v1", Kind: "EgressRouter"},
				{Group: "network.operator.openshift.io", Version: "v1", Kind: "OperatorPKI"},
			},
			WaitForInfrastructureResource: true, WaitForClusterRoleBinding: Name,
		}).
		Build()
}

func identity(hcp *hyperv1.HostedControlPlane) *hyperv1.ManagedIdentity {
	if all := kit.ManagedIdentities(hcp); all != nil {
		return &all.Network
	}
	return nil
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	pod := &d.Spec.Template.Spec
	main := component.Container(pod, Name)
	main.Env = append(main.Env, environment(ctx)...)
	kit.SetRunAsUser(ctx, main)
	for _, v := range clouds(ctx) {
		kit.SetEnv(main, v.Name, v.Value)
	}
	for _, name := range []string{"init-client-token-minter", "client-token-minter"} {
		c := component.Container(pod, name)
		c.Args = append(c.Args, "--token-audience", settings.Issuer(ctx.HCP))
	}
	if minor(ctx.UserRelease.Version) == "12" {
		pod.InitContainers = append(pod.InitContainers, removeWebhook())
	}
	return nil
}

// minor is the second number of a version.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// removeWebhook takes away a webhook that older releases of the operator ran in the hosted cluster: nobody would answer it any more.
func removeWebhook() corev1.Container {
	const script = `set -euo pipefail
kubectl=(/usr/bin/kubectl --kubeconfig=/etc/hosted-kubernetes/kubeconfig)
service=$("${kubectl[@]}" get validatingwebhookconfiguration multus.openshift.io --ignore-not-found \
  -o jsonpath='{.webhooks[?(@.name == "multus-validating-config.k8s.io")].clientConfig.service}')
if [[ -n "${service}" ]]; then
  "${kubectl[@]}" delete validatingwebhookconfiguration multus.openshift.io --ignore-not-found
fi
`
	return corev1.Container{
		Name: "remove-old-multus-validating-webhook-configuration", Image: "cli", Command: []string{"/bin/bash"}, Args: []string{"-c", script},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{{Name: kubeconfigVolume, MountPath: "/etc/hosted-kubernetes"}},
	}
}

// adaptRole leaves the operator what it needs for other networks than its own: nothing of those runs beside the control plane.
func adaptRole(ctx component.WorkloadContext, role *rbacv1.Role) error {
	if ctx.HCP.Spec.Networking.NetworkType == hyperv1.OVNKubernetes {
		return nil
	}
	const core, apps, hypershift = "", "apps", "hypershift.openshift.io"
	read, all, own := []string{"get", "list", "watch"}, []string{"*"}, []string{"multus-admission-controller", "network-node-identity"}
	rule := func(group string, resources, names, verbs []string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, ResourceNames: names, Verbs: verbs}
	}
	role.Rules = []rbacv1.PolicyRule{
		rule(core, []string{"configmaps"}, []string{"openshift-service-ca.crt", "root-ca"}, read),
		rule(core, []string{"configmaps"}, []string{"ovnkube-identity-cm"}, []string{"list", "get", "watch", "create", "patch", "update"}),
		rule(apps, []string{"statefulsets", "deployments"}, nil, []string{"list", "watch"}),
		rule(apps, []string{"deployments"}, own, all),
		rule(core, []string{"services"}, own, all),
		rule(hypershift, []string{"hostedcontrolplanes"}, nil, read),
		rule(hypershift, []string{"hostedcontrolplanes/status"}, nil, all),
	}
	return nil
}

// operands says what of the network beside the control plane isn't of the release yet.
func operands(ctx component.WorkloadContext) error {
	var list []component.Operand
	if ctx.HCP.Spec.Networking.NetworkType == hyperv1.OVNKubernetes {
		list = append(list,
			component.Operand{Deployment: "ovnkube-control-plane", Container: "ovnkube-control-plane", Tag: "ovn-kubernetes"},
			component.Operand{Deployment: "network-node-identity", Container: "approver", Tag: "ovn-kubernetes"})
		switch ctx.HCP.Spec.Platform.Type {
		case hyperv1.AWSPlatform, hyperv1.AzurePlatform, hyperv1.GCPPlatform, hyperv1.OpenStackPlatform:
			list = append(list, component.Operand{Deployment: "cloud-network-config-controller", Container: "controller", Tag: "cloud-network-config-controller"})
		}
	}
	if !singleNetwork(ctx.HCP) {
		list = append(list, component.Operand{Deployment: "multus-admission-controller", Container: "multus-admission-controller", Tag: "multus-admission-controller"})
	}
	return component.CheckOperands(ctx, list...)
}

// singleNetwork says whether pods can have no further networks.
func singleNetwork(hcp *hyperv1.HostedControlPlane) bool {
	c := hcp.Spec.OperatorConfiguration
	return c != nil && c.ClusterNetworkOperator != nil && c.ClusterNetworkOperator.DisableMultiNetwork != nil && *c.ClusterNetworkOperator.DisableMultiNetwork
}
