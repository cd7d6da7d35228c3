package pkioperator

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
	"hcp.internal/platform/internal/contract/certsigner"
)

const (
	leaseName = "control-plane-pki-operator-lock"

	// Annotations on certificates, as the tools of OpenShift write and read them. A Secret whose certificate is to be replaced at
	// once has forceRegeneration in notAfterAnnotation.
	notBeforeAnnotation = "auth.openshift.io/certificate-not-before"
	notAfterAnnotation  = "auth.openshift.io/certificate-not-after"
	issuerAnnotation    = "auth.openshift.io/certificate-issuer"
	forceRegeneration   = "force-regeneration"

	// targetConfigCondition of the HostedControlPlane says whether the bundles could be merged.
	targetConfigCondition = "TargetConfigControllerDegraded"
	// rotationErrorReason is that of the conditions of rotation.
	rotationErrorReason = "RotationError"
	// approvalReason and validationFailureReason are those of conditions of requests.
	approvalReason          = "ApprovalPresent"
	validationFailureReason = "SignerValidationFailure"
	// outdatedReason is that of the event on an approval that is older than the request of its name.
	outdatedReason = "ApprovalOutdated"
)

// signer is a class of users, and what it consists of in the control plane namespace.
type signer struct {
	class certificatesv1alpha1.SignerClass
	// secret holds the authority, bundle all that are trusted, and client a certificate of an administrator.
	secret, bundle, client string
	// prefix is what names of users begin with.
	prefix string
	// condition of the HostedControlPlane about its rotation.
	condition string
}

var signers = []signer{
	{
		class: certificatesv1alpha1.CustomerBreakGlassSigner, prefix: "system:customer-break-glass:",
		secret: "customer-system-admin-signer", bundle: "customer-system-admin-signer-ca", client: "customer-system-admin-client-cert-key",
		condition: "CertRotation_CustomerAdminKubeconfigSigner_Degraded",
	},
	{
		class: certificatesv1alpha1.SREBreakGlassSigner, prefix: "system:sre-break-glass:",
		secret: "sre-system-admin-signer", bundle: "sre-system-admin-signer-ca", client: "sre-system-admin-client-cert-key",
		condition: "CertRotation_SREAdminKubeconfigSigner_Degraded",
	},
}

// signerOf finds the signer of a signerName.
func signerOf(namespace, signerName string) (signer, bool) {
	for _, s := range signers {
		if certsigner.Name(namespace, s.class) == signerName {
			return s, true
		}
	}
	return signer{}, false
}

func signerOfClass(class certificatesv1alpha1.SignerClass) (signer, bool) {
	for _, s := range signers {
		if s.class == class {
			return s, true
		}
	}
	return signer{}, false
}

// authorityName is the common name of an authority: "{namespace}_{name}@{unix time}".
func authorityName(namespace, name string, now time.Time) string {
	return fmt.Sprintf("%s_%s@%d", namespace, name, now.Unix())
}

// issuedAt is the time in an authority's name, if it is one of this signer.
func issuedAt(namespace, name, authority string) (time.Time, bool) {
	unix, ok := strings.CutPrefix(authority, namespace+"_"+name+"@")
	seconds, err := strconv.ParseInt(unix, 10, 64)
	return time.Unix(seconds, 0), ok && err == nil
}

// previousSignerName is the Secret with the authority that a CertificateRevocationRequest revokes: short enough for any name.
func previousSignerName(request string) string {
	sum := sha256.Sum224([]byte(request))
	return new(big.Int).SetBytes(sum[:]).Text(36)
}
