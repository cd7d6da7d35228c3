package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "manifests.package-operator.run", Version: "v1alpha1"}

// AddToScheme registers every kind of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &PackageManifest{}, &PackageManifestLock{}, &Repository{}, &RepositoryEntry{})
	return nil
}
