// Package ibmcloud is the platform of hosted clusters in IBM's managed service, which makes machines itself.
package ibmcloud

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/cloud"
	"hcp.internal/platform/internal/platform/machine"
)

// Platform implements platform.Platform.
type Platform struct{}

var clusterKind = schema.GroupVersionKind{Group: cloud.Infrastructure, Version: "v1beta2", Kind: "IBMVPCCluster"}

// withoutClusterAPI are the kinds of infrastructure that Cluster API has no part in.
var withoutClusterAPI = []string{"UPI", "Classic", "VPC"}

type clusterSpec struct {
	Region               string          `json:"region"`
	ResourceGroup        string          `json:"resourceGroup"`
	ControlPlaneEndpoint *cloud.Endpoint `json:"controlPlaneEndpoint,omitempty"`
}

// InfraCR implements platform.Platform: an empty IBMVPCCluster, where there is one at all.
func (Platform) InfraCR(hc *hyperv1.HostedCluster, hcpNamespace string, endpoint hyperv1.APIEndpoint) (client.Object, error) {
	if p := hc.Spec.Platform.IBMCloud; p != nil && slices.Contains(withoutClusterAPI, p.ProviderType) {
		return nil, nil
	}
	return cloud.External(clusterKind, hc, hcpNamespace, hc.Name, &clusterSpec{ControlPlaneEndpoint: cloud.EndpointOf(endpoint)})
}

// InfraStatus implements platform.InfraKeeper.
func (Platform) InfraStatus() map[string]any { return cloud.Ready() }

// CAPIProvider implements platform.Platform: the service makes the machines.
func (Platform) CAPIProvider(*hyperv1.HostedCluster, *hyperv1.HostedControlPlane) (*appsv1.DeploymentSpec, error) {
	return nil, nil
}

// CAPIProviderPolicyRules implements platform.Platform.
func (Platform) CAPIProviderPolicyRules() []rbacv1.PolicyRule { return nil }

// kmsKey is the key of the user's credentials for key management.
const kmsKey = "iam_apikey"

// Credentials implements platform.Platform: those for key management, when they are the user's.
func (Platform) Credentials(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	e := hc.Spec.SecretEncryption
	if e == nil || e.Type != hyperv1.KMS || e.KMS == nil || e.KMS.IBMCloud == nil || e.KMS.IBMCloud.Auth.Type != hyperv1.IBMCloudKMSUnmanagedAuth {
		return nil, nil
	}
	source := cloud.Source{Field: "spec.secretEncryption.kms.ibmcloud.auth.unmanaged.credentials", Keys: []string{kmsKey}}
	if u := e.KMS.IBMCloud.Auth.Unmanaged; u != nil {
		source.Name = u.Credentials.Name
	}
	data, err := cloud.Read(ctx, reader, hc.Namespace, source)
	if err != nil {
		return nil, err
	}
	return []client.Object{cloud.Secret(hcpNamespace, source.Name, cloud.Only(data, kmsKey))}, nil
}

// Traits implements platform.Platform: machines get the user data of the pool from the service.
func (Platform) Traits() machine.Traits {
	return machine.Traits{Architectures: []string{hyperv1.ArchitectureAMD64}, SlowBoot: true}
}

// MachineTemplate implements platform.Platform.
func (Platform) MachineTemplate(machine.Input) (*machine.Template, error) { return nil, nil }

// DeleteCredentials implements platform.Platform: there is nothing outside the namespace.
func (Platform) DeleteCredentials(context.Context, client.Client, *hyperv1.HostedCluster, string) error {
	return nil
}
