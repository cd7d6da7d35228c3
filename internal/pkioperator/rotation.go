package pkioperator

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
)

// Lives of certificates in days, which are shorter in tests.
const (
	authorityDays        = 7.0
	authorityRefreshDays = 2.0
	clientDays           = 1.5
	clientRefreshDays    = 0.25
)

func days(day time.Duration, n float64) time.Duration { return time.Duration(float64(day) * n) }

// observedSigner is what exists of a signer; nil is absent.
type observedSigner struct {
	namespace      string
	owner          metav1.OwnerReference
	secret, client *corev1.Secret
	bundle         *corev1.ConfigMap
}

// rotate gives the next object to write for a signer, nil when there is none, and when one will be due. It is asked again after
// each write: a client certificate is made only of an authority that is in the bundle, and that only of one that is stored.
func rotate(s signer, obs observedSigner, day time.Duration, src source) (write client.Object, due time.Time, err error) {
	ca, err := parseAuthority(obs.secret)
	if err != nil || !fresh(obs.secret, ca.cert, src.now, days(day, authorityRefreshDays)) {
		made, err := src.newAuthority(authorityName(obs.namespace, s.secret, src.now), days(day, authorityDays))
		if err != nil {
			return nil, due, err
		}
		return withCertificate(obs, obs.secret, s.secret, made), due, nil
	}
	due = ca.cert.NotBefore.Add(days(day, authorityRefreshDays))
	trusted := parseBundle(obs.bundle, names.CABundleKey)
	wanted := slices.DeleteFunc(slices.Clone(trusted), func(c *x509.Certificate) bool { return src.now.After(c.NotAfter) })
	if !has(wanted, ca.cert) {
		wanted = slices.Insert(wanted, 0, ca.cert)
	}
	if obs.bundle == nil || obs.bundle.Data[names.CABundleKey] != encodeBundle(wanted) {
		return bundleWith(obs, s.bundle, wanted), due, nil
	}
	for _, c := range wanted {
		due = earlier(due, c.NotAfter.Add(time.Second))
	}
	leaf, err := parseAuthority(obs.client)
	if err == nil && fresh(obs.client, leaf.cert, src.now, days(day, clientRefreshDays)) && issuedBy(leaf.cert, wanted) {
		return nil, earlier(due, madeAt(leaf.cert).Add(days(day, clientRefreshDays))), nil
	}
	user, err := src.userName(s.prefix)
	if err != nil {
		return nil, due, err
	}
	made, err := src.newClient(ca, user, []string{"system:masters"}, days(day, clientDays))
	if err != nil {
		return nil, due, err
	}
	return withCertificate(obs, obs.client, s.client, made), due, nil
}

// fresh says whether a certificate can stay: it is valid, younger than refresh, and nobody asked for another.
func fresh(secret *corev1.Secret, cert *x509.Certificate, now time.Time, refresh time.Duration) bool {
	return secret.Annotations[notAfterAnnotation] != forceRegeneration && now.Before(cert.NotAfter) && !now.Before(cert.NotBefore) &&
		now.Before(madeAt(cert).Add(refresh))
}

// madeAt is when a certificate was made, which is not when it begins.
func madeAt(cert *x509.Certificate) time.Time {
	if cert.IsCA {
		return cert.NotBefore
	}
	return cert.NotBefore.Add(backdate)
}

func issuedBy(cert *x509.Certificate, authorities []*x509.Certificate) bool {
	return slices.ContainsFunc(authorities, func(ca *x509.Certificate) bool { return cert.CheckSignatureFrom(ca) == nil })
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// withCertificate puts a certificate into a Secret, which keeps its resourceVersion, so that only what was looked at is replaced.
func withCertificate(obs observedSigner, stored *corev1.Secret, name string, made authority) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: obs.namespace, Name: name}, Type: corev1.SecretTypeTLS}
	if stored != nil {
		secret = stored.DeepCopy()
	}
	secret.Data = map[string][]byte{corev1.TLSCertKey: made.certPEM, corev1.TLSPrivateKeyKey: made.keyPEM}
	secret.Annotations = maps.Clone(secret.Annotations)
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[notBeforeAnnotation] = made.cert.NotBefore.UTC().Format(time.RFC3339)
	secret.Annotations[notAfterAnnotation] = made.cert.NotAfter.UTC().Format(time.RFC3339)
	secret.Annotations[issuerAnnotation] = made.cert.Issuer.CommonName
	own(&secret.ObjectMeta, obs.owner)
	return secret
}

func bundleWith(obs observedSigner, name string, certs []*x509.Certificate) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: obs.namespace, Name: name}}
	if obs.bundle != nil {
		cm = obs.bundle.DeepCopy()
	}
	cm.Data = map[string]string{names.CABundleKey: encodeBundle(certs)}
	own(&cm.ObjectMeta, obs.owner)
	return cm
}

func own(meta *metav1.ObjectMeta, owner metav1.OwnerReference) {
	if owner.UID != "" && !slices.ContainsFunc(meta.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
		meta.OwnerReferences = append(meta.OwnerReferences, owner)
	}
}
