package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/platform/cloud"
)

// Secrets of the control plane's namespace.
const (
	ingressSecret  = "azure-ingress-credentials"
	registrySecret = "azure-image-registry-credentials"
	networkSecret  = "cloud-network-config-controller-creds"
	kmsSecret      = "azure-kms-config"
)

// Credentials implements platform.Platform. They hold no secret: identities are proved by tokens, or by what the key vault has.
func (Platform) Credentials(_ context.Context, _ client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	a, err := specOf(hc)
	if err != nil {
		return nil, err
	}
	ids, err := identitiesOf(a)
	if err != nil {
		return nil, fmt.Errorf("no Secret can be made: %w", err)
	}
	of := func(name string, identity *hyperv1.WorkloadIdentity) client.Object {
		data := map[string][]byte{
			"azure_region": []byte(a.Location), "azure_resource_prefix": []byte(hc.Name + "-" + hc.Spec.InfraID), "azure_resourcegroup": []byte(a.ResourceGroupName),
			"azure_subscription_id": []byte(a.SubscriptionID), "azure_tenant_id": []byte(a.TenantID),
		}
		if identity != nil {
			maps.Copy(data, map[string][]byte{"azure_client_id": []byte(identity.ClientID), "azure_federated_token_file": []byte(tokenFile)})
		}
		return cloud.Secret(hcpNamespace, name, data)
	}
	var list []client.Object
	if w := ids.workload; w != nil {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Spec.Capabilities = hc.Spec.Capabilities
		if payload.HasCapability(hcp, hyperv1.IngressCapability) {
			list = append(list, of(ingressSecret, &w.Ingress))
		}
		if payload.HasCapability(hcp, hyperv1.ImageRegistryCapability) {
			list = append(list, of(registrySecret, &w.ImageRegistry))
		}
		list = append(list, of(networkSecret, &w.Network))
	} else {
		list = append(list, of(networkSecret, nil))
	}
	kms, err := kmsConfig(hc, a)
	if err != nil || kms == nil {
		return list, err
	}
	return append(list, cloud.Secret(hcpNamespace, kmsSecret, map[string][]byte{"cloud.conf": kms})), nil
}

// kmsCloud is what the plugin that encrypts with Azure's keys knows of the cloud.
type kmsCloud struct {
	Cloud                        string `json:"cloud"`
	TenantID                     string `json:"tenantId"`
	UseManagedIdentityExtension  bool   `json:"useManagedIdentityExtension"`
	UseWorkloadIdentityExtension bool   `json:"useWorkloadIdentityExtension,omitempty"`
	SubscriptionID               string `json:"subscriptionId"`
	ResourceGroup                string `json:"resourceGroup"`
	Location                     string `json:"location"`
	LoadBalancerName             string `json:"loadBalancerName"`
	CloudProviderBackoff         bool   `json:"cloudProviderBackoff"`
	CloudProviderBackoffDuration int    `json:"cloudProviderBackoffDuration"`
	UseInstanceMetadata          bool   `json:"useInstanceMetadata"`
	LoadBalancerSku              string `json:"loadBalancerSku"`
	DisableOutboundSNAT          bool   `json:"disableOutboundSNAT"`
	IdentityPath                 string `json:"aadMSIDataPlaneIdentityPath,omitempty"`
}

// kmsConfig is nil unless the cluster encrypts with Azure's keys.
func kmsConfig(hc *hyperv1.HostedCluster, a *hyperv1.AzurePlatformSpec) ([]byte, error) {
	e := hc.Spec.SecretEncryption
	if e == nil || e.Type != hyperv1.KMS || e.KMS == nil || e.KMS.Azure == nil {
		return nil, nil
	}
	conf := kmsCloud{
		Cloud: a.Cloud, TenantID: a.TenantID, SubscriptionID: a.SubscriptionID, ResourceGroup: a.ResourceGroupName, Location: a.Location, LoadBalancerName: hc.Spec.InfraID,
		CloudProviderBackoff: true, CloudProviderBackoffDuration: 6, LoadBalancerSku: "standard", DisableOutboundSNAT: true,
	}
	switch k := e.KMS.Azure; {
	case k.KMS != nil && k.KMS.CredentialsSecretName != "":
		conf.IdentityPath = certsDir + "/" + k.KMS.CredentialsSecretName
	case k.WorkloadIdentity != nil && k.WorkloadIdentity.ClientID != "":
		conf.UseWorkloadIdentityExtension = true
	default:
		return nil, fmt.Errorf("Secret %s can't be made: spec.secretEncryption.kms.azure has neither kms.credentialsSecretName nor workloadIdentity.clientID: write one of them", kmsSecret)
	}
	raw, err := json.MarshalIndent(conf, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration of key management: %w", err)
	}
	return raw, nil
}
