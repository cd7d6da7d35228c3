package cloudcontrollermanager

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

const (
	azureAccount = "azure-cloud-controller-manager"
	azureClass   = "managed-azure-cloud-provider"
)

// NewAzure makes the component of this platform.
func NewAzure() *component.WorkloadComponent {
	return builder("azure", hyperv1.AzurePlatform, component.Options{MultiZoneSpread: true}, adaptAzure).
		InjectTokenMinterContainer(component.TokenMinter{Type: component.CloudToken, ServiceAccountNamespace: "kube-system", ServiceAccountName: "azure-cloud-provider"}).
		WithManifestAdapter("config.yaml", component.AdaptManifest(azureConfigMap)).
		WithManifestAdapter("cloud-config-secret.yaml", component.AdaptManifest(azureSecret)).
		WithManifestAdapter("cloud-provider-secretproviderclass.yaml", kit.SecretProviderClass(cloudProvider)...).
		WithManifestAdapter("serviceaccount.yaml", component.When(notARO), component.AdaptManifest(azureServiceAccount)).
		Build()
}

func notARO(ctx component.WorkloadContext) (bool, error) { return !kit.ARO(ctx), nil }

func cloudProvider(hcp *hyperv1.HostedControlPlane) *hyperv1.ManagedIdentity {
	if all := kit.ManagedIdentities(hcp); all != nil {
		return &all.CloudProvider
	}
	return nil
}

func adaptAzure(ctx component.WorkloadContext, pod *corev1.PodSpec) error {
	main := component.Container(pod, Container)
	main.Args = append(main.Args, "--cluster-name="+ctx.HCP.Spec.InfraID)
	if kit.ARO(ctx) {
		kit.MountIdentity(pod, Container, "cloud-provider-cert", azureClass)
	} else {
		pod.ServiceAccountName = azureAccount
	}
	return nil
}

func azureServiceAccount(ctx component.WorkloadContext, account *corev1.ServiceAccount) error {
	if all := kit.WorkloadIdentities(ctx.HCP); all != nil {
		account.Annotations = map[string]string{
			"azure.workload.identity/client-id": string(all.CloudProvider.ClientID), "azure.workload.identity/tenant-id": ctx.HCP.Spec.Platform.Azure.TenantID,
		}
	}
	return nil
}

// azureConfig is the cloud configuration. Only what ends in omitempty may be absent.
type azureConfig struct {
	Cloud                                           string `json:"cloud"`
	TenantID                                        string `json:"tenantId"`
	UseManagedIdentityExtension                     bool   `json:"useManagedIdentityExtension"`
	UseFederatedWorkloadIdentityExtension           bool   `json:"useFederatedWorkloadIdentityExtension"`
	SubscriptionID                                  string `json:"subscriptionId"`
	AADClientID                                     string `json:"aadClientId"`
	AADClientSecret                                 string `json:"aadClientSecret"`
	AADClientCertPath                               string `json:"aadClientCertPath"`
	AADFederatedTokenFile                           string `json:"aadFederatedTokenFile"`
	AADMSIDataPlaneIdentityPath                     string `json:"aadMSIDataPlaneIdentityPath"`
	UserAssignedIdentityID                          string `json:"userAssignedIdentityID,omitempty"`
	ResourceGroup                                   string `json:"resourceGroup"`
	Location                                        string `json:"location"`
	VnetName                                        string `json:"vnetName"`
	VnetResourceGroup                               string `json:"vnetResourceGroup"`
	SubnetName                                      string `json:"subnetName"`
	SecurityGroupName                               string `json:"securityGroupName"`
	SecurityGroupResourceGroup                      string `json:"securityGroupResourceGroup"`
	RouteTableName                                  string `json:"routeTableName"`
	CloudProviderBackoff                            bool   `json:"cloudProviderBackoff"`
	CloudProviderBackoffDuration                    int    `json:"cloudProviderBackoffDuration"`
	UseInstanceMetadata                             bool   `json:"useInstanceMetadata"`
	LoadBalancerSku                                 string `json:"loadBalancerSku"`
	DisableOutboundSNAT                             bool   `json:"disableOutboundSNAT"`
	LoadBalancerName                                string `json:"loadBalancerName"`
	ClusterServiceLoadBalancerHealthProbeMode       string `json:"clusterServiceLoadBalancerHealthProbeMode"`
	ClusterServiceSharedLoadBalancerHealthProbePath string `json:"clusterServiceSharedLoadBalancerHealthProbePath,omitempty"`
	ClusterServiceSharedLoadBalancerHealthProbePort int    `json:"clusterServiceSharedLoadBalancerHealthProbePort,omitempty"`
}

// azureConfigOf is what the ConfigMap and the Secret have in common.
func azureConfigOf(ctx component.WorkloadContext) (azureConfig, error) {
	azure, config := ctx.HCP.Spec.Platform.Azure, azureConfig{}
	vnet, err := kit.ParseAzureResource("spec.platform.azure.vnetID", azure.VnetID)
	if err != nil {
		return config, err
	}
	subnet, err := kit.ParseAzureResource("spec.platform.azure.subnetID", azure.SubnetID)
	if err != nil {
		return config, err
	}
	group, err := kit.ParseAzureResource("spec.platform.azure.securityGroupID", azure.SecurityGroupID)
	if err != nil {
		return config, err
	}
	probe, err := healthProbeOf(ctx.HCP, hyperv1.AzureLoadBalancerHealthProbeModeAnnotation, "shared", "servicenodeport")
	if err != nil {
		return config, err
	}
	config = azureConfig{
		Cloud: azure.Cloud, TenantID: azure.TenantID, SubscriptionID: azure.SubscriptionID, ResourceGroup: azure.ResourceGroupName, Location: azure.Location,
		VnetName: vnet.Name, VnetResourceGroup: vnet.Group, SubnetName: subnet.Child, SecurityGroupName: group.Name, SecurityGroupResourceGroup: group.Group,
		LoadBalancerName: ctx.HCP.Spec.InfraID, CloudProviderBackoff: true, CloudProviderBackoffDuration: 6, LoadBalancerSku: "standard",
		DisableOutboundSNAT: true, UseInstanceMetadata: true,
		ClusterServiceLoadBalancerHealthProbeMode:       probe.mode,
		ClusterServiceSharedLoadBalancerHealthProbePath: probe.path, ClusterServiceSharedLoadBalancerHealthProbePort: probe.port,
	}
	if kit.ARO(ctx) {
		config.UseManagedIdentityExtension = true
		return config, nil
	}
	config.UseFederatedWorkloadIdentityExtension, config.AADFederatedTokenFile = true, kit.AzureTokenFile
	if all := kit.WorkloadIdentities(ctx.HCP); all != nil {
		config.AADClientID = string(all.CloudProvider.ClientID)
	}
	return config, nil
}

func (c azureConfig) text() (string, error) {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", fmt.Errorf("writing the cloud configuration: %w", err)
	}
	return string(raw), nil
}

// azureConfigMap is for machines and for the hosted cluster.
func azureConfigMap(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	if ctx.HCP.Spec.Platform.Azure == nil {
		return nil // a preview of another platform
	}
	config, err := azureConfigOf(ctx)
	if err != nil {
		return err
	}
	if registry := ctx.HCP.Spec.Platform.Azure.ContainerRegistry; registry != nil && registry.Credentials.ManagedIdentity != nil {
		config.UserAssignedIdentityID = registry.Credentials.ManagedIdentity.ResourceID
	}
	text, err := config.text()
	cm.Data = map[string]string{cloudConfKey: text}
	return err
}

// azureSecret is for the cloud controller manager itself.
func azureSecret(ctx component.WorkloadContext, secret *corev1.Secret) error {
	if ctx.HCP.Spec.Platform.Azure == nil {
		return nil
	}
	config, err := azureConfigOf(ctx)
	if err != nil {
		return err
	}
	if of := cloudProvider(ctx.HCP); of != nil && kit.ARO(ctx) {
		config.UseManagedIdentityExtension, config.UseInstanceMetadata = false, false
		config.AADMSIDataPlaneIdentityPath = kit.CertsDir + "/" + of.CredentialsSecretName
	}
	text, err := config.text()
	secret.Data = map[string][]byte{cloudConfKey: []byte(text)}
	return err
}
