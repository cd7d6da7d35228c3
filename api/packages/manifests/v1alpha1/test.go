package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// PackageManifestTest says how the package is tested.
type PackageManifestTest struct {
	// Template are cases that the package is rendered with.
	Template []PackageManifestTestCaseTemplate `json:"template,omitempty"`
	// Kubeconform checks what is rendered against schemas.
	Kubeconform *PackageManifestTestKubeconform `json:"kubeconform,omitempty"`
}

// PackageManifestTestCaseTemplate is a context to render the package with.
type PackageManifestTestCaseTemplate struct {
	// Name of the case, and of its folder in .test-fixtures.
	Name string `json:"name"`
	// Context that templates see.
	Context TemplateContext `json:"context,omitempty"`
}

// PackageManifestTestKubeconform says which schemas to use.
type PackageManifestTestKubeconform struct {
	// KubernetesVersion that the schemas are for.
	KubernetesVersion string `json:"kubernetesVersion"`
	// SchemaLocations are templates of URLs or paths.
	SchemaLocations []string `json:"schemaLocations,omitempty"`
}

// TemplateContext is what templates see.
type TemplateContext struct {
	// Package that is installed.
	Package TemplateContextPackage `json:"package"`
	// Config of the Package, with defaults.
	Config *runtime.RawExtension `json:"config,omitempty"`
	// Environment that the package is installed in.
	Environment PackageEnvironment `json:"environment"`
}

// TemplateContextPackage is the package that is installed.
type TemplateContextPackage struct {
	// TemplateContextObjectMeta of the Package.
	TemplateContextObjectMeta `json:"metadata"`
	// Image of the package.
	Image string `json:"image"`
}

// TemplateContextObjectMeta is what templates see of an object's metadata.
type TemplateContextObjectMeta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// PackageEnvironment is what is known about the cluster. Parts that are absent don't exist for templates.
type PackageEnvironment struct {
	// Kubernetes is always there.
	Kubernetes PackageEnvironmentKubernetes `json:"kubernetes"`
	// OpenShift, when the cluster is one.
	OpenShift *PackageEnvironmentOpenShift `json:"openShift,omitempty"`
	// Proxy, when the cluster has one.
	Proxy *PackageEnvironmentProxy `json:"proxy,omitempty"`
	// HyperShift, when the cluster serves HostedClusters.
	HyperShift *PackageEnvironmentHyperShift `json:"hyperShift,omitempty"`
}

// PackageEnvironmentKubernetes is the API server.
type PackageEnvironmentKubernetes struct {
	// Version of the API server, such as v1.36.3.
	Version string `json:"version"`
}

// PackageEnvironmentOpenShift is an OpenShift cluster.
type PackageEnvironmentOpenShift struct {
	// Version that the cluster runs.
	Version string `json:"version"`
	// Managed, when the cluster is a managed one.
	Managed *PackageEnvironmentManagedOpenShift `json:"managed,omitempty"`
}

// PackageEnvironmentManagedOpenShift is a managed OpenShift cluster.
type PackageEnvironmentManagedOpenShift struct {
	// Data describes the cluster.
	Data map[string]string `json:"data"`
}

// PackageEnvironmentProxy is how the cluster reaches others.
type PackageEnvironmentProxy struct {
	HTTPProxy  string `json:"httpProxy,omitempty"`
	HTTPSProxy string `json:"httpsProxy,omitempty"`
	NoProxy    string `json:"noProxy,omitempty"`
}

// PackageEnvironmentHyperShift is a management cluster of hosted clusters.
type PackageEnvironmentHyperShift struct {
	// HostedCluster whose namespace the package is in.
	HostedCluster *PackageEnvironmentHyperShiftHostedCluster `json:"hostedCluster,omitempty"`
}

// PackageEnvironmentHyperShiftHostedCluster is a hosted cluster.
type PackageEnvironmentHyperShiftHostedCluster struct {
	// TemplateContextObjectMeta of the HostedCluster.
	TemplateContextObjectMeta `json:"metadata"`
	// HostedClusterNamespace is where the control plane runs.
	HostedClusterNamespace string `json:"hostedClusterNamespace"`
	// NodeSelector of the control plane.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}
