package none

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/machine"
)

// Platform implements platform.Platform.
type Platform struct{}

// InfraCR implements platform.Platform: there is no Cluster API here.
func (Platform) InfraCR(*hyperv1.HostedCluster, string, hyperv1.APIEndpoint) (client.Object, error) {
	return nil, nil
}

// CAPIProvider implements platform.Platform.
func (Platform) CAPIProvider(*hyperv1.HostedCluster, *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error) {
	return nil, nil
}

// Credentials implements platform.Platform: none are needed.
func (Platform) Credentials(context.Context, client.Reader, *hyperv1.HostedCluster, string) ([]client.Object, error) {
	return nil, nil
}

// CAPIProviderPolicyRules implements platform.Platform.
func (Platform) CAPIProviderPolicyRules() []rbacv1.PolicyRule { return nil }

// Traits implements platform.Platform: the user makes the machines, with the user data of the pool.
func (Platform) Traits() machine.Traits {
	return machine.Traits{Architectures: []string{hyperv1.ArchitectureAMD64, hyperv1.ArchitectureARM64}, SlowBoot: true}
}

// MachineTemplate implements platform.Platform.
func (Platform) MachineTemplate(machine.Input) (*machine.Template, error) { return nil, nil }

// DeleteCredentials implements platform.Platform.
func (Platform) DeleteCredentials(context.Context, client.Client, *hyperv1.HostedCluster, string) error {
	return nil
}

// Contained implements platform.Contained: there is nothing outside the namespace.
func (Platform) Contained() bool { return true }
