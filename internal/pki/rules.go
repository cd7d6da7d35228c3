package pki

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// examined is a leaf beside what is stored for it.
type examined struct {
	leaf            leaf
	certPEM, keyPEM []byte
	// caPEM and caHash are what the leaf's Secret says about its signer. Both empty for a leaf that carries none.
	caPEM  []byte
	caHash string

	ca   pair
	spec Spec
	now  time.Time

	have pair // set once the pair could be read
}

// rule says why a leaf has to be issued again, or nothing.
type rule func(*examined) string

// reissueRules in the order in which they are asked; the first answer is the reason. Rules after unreadable may use have.
var reissueRules = []rule{
	missing,
	unreadable, // also a key that is not the certificate's, which only a person's edit can cause
	signerChanged,
	signerCopyDiffers,
	subjectDiffers,
	namesDiffer,
	usagesDiffer,
	validityDiffers,
	notYetValid,
	pastRenewal,
}

func reissueReason(e examined) string {
	for _, r := range reissueRules {
		if reason := r(&e); reason != "" {
			return reason
		}
	}
	return ""
}

func missing(e *examined) string {
	if len(e.certPEM) == 0 || len(e.keyPEM) == 0 {
		return "there is none yet"
	}
	return ""
}

func unreadable(e *examined) string {
	have, err := parsePair(e.certPEM, e.keyPEM)
	if err != nil {
		return err.Error()
	}
	e.have = have
	return ""
}

// signerChanged verifies the signature rather than comparing key ids, which certificates of other issuers may lack.
func signerChanged(e *examined) string {
	if !bytes.Equal(e.have.cert.RawIssuer, e.ca.cert.RawSubject) || e.have.cert.CheckSignatureFrom(e.ca.cert) != nil {
		return fmt.Sprintf("it was not signed by the present key of %q", e.ca.cert.Subject.CommonName)
	}
	return ""
}

func signerCopyDiffers(e *examined) string {
	if e.caPEM == nil && e.caHash == "" {
		return ""
	}
	if !bytes.Equal(e.caPEM, e.ca.certPEM) || e.caHash != e.ca.hash() {
		return "its copy of the authority is out of date"
	}
	return ""
}

func subjectDiffers(e *examined) string {
	have := e.have.cert.Subject
	if have.CommonName != e.leaf.name || !sameSet(have.Organization, e.leaf.orgs) {
		return fmt.Sprintf("its subject is %q, not %q of %q", have, e.leaf.name, e.leaf.orgs)
	}
	return ""
}

func namesDiffer(e *examined) string {
	ips := make([]string, 0, len(e.have.cert.IPAddresses))
	for _, ip := range e.have.cert.IPAddresses {
		ips = append(ips, ip.String())
	}
	want := make([]string, 0, len(e.leaf.ips))
	for _, ip := range e.leaf.ips {
		want = append(want, net.ParseIP(ip).String())
	}
	added, removed := difference(append(e.have.cert.DNSNames, ips...), append(slices.Clone(e.leaf.dns), want...))
	if len(added)+len(removed) == 0 {
		return ""
	}
	return fmt.Sprintf("its names change: added %s, removed %s", listOf(added), listOf(removed))
}

func usagesDiffer(e *examined) string {
	cert := e.have.cert
	switch {
	case cert.IsCA:
		return "it is a certificate authority"
	case cert.KeyUsage != keyUsage(e.have.key):
		return "its key usage differs"
	case !sameSet(cert.ExtKeyUsage, e.leaf.usages) || len(cert.UnknownExtKeyUsage) > 0:
		return "its extended key usage differs"
	}
	return ""
}

// validityDiffers notices an edited validity. A certificate that ends with its authority could not last longer.
func validityDiffers(e *examined) string {
	cert := e.have.cert
	have := cert.NotAfter.Sub(cert.NotBefore)
	if diff := have - e.spec.validity(); diff.Abs() <= time.Second {
		return ""
	}
	if have < e.spec.validity() && cert.NotAfter.Equal(e.ca.cert.NotAfter) {
		return ""
	}
	return fmt.Sprintf("it was issued for %s, not %s", have, e.spec.validity())
}

// notYetValid heals what a clock that ran ahead has issued.
func notYetValid(e *examined) string {
	if e.now.Before(e.have.cert.NotBefore) {
		return fmt.Sprintf("it is not valid before %s", e.have.cert.NotBefore.UTC().Format(time.RFC3339))
	}
	return ""
}

// pastRenewal does not fire when a new certificate would not last longer, which happens as the authority itself nears its end.
func pastRenewal(e *examined) string {
	cert := e.have.cert
	if e.now.Before(renewAt(cert, e.spec)) || !cert.NotAfter.Before(e.ca.cert.NotAfter) {
		return ""
	}
	return fmt.Sprintf("it expires at %s", cert.NotAfter.UTC().Format(time.RFC3339))
}

// renewAt is when pastRenewal begins to fire.
func renewAt(cert *x509.Certificate, spec Spec) time.Time {
	return cert.NotAfter.Add(-spec.renewLeft())
}

func sameSet[T comparable](a, b []T) bool {
	onlyA, onlyB := difference(a, b)
	return len(onlyA)+len(onlyB) == 0
}

// difference gives the elements of want that have lacks, and those of have that want lacks.
func difference[T comparable](have, want []T) (added, removed []T) {
	for _, w := range want {
		if !slices.Contains(have, w) {
			added = append(added, w)
		}
	}
	for _, h := range have {
		if !slices.Contains(want, h) {
			removed = append(removed, h)
		}
	}
	return added, removed
}

func listOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
