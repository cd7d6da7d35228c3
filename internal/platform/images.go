package platform

import hyperv1 "hcp.internal/api/hypershift/v1beta1"

// ProgramImage is a program of Cluster API whose image an installation may name. Without that, and without the annotation, a hosted cluster runs the one of its release.
type ProgramImage struct {
	// Tag names it in the file that `hypershift install --image-refs` takes.
	Tag string
	// Env is the variable of the operator with the image.
	Env string
	// Annotation of a HostedCluster names it for that one.
	Annotation string
}

// ProgramImages are all of them.
func ProgramImages() []ProgramImage {
	return []ProgramImage{
		{"cluster-api", "IMAGE_CLUSTER_API", hyperv1.ClusterAPIManagerImage},
		{"cluster-api-provider-agent", "IMAGE_AGENT_CAPI_PROVIDER", hyperv1.ClusterAPIAgentProviderImage},
		{"cluster-api-provider-aws", "IMAGE_AWS_CAPI_PROVIDER", hyperv1.ClusterAPIProviderAWSImage},
		{"cluster-api-provider-azure", "IMAGE_AZURE_CAPI_PROVIDER", hyperv1.ClusterAPIAzureProviderImage},
		{"cluster-api-provider-gcp", "IMAGE_GCP_CAPI_PROVIDER", hyperv1.ClusterAPIGCPProviderImage},
		{"cluster-api-provider-kubevirt", "IMAGE_KUBEVIRT_CAPI_PROVIDER", hyperv1.ClusterAPIKubeVirtProviderImage},
		{"cluster-api-provider-openstack", "IMAGE_OPENSTACK_CAPI_PROVIDER", hyperv1.ClusterAPIOpenStackProviderImage},
		{"cluster-api-provider-powervs", "IMAGE_POWERVS_CAPI_PROVIDER", hyperv1.ClusterAPIPowerVSProviderImage},
	}
}

// ImagesFrom reads the images that the installation names, by the annotation that names them for one cluster; nil when it names none.
func ImagesFrom(getenv func(string) string) map[string]string {
	var images map[string]string
	for _, p := range ProgramImages() {
		if image := getenv(p.Env); image != "" {
			if images == nil {
				images = map[string]string{}
			}
			images[p.Annotation] = image
		}
	}
	return images
}
