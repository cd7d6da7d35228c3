package pkioperator

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
)

// Lives of certificates that are signed for users.
const (
	longestDays = 1.5
	shortest    = 10 * time.Minute
)

// answer is what to do with a CertificateSigningRequest; the zero value: nothing.
type answer struct {
	approve bool
	// failure says why it is not signed, for the one who made it.
	failure     string
	certificate []byte
}

// apiServersSkew is by how much the clocks of two API servers may differ, which date the objects.
const apiServersSkew = 10 * time.Second

// isFor says whether a consent is meant for this very request. It carries a name and nothing else, and it stays when the request has ended: Kubernetes
// removes those after an hour. Whoever makes a request of the same name then, with groups of his choice, must not find it approved. So consent is to
// what was there when it was given.
func isFor(consent *certificatesv1alpha1.CertificateSigningRequestApproval, csr *certificatesv1.CertificateSigningRequest) bool {
	return consent.DeletionTimestamp.IsZero() && !csr.CreationTimestamp.After(consent.CreationTimestamp.Add(apiServersSkew))
}

// decide answers a request for the signer. approved is whether somebody with rights on the namespace approves it; ca is nil while
// there is no authority that API servers trust.
func decide(s signer, csr *certificatesv1.CertificateSigningRequest, approved bool, ca *authority, day time.Duration, src source) (answer, error) {
	switch {
	case condition(csr, certificatesv1.CertificateDenied) || condition(csr, certificatesv1.CertificateFailed) || len(csr.Status.Certificate) > 0:
		return answer{}, nil
	case !condition(csr, certificatesv1.CertificateApproved):
		return answer{approve: approved}, nil
	}
	request, err := validate(s, csr)
	if err != nil {
		return answer{failure: err.Error()}, nil //nolint:nilerr // because the requester is told
	}
	if ca == nil {
		return answer{}, nil
	}
	life := days(day, longestDays)
	if asked := csr.Spec.ExpirationSeconds; asked != nil {
		life = min(max(time.Duration(ptr.Deref(asked, 0))*time.Second, shortest), life)
	}
	made, err := src.issue(clientTemplate(request.Subject, src.now, src.now.Add(life), *ca), ca.cert, request.PublicKey, ca.key, nil)
	return answer{certificate: made.certPEM}, err
}

func condition(csr *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
}

// mayUse are the usages that a request may ask for; client auth is one that it must.
var mayUse = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}

// validate says what is wrong with a request. The groups are the requester's choice: whoever approves it looks at them.
func validate(s signer, csr *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("spec.request is no certificate request in PEM form")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || request.CheckSignature() != nil {
		return nil, errors.New("spec.request is malformed, or not signed with its own key")
	}
	if name := request.Subject.CommonName; !strings.HasPrefix(name, s.prefix) {
		return nil, fmt.Errorf("invalid certificate request: the common name must begin with %q", s.prefix)
	}
	if !slices.Contains(csr.Spec.Usages, certificatesv1.UsageClientAuth) {
		return nil, errors.New(`invalid usages: "client auth" is missing`)
	}
	for _, usage := range csr.Spec.Usages {
		if !slices.Contains(mayUse, usage) {
			return nil, fmt.Errorf(`invalid usages: only "client auth", "digital signature" and "key encipherment" are signed, not %q`, usage)
		}
	}
	if len(request.DNSNames)+len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs) > 0 {
		return nil, errors.New("invalid certificate request: subject alternative names are not signed")
	}
	return request, nil
}

// approval is the condition by which a request is approved.
func approval(now time.Time) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvalReason,
		Message: "The requisite approval resource exists.", LastUpdateTime: metav1.NewTime(now),
	}
}

func failed(message string, now time.Time) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: validationFailureReason,
		Message: message, LastUpdateTime: metav1.NewTime(now),
	}
}
