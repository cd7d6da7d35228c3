// Package capiprovider is the component that runs the provider of Cluster API for the platform, in payload form. The hypershift-operator deploys it.
package capiprovider

import (
	"embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// Name of the component.
const Name = names.CAPIProvider

//go:embed assets
var assets embed.FS

// Offered says whether a platform has a provider.
func Offered(hcp *hyperv1.HostedControlPlane) bool { return providerOf(hcp) != nil }

// NewComponent makes the component for the platform of a control plane.
func NewComponent(platform hyperv1.PlatformType) *component.WorkloadComponent {
	b := component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(func(ctx component.WorkloadContext) (bool, error) {
			wanted, err := kit.WithMachines(ctx)
			return wanted && Offered(ctx.HCP), err
		}).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("role.yaml", component.AdaptManifest(adaptRole)).
		SpeaksClusterAPI(component.CAPIClient{KubeconfigFlag: "kubeconfig"}).
		InjectAvailabilityProber(component.AvailabilityProber{})
	if platform == hyperv1.GCPPlatform {
		b.InjectTokenMinterContainer(component.TokenMinter{
			Type: component.CloudToken, ServiceAccountNamespace: "kube-system", ServiceAccountName: "capi-gcp-controller-manager", KubeconfigSecret: names.ServiceNetworkKubeconfig,
		})
	}
	return kit.BelongToHostedCluster(b, "role.yaml", "rolebinding.yaml", "serviceaccount.yaml").Build()
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	kit.RefersToHostedCluster(ctx, d)
	p := providerOf(ctx.HCP)
	if p == nil {
		return fmt.Errorf("platform %s has no provider of Cluster API", ctx.HCP.Spec.Platform.Type)
	}
	spec, err := p.deployment(ctx)
	if err != nil {
		return err
	}
	labels := map[string]string{"control-plane": "capi-provider-controller-manager", "app": "capi-provider-controller-manager"}
	d.Spec = *spec
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = map[string]string{}
	for k, v := range labels {
		d.Spec.Template.Labels[k] = v
	}
	d.Spec.Template.Spec.ServiceAccountName = Name
	component.ManagementProxy(ctx, &d.Spec.Template.Spec.Containers[0])
	return nil
}

func adaptRole(ctx component.WorkloadContext, role *rbacv1.Role) error {
	if p := providerOf(ctx.HCP); p != nil {
		role.Rules = append(role.Rules, p.rules...)
	}
	return nil
}
