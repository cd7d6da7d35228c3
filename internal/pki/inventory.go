package pki

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/clip"
)

// Kind says what a certificate is for.
type Kind string

// Kinds of certificates.
const (
	Authority Kind = "Authority" // signs at present
	Successor Kind = "Successor" // is trusted, and will sign
	Previous  Kind = "Previous"  // is trusted still, and signs nothing any more
	Leaf      Kind = "Leaf"
)

// Keeper says whose a certificate is to replace.
type Keeper string

// Keepers of certificates.
const (
	KeptByControlPlane Keeper = "control-plane-operator"
	KeptByBreakGlass   Keeper = "control-plane-pki-operator"
	KeptByUser         Keeper = "user"
)

// breakGlassAnnotation is on every certificate of the control-plane-pki-operator.
const breakGlassAnnotation = "auth.openshift.io/certificate-not-after"

// Bounds of what is read of one Secret, which may be a user's, and of texts.
const (
	maxListed      = 64
	maxSubjectText = 200
)

// Certificate is one certificate in the namespace of a control plane, as Inventory lists it. There is no key in it.
type Certificate struct {
	// Secret and Key are where it is. Of several previous authorities, which are under one key, those after the first have their place added: previous.crt#2.
	Secret string `json:"secret"`
	Key    string `json:"key"`
	Kind   Kind   `json:"kind"`
	Keeper Keeper `json:"keeper"`
	// Subject and Issuer are common names; at most 200 bytes.
	Subject string `json:"subject"`
	Issuer  string `json:"issuer"`
	// NotBefore and NotAfter are when it is valid.
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	// Next is what becomes of it by itself: renewed, prepared (it gets a successor), switched (its successor signs), forgotten (it is trusted no more);
	// empty for what a user keeps, or when nobody says.
	Next string `json:"next,omitempty"`
	// NextAt is when, at the earliest; nil where there is no Next. A switch also waits until all have the bundle.
	NextAt *time.Time `json:"nextAt,omitempty"`
}

// Values of Certificate.Next.
const (
	NextRenewed   = "renewed"
	NextPrepared  = "prepared"
	NextSwitched  = "switched"
	NextForgotten = "forgotten"
)

// EndsSoon tells that a certificate has less than within to live although it should have been replaced before. One that lives for days only always ends soon:
// it counts when less than a tenth of its life is left. An authority that signs nothing any more harms nobody by its end.
func (c Certificate) EndsSoon(now time.Time, within time.Duration) bool {
	left, life := c.NotAfter.Sub(now), c.NotAfter.Sub(c.NotBefore)
	switch {
	case c.Kind == Previous:
		return false
	case life < shortLived:
		return left < life/10
	}
	return left < within
}

// Inventory lists the certificates in the Secrets of a control plane namespace, the one that ends first at the beginning. renewShare is that of
// RenewalAnnotation, 0 for the default. It is pure, and never fails: what can't be read is left out.
func Inventory(secrets []corev1.Secret, renewShare float64) []Certificate {
	ours := authoritySecrets()
	var list []Certificate
	for i := range secrets {
		list = append(list, listSecret(&secrets[i], ours[secrets[i].Name], renewShare)...)
	}
	slices.SortFunc(list, func(a, b Certificate) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter), cmp.Compare(a.Secret, b.Secret), cmp.Compare(a.Key, b.Key))
	})
	return list
}

// authoritySecrets are the Secrets of all authorities that this package makes.
func authoritySecrets() map[string]bool {
	ours := map[string]bool{}
	for _, a := range (Spec{IgnitionServer: true, Payload: &Payload{MetricsForwarding: true}}).authorities() {
		ours[a.secret] = true
	}
	return ours
}

func listSecret(s *corev1.Secret, authority bool, renewShare float64) []Certificate {
	keeper := KeptByUser
	switch {
	case authority || s.Annotations[CAHashAnnotation] != "":
		keeper = KeptByControlPlane
	case s.Annotations[breakGlassAnnotation] != "":
		keeper = KeptByBreakGlass
	}
	var list []Certificate
	for _, key := range sortedCertificateKeys(s) {
		if key == CACertKey && !authority && keeper == KeptByControlPlane {
			continue // a copy of its signer
		}
		if authority && key == TLSCertKey {
			continue // a copy of ca.crt
		}
		if authority && key == previousCertKey {
			list = append(list, listFormers(s)...)
			continue
		}
		cert, err := parseCertificate(s.Data[key])
		if err != nil {
			continue
		}
		list = append(list, describe(s, key, cert, keeper, authority, renewShare))
	}
	return list
}

// listFormers lists the authorities before the present one that are trusted still.
func listFormers(s *corev1.Secret) []Certificate {
	var list []Certificate
	g := generationsOf(s, pair{}, Spec{})
	for i, f := range g.previous[:min(len(g.previous), maxListed)] {
		if f.cert == nil {
			continue
		}
		c := describe(s, previousCertKey, f.cert, KeptByControlPlane, true, 0)
		if i > 0 {
			c.Key = fmt.Sprintf("%s#%d", previousCertKey, i+1)
		}
		until := f.until(g.lasts).UTC()
		c.Kind, c.Next, c.NextAt = Previous, NextForgotten, &until
		list = append(list, c)
	}
	return list
}

func sortedCertificateKeys(s *corev1.Secret) []string {
	var keys []string
	for key, data := range s.Data {
		if !strings.HasSuffix(key, ".crt") || len(keys) == maxListed {
			continue
		}
		if block, _ := pem.Decode(data); block != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func describe(s *corev1.Secret, key string, cert *x509.Certificate, keeper Keeper, authority bool, renewShare float64) Certificate {
	c := Certificate{
		Secret: s.Name, Key: key, Kind: Leaf, Keeper: keeper,
		Subject: clip.To(cert.Subject.CommonName, maxSubjectText), Issuer: clip.To(cert.Issuer.CommonName, maxSubjectText),
		NotBefore: cert.NotBefore.UTC(), NotAfter: cert.NotAfter.UTC(),
	}
	if cert.IsCA {
		c.Kind = Authority
	}
	var at time.Time
	switch {
	case authority:
		c.Kind, c.Next, at = generationIn(s, key, cert)
	case keeper == KeptByControlPlane:
		c.Next = NextRenewed
		at = renewAt(cert, Spec{Validity: cert.NotAfter.Sub(cert.NotBefore), RenewShare: renewShare})
	}
	if c.Next != "" {
		at = at.UTC()
		c.NextAt = &at
	}
	return c
}

// generationIn says which generation of an authority a key of its Secret holds, and what is next.
func generationIn(s *corev1.Secret, key string, cert *x509.Certificate) (Kind, string, time.Time) {
	switch key {
	case nextCertKey:
		return Successor, "", time.Time{}
	case previousCertKey:
		return Previous, "", time.Time{} // listFormers says more
	}
	if len(s.Data[nextCertKey]) > 0 {
		return Authority, NextSwitched, cert.NotAfter.Add(-switchLeft)
	}
	return Authority, NextPrepared, cert.NotAfter.Add(-prepareLeft)
}

// IsAuthority says whether a Secret of this name holds an authority that this package makes.
func IsAuthority(secret string) bool { return authoritySecrets()[secret] }
