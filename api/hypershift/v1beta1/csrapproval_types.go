package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CertificateSigningRequestApproval is the form of this kind that old clients know.
//
// Deprecated: the signers watch the kind of certificates.hypershift.openshift.io.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=certificatesigningrequestapprovals,shortName=csra;csras,scope=Namespaced
// +kubebuilder:storageversion
type CertificateSigningRequestApproval struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is empty.
	//
	// +optional
	Spec CertificateSigningRequestApprovalSpec `json:"spec,omitzero"`

	// status is empty.
	//
	// +optional
	Status CertificateSigningRequestApprovalStatus `json:"status,omitzero"`
}

// CertificateSigningRequestApprovalSpec is empty.
type CertificateSigningRequestApprovalSpec struct{}

// CertificateSigningRequestApprovalStatus is empty.
type CertificateSigningRequestApprovalStatus struct{}

// CertificateSigningRequestApprovalList is a list of CertificateSigningRequestApprovals.
//
// +kubebuilder:object:root=true
type CertificateSigningRequestApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CertificateSigningRequestApproval `json:"items"`
}
