package clusterstorageoperator

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// driver is a CSI driver of Azure, as far as it is not like the other one.
type driver struct {
	managed  func(*hyperv1.HostedControlPlane) *hyperv1.ManagedIdentity
	workload func(*hyperv1.AzureWorkloadIdentities) hyperv1.WorkloadIdentity
}

var (
	disk = driver{
		managed: func(hcp *hyperv1.HostedControlPlane) *hyperv1.ManagedIdentity {
			return identity(hcp, func(all *hyperv1.ControlPlaneManagedIdentities) *hyperv1.ManagedIdentity { return &all.Disk })
		},
		workload: func(all *hyperv1.AzureWorkloadIdentities) hyperv1.WorkloadIdentity { return all.Disk },
	}
	file = driver{
		managed: func(hcp *hyperv1.HostedControlPlane) *hyperv1.ManagedIdentity {
			return identity(hcp, func(all *hyperv1.ControlPlaneManagedIdentities) *hyperv1.ManagedIdentity { return &all.File })
		},
		workload: func(all *hyperv1.AzureWorkloadIdentities) hyperv1.WorkloadIdentity { return all.File },
	}
)

func identity(hcp *hyperv1.HostedControlPlane, of func(*hyperv1.ControlPlaneManagedIdentities) *hyperv1.ManagedIdentity) *hyperv1.ManagedIdentity {
	if all := kit.ManagedIdentities(hcp); all != nil {
		return of(all)
	}
	return nil
}

// azureConfig is the cloud configuration of a CSI driver.
type azureConfig struct {
	Cloud                                 string `json:"cloud"`
	TenantID                              string `json:"tenantId"`
	UseFederatedWorkloadIdentityExtension bool   `json:"useFederatedWorkloadIdentityExtension,omitempty"`
	SubscriptionID                        string `json:"subscriptionId"`
	AADClientID                           string `json:"aadClientId,omitempty"`
	AADFederatedTokenFile                 string `json:"aadFederatedTokenFile,omitempty"`
	AADMSIDataPlaneIdentityPath           string `json:"aadMSIDataPlaneIdentityPath,omitempty"`
	ResourceGroup                         string `json:"resourceGroup"`
	Location                              string `json:"location"`
	VnetName                              string `json:"vnetName"`
	VnetResourceGroup                     string `json:"vnetResourceGroup"`
}

// cloudConfig writes the cloud configuration of a driver.
func cloudConfig(d driver) func(component.WorkloadContext, *corev1.Secret) error {
	return func(ctx component.WorkloadContext, secret *corev1.Secret) error {
		azure := ctx.HCP.Spec.Platform.Azure
		if azure == nil {
			return fmt.Errorf("spec.platform.azure is required on platform Azure")
		}
		network, err := kit.ParseAzureResource("spec.platform.azure.vnetID", azure.VnetID)
		if err != nil {
			return err
		}
		config := azureConfig{
			Cloud: azure.Cloud, TenantID: azure.TenantID, SubscriptionID: azure.SubscriptionID, ResourceGroup: azure.ResourceGroupName, Location: azure.Location,
			VnetName: network.Name, VnetResourceGroup: network.Group,
		}
		if kit.ARO(ctx) {
			if of := d.managed(ctx.HCP); of != nil {
				config.AADMSIDataPlaneIdentityPath = kit.CertsDir + "/" + of.CredentialsSecretName
			}
		} else {
			config.UseFederatedWorkloadIdentityExtension, config.AADFederatedTokenFile = true, kit.AzureTokenFile
			if all := kit.WorkloadIdentities(ctx.HCP); all != nil {
				config.AADClientID = string(d.workload(all).ClientID)
			}
		}
		raw, err := json.Marshal(config)
		if err != nil {
			return fmt.Errorf("writing the cloud configuration of Secret %s: %w", secret.Name, err)
		}
		secret.Data = map[string][]byte{"cloud.conf": raw}
		return nil
	}
}
