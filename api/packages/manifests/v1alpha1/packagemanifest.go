package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1alpha1 "hcp.internal/api/packages/v1alpha1"
)

// PackageManifest describes a package; it is the file manifest.yaml.
//
// +kubebuilder:object:root=true
type PackageManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PackageManifestSpec `json:"spec,omitempty"`
	Test PackageManifestTest `json:"test,omitempty"`
}

// PackageManifestScope is where a package can be installed.
type PackageManifestScope string

const (
	// PackageManifestScopeCluster allows a ClusterPackage.
	PackageManifestScopeCluster PackageManifestScope = "Cluster"
	// PackageManifestScopeNamespaced allows a Package.
	PackageManifestScopeNamespaced PackageManifestScope = "Namespaced"
)

// PackageManifestSpec says what the package needs and how it is rolled out.
type PackageManifestSpec struct {
	// Scopes that the package can be installed in: one or both.
	Scopes []PackageManifestScope `json:"scopes"`
	// Phases in the order of the rollout. Objects name theirs in an annotation.
	Phases []PackageManifestPhase `json:"phases"`
	// AvailabilityProbes say when objects count as available.
	AvailabilityProbes []packagesv1alpha1.ObjectSetProbe `json:"availabilityProbes,omitempty"`
	// Config says which parameters there are.
	Config PackageManifestSpecConfig `json:"config,omitempty"`
	// Images that templates use by name; the lock file has their digests.
	Images []PackageManifestImage `json:"images,omitempty"`
	// Components, when present, makes every folder below components/ a package of its own.
	Components *PackageManifestComponentsConfig `json:"components,omitempty"`
	// Filter leaves out objects and files.
	Filter PackageManifestFilter `json:"filter,omitempty"`
	// Constraints must hold where the package is installed.
	Constraints []PackageManifestConstraint `json:"constraints,omitempty"`
	// Repositories that dependencies are looked up in.
	Repositories []PackageManifestRepository `json:"repositories,omitempty"`
	// Dependencies are packages whose images templates use by name.
	Dependencies []PackageManifestDependency `json:"dependencies,omitempty"`
}

// PackageManifestPhase is a step of the rollout.
type PackageManifestPhase struct {
	// Name of the phase.
	Name string `json:"name"`
	// Class says who rolls the phase out; empty for the package operator.
	Class string `json:"class,omitempty"`
}

// PackageManifestSpecConfig describes spec.config of Packages.
type PackageManifestSpecConfig struct {
	// OpenAPIV3Schema validates and defaults the parameters. Without it there are none.
	OpenAPIV3Schema *apiextensionsv1.JSONSchemaProps `json:"openAPIV3Schema,omitempty"`
}

// PackageManifestImage gives an image a name.
type PackageManifestImage struct {
	// Name that templates use.
	Name string `json:"name"`
	// Image with its tag.
	Image string `json:"image"`
}

// PackageManifestComponentsConfig has no settings.
type PackageManifestComponentsConfig struct{}

// PackageManifestFilter leaves out objects and files by CEL expressions.
type PackageManifestFilter struct {
	// Conditions are expressions that others can use by name.
	Conditions []PackageManifestNamedCondition `json:"conditions,omitempty"`
	// Paths are left out when their expression is false.
	Paths []PackageManifestPath `json:"paths,omitempty"`
}

// PackageManifestNamedCondition is an expression with a name.
type PackageManifestNamedCondition struct {
	// Name that other expressions use: cond.<name>.
	Name string `json:"name"`
	// Expression in CEL that gives a bool.
	Expression string `json:"expression"`
}

// PackageManifestPath is an expression for files.
type PackageManifestPath struct {
	// Glob that files match; ** goes through folders.
	Glob string `json:"glob"`
	// Expression in CEL; the files are left out when it is false.
	Expression string `json:"expression"`
}

// PackageManifestConstraint holds one requirement.
type PackageManifestConstraint struct {
	// PlatformVersion requires a version of a platform.
	PlatformVersion *PackageManifestPlatformVersionConstraint `json:"platformVersion,omitempty"`
	// Platform requires one of these platforms.
	Platform []PlatformName `json:"platform,omitempty"`
	// UniqueInScope allows only one installation: in the namespace of a Package, in the cluster of a ClusterPackage.
	UniqueInScope *PackageManifestUniqueInScopeConstraint `json:"uniqueInScope,omitempty"`
}

// PlatformName is a platform that packages run on.
type PlatformName string

const (
	// Kubernetes is every cluster.
	Kubernetes PlatformName = "Kubernetes"
	// OpenShift is every cluster with a ClusterVersion.
	OpenShift PlatformName = "OpenShift"
)

// PackageManifestPlatformVersionConstraint requires a version of a platform.
type PackageManifestPlatformVersionConstraint struct {
	// Name of the platform.
	Name PlatformName `json:"name"`
	// Range of versions, such as ">=1.20".
	Range string `json:"range"`
}

// PackageManifestUniqueInScopeConstraint has no settings.
type PackageManifestUniqueInScopeConstraint struct{}

// PackageManifestRepository is a file or an image.
type PackageManifestRepository struct {
	// File is a path below the package's folder.
	File string `json:"file,omitempty"`
	// Image is a repository image.
	Image string `json:"image,omitempty"`
}

// PackageManifestDependency holds one dependency.
type PackageManifestDependency struct {
	// Image of another package.
	Image *PackageManifestDependencyImage `json:"image,omitempty"`
}

// PackageManifestDependencyImage is a package of a repository.
type PackageManifestDependencyImage struct {
	// Name that templates use.
	Name string `json:"name"`
	// Package is <package name>.<repository name>.
	Package string `json:"package"`
	// Range of versions; empty for any.
	Range string `json:"range"`
}
