package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageManifestLock has the digests of what a PackageManifest names by tag; it is the file manifest.lock.yaml.
//
// +kubebuilder:object:root=true
type PackageManifestLock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PackageManifestLockSpec `json:"spec,omitempty"`
}

// PackageManifestLockSpec has the digests.
type PackageManifestLockSpec struct {
	// Images of the manifest.
	Images []PackageManifestLockImage `json:"images,omitempty"`
	// Dependencies of the manifest, as they were resolved.
	Dependencies []PackageManifestLockDependency `json:"dependencies,omitempty"`
}

// PackageManifestLockImage is an image of the manifest with its digest.
type PackageManifestLockImage struct {
	// Name that the manifest gives the image.
	Name string `json:"name"`
	// Image as the manifest names it.
	Image string `json:"image"`
	// Digest of the image: sha256:….
	Digest string `json:"digest"`
}

// PackageManifestLockDependency is a dependency of the manifest with what it was resolved to.
type PackageManifestLockDependency struct {
	// Name that the manifest gives the dependency.
	Name string `json:"name"`
	// Image of the package.
	Image string `json:"image"`
	// Digest of the image.
	Digest string `json:"digest"`
	// Version of the package.
	Version string `json:"version"`
}
