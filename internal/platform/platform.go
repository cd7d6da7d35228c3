package platform

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/agent"
	"hcp.internal/platform/internal/platform/aws"
	"hcp.internal/platform/internal/platform/azure"
	"hcp.internal/platform/internal/platform/gcp"
	"hcp.internal/platform/internal/platform/ibmcloud"
	"hcp.internal/platform/internal/platform/kubevirt"
	"hcp.internal/platform/internal/platform/local"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/platform/none"
	"hcp.internal/platform/internal/platform/openstack"
	"hcp.internal/platform/internal/platform/powervs"
)

// Platform is what the HostedCluster controller asks of the place where machines live. Methods that give objects only compute them: the
// controller applies them, in namespace hcpNamespace unless said otherwise. Implementations hold no state and may be used concurrently.
type Platform interface {
	// InfraCR is the Cluster API infrastructure object of the cluster, with apiVersion and kind, asked for on each pass once the HostedControlPlane exists. nil
	// means that the platform has no Cluster API, and then there is no CAPI Cluster either.
	InfraCR(hc *hyperv1.HostedCluster, hcpNamespace string, endpoint hyperv1.APIEndpoint) (client.Object, error)
	// CAPIProvider is the Deployment of the infrastructure provider; nil means none. hcp may be nil.
	CAPIProvider(hc *hyperv1.HostedCluster, hcp *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error)
	// Credentials are the Secrets with which the control plane reaches the platform. An error makes condition PlatformCredentialsFound
	// False with its text, so it names the Secret and what is wrong with it, never its content.
	Credentials(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error)
	// CAPIProviderPolicyRules are what the provider may do in its namespace besides what all providers may.
	CAPIProviderPolicyRules() []rbacv1.PolicyRule
	// Traits are what the NodePool controller has to know.
	Traits() machine.Traits
	// MachineTemplate is what machines of a NodePool are copied from; nil without managed machines. An error makes condition
	// ValidMachineTemplate False with its text, so it names the field and what is wrong with it.
	MachineTemplate(in machine.Input) (*machine.Template, error)
	// DeleteCredentials removes what Credentials or the platform left outside hcpNamespace. It is called until it returns nil.
	DeleteCredentials(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, hcpNamespace string) error
}

// OrphanDeleter is implemented by platforms whose machines can get stuck when their credentials are no longer valid.
type OrphanDeleter interface {
	// DeleteOrphanedMachines takes the finalizers off machines that can't be deleted properly any more.
	DeleteOrphanedMachines(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, hcpNamespace string) error
}

// platforms is the table of what this operator can host.
var platforms = map[hyperv1.PlatformType]Platform{
	hyperv1.AWSPlatform:       aws.Platform{},
	hyperv1.AgentPlatform:     agent.Platform{},
	hyperv1.AzurePlatform:     azure.Platform{},
	hyperv1.GCPPlatform:       gcp.Platform{},
	hyperv1.IBMCloudPlatform:  ibmcloud.Platform{},
	hyperv1.KubevirtPlatform:  kubevirt.Platform{},
	hyperv1.LocalPlatform:     local.Platform{},
	hyperv1.NonePlatform:      none.Platform{},
	hyperv1.OpenStackPlatform: openstack.Platform{},
	hyperv1.PowerVSPlatform:   powervs.Platform{},
}

// UnsupportedError says that this operator has no implementation of a platform.
type UnsupportedError struct {
	Type    hyperv1.PlatformType
	Enabled Enabled // what could be used instead
}

// Error says what to use instead.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("platform type %q is not supported by this operator: set spec.platform.type to one of %s", e.Type, strings.Join(e.Enabled.usable(), ", "))
}

// For returns the implementation of a platform, or an *UnsupportedError. It is for clusters that exist; whether an installation hosts clusters of a platform
// at all is Enabled's.
func For(t hyperv1.PlatformType) (Platform, error) {
	if p, ok := platforms[t]; ok {
		return p, nil
	}
	return nil, &UnsupportedError{Type: t}
}

// ForControlPlane is For, by a HostedControlPlane: what runs in a control plane takes platform Agent for None, but for its machines.
func ForControlPlane(hcp *hyperv1.HostedControlPlane) (Platform, error) {
	if of := hcp.Spec.Platform; of.Type == hyperv1.NonePlatform && of.Agent != nil {
		return For(hyperv1.AgentPlatform)
	}
	return For(hcp.Spec.Platform.Type)
}

// Supported lists the platform types that For knows, sorted.
func Supported() []string {
	var types []string
	for _, t := range slices.Sorted(maps.Keys(platforms)) {
		types = append(types, string(t))
	}
	return types
}

// Contained is implemented by platforms whose clusters may lie in their control-plane namespace altogether.
type Contained interface {
	// Contained tells that deleting the namespace leaves nothing of a hosted cluster behind, so that its deletion needs nobody's help.
	Contained() bool
}
