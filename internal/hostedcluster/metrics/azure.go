package metrics

import (
	"strings"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

var (
	azureInfo = newMetric("hosted_cluster_azure_info",
		"Constant 1 for a hosted cluster on Azure; the labels tell where in Azure it is.",
		with(identity, "location", "resource_group_name", "subscription_id")...)
	managedAzureInfo = newMetric("hosted_cluster_managed_azure_info",
		"Constant 1 for a hosted cluster on Azure with managed identities; label hosted_cluster_resource_id is the resource that annotation azure.microsoft.com/hcp-cluster-azure-resource-id names.",
		with(identity, "location", "resource_group_name", "subscription_id", "hosted_cluster_resource_id", "hosted_cluster_resource_group")...)
	acrIdentity = newMetric("hypershift_cluster_acr_pull_identity_configured",
		"1 when nodes of a hosted cluster on Azure log in to Azure Container Registry with an identity of their own.", identity...)
)

// ofAzure tells of a hosted cluster on Azure.
func ofAzure(hc *hyperv1.HostedCluster) []sample {
	azure := hc.Spec.Platform.Azure
	if hc.Spec.Platform.Type != hyperv1.AzurePlatform || azure == nil {
		return nil
	}
	id := []string{hc.Namespace, hc.Name, hc.Spec.ClusterID}
	where := with(id, azure.Location, azure.ResourceGroupName, azure.SubscriptionID)
	out := []sample{
		{azureInfo, 1, where},
		{acrIdentity, float64(one(azure.ContainerRegistry != nil && azure.ContainerRegistry.Credentials.ManagedIdentity != nil)), id},
	}
	if azure.AzureAuthenticationConfig.ManagedIdentities != nil {
		resource := hc.Annotations[hyperv1.AzureHCPClusterResourceIDAnnotation]
		out = append(out, sample{managedAzureInfo, 1, with(where, resource, resourceGroup(resource))})
	}
	return out
}

// resourceGroup of /subscriptions/…/resourceGroups/GROUP/…; empty when the ID is none of these.
func resourceGroup(id string) string {
	parts := strings.Split(id, "/")
	for i := range len(parts) - 1 {
		if strings.EqualFold(parts[i], "resourceGroups") {
			return parts[i+1]
		}
	}
	return ""
}
