package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CertificateSigningRequestApproval approves, by its existence in a control-plane namespace, the CertificateSigningRequest
// of the same name for a signer of that control plane. Whoever may create one may get a client certificate.
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

// SignerClass names a class of users that a signer is for.
//
// +kubebuilder:validation:Enum=customer-break-glass;sre-break-glass
type SignerClass string

const (
	// CustomerBreakGlassSigner is for owners of a hosted cluster who cannot log in otherwise.
	CustomerBreakGlassSigner SignerClass = "customer-break-glass"
	// SREBreakGlassSigner is for those who run the service.
	SREBreakGlassSigner SignerClass = "sre-break-glass"
)

// Condition types of a CertificateRevocationRequest, in the order in which they become True.
const (
	// SignerClassValidType says whether spec.signerClass names a signer.
	SignerClassValidType = "SignerClassValid"
	// RootCertificatesRegeneratedType says whether the signer has a new certificate.
	RootCertificatesRegeneratedType = "RootCertificatesRegenerated"
	// NewCertificatesTrustedType says whether every API server accepts the new signer.
	NewCertificatesTrustedType = "NewCertificatesTrusted"
	// LeafCertificatesRegeneratedType says whether every certificate of the old signer has been replaced.
	LeafCertificatesRegeneratedType = "LeafCertificatesRegenerated"
	// PreviousCertificatesRevokedType says whether every API server rejects the old signer.
	PreviousCertificatesRevokedType = "PreviousCertificatesRevoked"
)

// Reasons of these conditions.
const (
	// SignerClassUnknownReason means that spec.signerClass names no signer.
	SignerClassUnknownReason = "SignerClassUnknown"
	// RootCertificatesStaleReason means that the signer has the old certificate.
	RootCertificatesStaleReason = "RootCertificatesStale"
	// LeafCertificatesStaleReason means that certificates of the old signer are still in use.
	LeafCertificatesStaleReason = "LeafCertificatesStale"
	// RevocationVerificationTimeoutReason means that an API server still accepts the old signer after ten minutes.
	RevocationVerificationTimeoutReason = "RevocationVerificationTimeout"
)

// CertificateRevocationRequest revokes, once, all certificates that a signer has issued until now.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=certificaterevocationrequests,shortName=crr;crrs,scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
type CertificateRevocationRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says whose certificates are revoked.
	//
	// +optional
	Spec CertificateRevocationRequestSpec `json:"spec,omitzero"`

	// status says how far the revocation is.
	//
	// +optional
	Status CertificateRevocationRequestStatus `json:"status,omitzero"`
}

// CertificateRevocationRequestList is a list of CertificateRevocationRequests.
//
// +kubebuilder:object:root=true
type CertificateRevocationRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CertificateRevocationRequest `json:"items"`
}

// CertificateRevocationRequestSpec says whose certificates are revoked.
type CertificateRevocationRequestSpec struct {
	// signerClass names the signer. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="signerClass is immutable"
	SignerClass SignerClass `json:"signerClass"`
}

// CertificateRevocationRequestStatus says how far the revocation is.
type CertificateRevocationRequestStatus struct {
	// revocationTimestamp is when the operator took up the request. Certificates issued before are revoked.
	//
	// +optional
	RevocationTimestamp *metav1.Time `json:"revocationTimestamp,omitempty"`

	// previousSigner names a Secret with the old signer, which is kept until it is known to be rejected.
	//
	// +optional
	PreviousSigner *corev1.LocalObjectReference `json:"previousSigner,omitempty"`

	// conditions say how far the revocation is.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
