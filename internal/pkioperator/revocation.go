package pkioperator

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
)

// rejectionTimeout is how long API servers may take to reject what was revoked before that is reported as a problem.
const rejectionTimeout = 10 * time.Minute

// observedRevocation is what the next step of a revocation is decided from.
type observedRevocation struct {
	namespace string
	request   *certificatesv1alpha1.CertificateRevocationRequest
	secret    *corev1.Secret    // with the authority of the signer
	previous  *corev1.Secret    // the copy of the one that is revoked
	bundle    *corev1.ConfigMap // of the signer
	// trusted are the authorities that kube-apiserver is given.
	trusted []*x509.Certificate
	// secrets are all of the namespace.
	secrets []corev1.Secret
}

// move is the next step: at most one of its writes. The zero value means that there is nothing to do now.
type move struct {
	status *certificatesv1alpha1.CertificateRevocationRequestStatus
	// copySigner stores the present authority under previousSignerName.
	copySigner bool
	// regenerate is a Secret whose certificate is to be replaced.
	regenerate *corev1.Secret
	// bundle is to be stored.
	bundle *corev1.ConfigMap
	// ask asks every API server whether it accepts the new authority, and the previous one; accepted is told the answers.
	ask      bool
	accepted func(newer, older bool) move
	// done: nothing will have to be done any more.
	done bool
}

func isTrue(r *certificatesv1alpha1.CertificateRevocationRequest, kind string) bool {
	return conditions.IsTrue(r.Status.Conditions, kind)
}

// nextMove decides on one step. Revocation is complete only after every server was seen to reject what was revoked.
func nextMove(obs observedRevocation, now time.Time) move {
	r := obs.request
	s, known := signerOfClass(r.Spec.SignerClass)
	switch {
	case isTrue(r, certificatesv1alpha1.PreviousCertificatesRevokedType):
		return move{done: true}
	case !known:
		return move{done: true, status: withConditions(r, now, conditions.False(certificatesv1alpha1.SignerClassValidType, certificatesv1alpha1.SignerClassUnknownReason,
			fmt.Sprintf("There is no signer %q.", r.Spec.SignerClass)))}
	case r.Status.RevocationTimestamp == nil:
		status := withConditions(r, now, asExpected(certificatesv1alpha1.SignerClassValidType, fmt.Sprintf("The signer %q is known.", r.Spec.SignerClass)))
		status.RevocationTimestamp = &metav1.Time{Time: now.Truncate(time.Second)}
		return move{status: status}
	case !isTrue(r, certificatesv1alpha1.RootCertificatesRegeneratedType):
		return moveRoot(obs, now)
	case !isTrue(r, certificatesv1alpha1.NewCertificatesTrustedType):
		return moveTrust(obs, s, now)
	case !isTrue(r, certificatesv1alpha1.LeafCertificatesRegeneratedType):
		return moveLeaves(obs, s, now)
	}
	return moveRejection(obs, now)
}

// revoked says whether a certificate is from before the revocation.
func revoked(r *certificatesv1alpha1.CertificateRevocationRequest, cert *x509.Certificate) bool {
	return !cert.NotBefore.After(r.Status.RevocationTimestamp.Time)
}

func moveRoot(obs observedRevocation, now time.Time) move {
	r := obs.request
	current, err := parseAuthority(obs.secret)
	if err != nil {
		return move{} // the rotation makes one
	}
	if !revoked(r, current.cert) {
		return move{status: withConditions(r, now,
			asExpected(certificatesv1alpha1.RootCertificatesRegeneratedType, "The signer has a new certificate."),
			conditions.False(certificatesv1alpha1.NewCertificatesTrustedType, hyperv1.WaitingForAvailableReason, "Waiting until every API server trusts the new signer."))}
	}
	switch {
	case obs.previous == nil:
		return move{copySigner: true}
	case r.Status.PreviousSigner == nil:
		status := withConditions(r, now, conditions.False(certificatesv1alpha1.RootCertificatesRegeneratedType, certificatesv1alpha1.RootCertificatesStaleReason, "The signer has a certificate from before the revocation."))
		status.PreviousSigner = &corev1.LocalObjectReference{Name: previousSignerName(r.Name)}
		return move{status: status}
	case obs.secret.Annotations[notAfterAnnotation] != forceRegeneration:
		return move{regenerate: obs.secret}
	}
	return move{}
}

func moveTrust(obs observedRevocation, _ signer, now time.Time) move {
	current, err := parseAuthority(obs.secret)
	if err != nil || !has(obs.trusted, current.cert) {
		return move{}
	}
	// Whether the old one is still accepted is of no interest: that it ends is what was asked for.
	return move{ask: true, accepted: func(newer, _ bool) move {
		if !newer {
			return move{}
		}
		return move{status: withConditions(obs.request, now,
			asExpected(certificatesv1alpha1.NewCertificatesTrustedType, "Every API server trusts the new signer."),
			conditions.False(certificatesv1alpha1.LeafCertificatesRegeneratedType, certificatesv1alpha1.LeafCertificatesStaleReason, "Certificates of the old signer are being replaced."))}
	}}
}

func moveLeaves(obs observedRevocation, s signer, now time.Time) move {
	r, stale := obs.request, false
	for i := range obs.secrets {
		secret := &obs.secrets[i]
		at, ours := issuedAt(obs.namespace, s.secret, secret.Annotations[issuerAnnotation])
		if !ours || at.After(r.Status.RevocationTimestamp.Time) || secret.Name == previousSignerName(r.Name) {
			continue
		}
		stale = true
		if secret.Annotations[notAfterAnnotation] != forceRegeneration {
			return move{regenerate: secret}
		}
	}
	if stale {
		return move{}
	}
	certs := parseBundle(obs.bundle, names.CABundleKey)
	kept := slices.DeleteFunc(slices.Clone(certs), func(c *x509.Certificate) bool { return revoked(r, c) })
	if len(kept) < len(certs) {
		return move{bundle: bundleWith(observedSigner{namespace: obs.namespace, bundle: obs.bundle}, s.bundle, kept)}
	}
	return move{status: withConditions(r, now,
		asExpected(certificatesv1alpha1.LeafCertificatesRegeneratedType, "Every certificate of the old signer was replaced."),
		conditions.False(certificatesv1alpha1.PreviousCertificatesRevokedType, hyperv1.WaitingForAvailableReason, "Waiting until every API server rejects the old signer."))}
}

func moveRejection(obs observedRevocation, now time.Time) move {
	r := obs.request
	late := func() move {
		since := conditions.Get(r.Status.Conditions, certificatesv1alpha1.LeafCertificatesRegeneratedType).LastTransitionTime
		if now.Sub(since.Time) < rejectionTimeout {
			return move{}
		}
		return move{status: withConditions(r, now, conditions.False(certificatesv1alpha1.PreviousCertificatesRevokedType, certificatesv1alpha1.RevocationVerificationTimeoutReason,
			fmt.Sprintf("Not every API server was seen to reject the old signer within %s; look at the pods of kube-apiserver. It is checked further.", rejectionTimeout)))}
	}
	if slices.ContainsFunc(obs.trusted, func(c *x509.Certificate) bool {
		_, ours := issuedAt(obs.namespace, mustSigner(r).secret, c.Subject.CommonName)
		return ours && revoked(r, c)
	}) {
		return late()
	}
	return move{ask: true, accepted: func(newer, older bool) move {
		if !newer || older {
			return late()
		}
		return move{status: withConditions(r, now, asExpected(certificatesv1alpha1.PreviousCertificatesRevokedType, "Every API server rejects the old signer."))}
	}}
}

// mustSigner is the signer of a request whose class was found valid.
func mustSigner(r *certificatesv1alpha1.CertificateRevocationRequest) signer {
	s, _ := signerOfClass(r.Spec.SignerClass)
	return s
}

func withConditions(r *certificatesv1alpha1.CertificateRevocationRequest, now time.Time, conds ...metav1.Condition) *certificatesv1alpha1.CertificateRevocationRequestStatus {
	status := r.Status.DeepCopy()
	for i := range conds {
		conds[i].ObservedGeneration = r.Generation
	}
	conditions.Set(&status.Conditions, now, conds...)
	return status
}

func asExpected(kind, message string) metav1.Condition {
	return conditions.True(kind, hyperv1.AsExpectedReason, message)
}
