package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Repository is a list of packages. It is the first document of a repository file, and the entries follow.
//
// +kubebuilder:object:root=true
type Repository struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// RepositoryEntry is a package of a repository.
//
// +kubebuilder:object:root=true
type RepositoryEntry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Data RepositoryEntryData `json:"data,omitempty"`
}

// RepositoryEntryData describes a package.
type RepositoryEntryData struct {
	// Image of the package, without tag.
	Image string `json:"image"`
	// Digest of the image: the hexadecimal part.
	Digest string `json:"digest"`
	// Versions that the package is, such as v1.2.3.
	Versions []string `json:"versions"`
	// Constraints of the package's manifest.
	Constraints []PackageManifestConstraint `json:"constraints,omitempty"`
	// Name of the package.
	Name string `json:"name"`
}
