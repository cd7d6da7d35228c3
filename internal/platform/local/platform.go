package local

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/kube/memorylimit"
	"hcp.internal/platform/internal/platform/machine"
)

// Platform implements platform.Platform.
type Platform struct{}

// NodeImageTag is the tag of a release that holds the image of machines.
const NodeImageTag = "local-node"

const templateKind = "LocalMachineTemplate"

// InfraCR implements platform.Platform: a LocalCluster named after the HostedCluster. Its provider copies nothing to the outside, so
// that there is an object as soon as there is a HostedControlPlane; the endpoint comes when it is known.
func (Platform) InfraCR(hc *hyperv1.HostedCluster, hcpNamespace string, endpoint hyperv1.APIEndpoint) (client.Object, error) {
	return &infrav1.LocalCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: infrav1.GroupVersion.String(), Kind: "LocalCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: hcpNamespace, Name: hc.Name},
		Spec:       infrav1.LocalClusterSpec{ControlPlaneEndpoint: infrav1.APIEndpoint{Host: endpoint.Host, Port: endpoint.Port}},
	}, nil
}

// providerMemory is six times what the provider of a few machines needs.
const providerMemory = "384Mi"

// CAPIProvider implements platform.Platform: our own program, from the image of the release, so that an upgrade of the management
// side changes nothing here.
func (Platform) CAPIProvider(*hyperv1.HostedCluster, *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error) {
	spec := &appsv1.DeploymentSpec{}
	manager := corev1.Container{
		Name:    "manager",
		Image:   "controlplane-operator",
		Command: []string{"/usr/bin/hcp-operators", "capi-provider-local"},
		Args:    []string{"--namespace=$(MY_NAMESPACE)", "--leader-elect", "--health-addr=:9440", "--metrics-addr=:8080"},
		Env: []corev1.EnvVar{
			{Name: machine.EnvPriorityClass, Value: infrav1.MachinePriorityClass}, {Name: machine.EnvSchedulingGate, Value: machine.RoomGate},
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("40Mi"),
		}},
	}
	memorylimit.Set(&manager, providerMemory)
	spec.Template.Spec.Containers = []corev1.Container{manager}
	return spec, nil
}

// Credentials implements platform.Platform: none are needed.
func (Platform) Credentials(context.Context, client.Reader, *hyperv1.HostedCluster, string) ([]client.Object, error) {
	return nil, nil
}

// CAPIProviderPolicyRules implements platform.Platform: machines are pods.
func (Platform) CAPIProviderPolicyRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
	}}
}

// Traits implements platform.Platform. The provider writes what a machine offers into the template's status.
func (Platform) Traits() machine.Traits {
	return machine.Traits{
		Managed: true, TemplateKind: infrav1.GroupVersion.WithKind(templateKind),
		Architectures: []string{hyperv1.ArchitectureAMD64, hyperv1.ArchitectureARM64}, ScaleFromZero: true,
	}
}

// MachineTemplate implements platform.Platform. Machines have no bounds of their own: they share the management cluster's node.
func (Platform) MachineTemplate(in machine.Input) (*machine.Template, error) {
	image, ok := in.Release.ImageFor(NodeImageTag)
	if !ok {
		return nil, fmt.Errorf("release %s (%s) has no image %s, from which machines of platform Local run: use a release built by this project, 1.35 or later",
			in.Release.Version, in.Release.Image, NodeImageTag)
	}
	template := &infrav1.LocalMachineTemplate{
		TypeMeta: metav1.TypeMeta{APIVersion: infrav1.GroupVersion.String(), Kind: templateKind},
	}
	template.Spec.Template.Spec = infrav1.LocalMachineSpec{Image: image}
	// The image is that of the release, so machines are replaced when the version changes, and not when the same version was built again.
	identity := struct{ Version string }{in.Release.Version}
	return &machine.Template{Object: template, Identity: identity}, nil
}

// DeleteCredentials implements platform.Platform.
func (Platform) DeleteCredentials(context.Context, client.Client, *hyperv1.HostedCluster, string) error {
	return nil
}

// Contained implements platform.Contained: machines are pods of the namespace, too.
func (Platform) Contained() bool { return true }
