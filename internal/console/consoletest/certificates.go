package consoletest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/pki"
)

// KeyMaterial is in every Secret of the world, beside the certificate. It must be on no page.
const KeyMaterial = "this is the private key that nobody may see"

const day = 24 * time.Hour

// certificates are those of some control planes: two of production/payments-eu end soon.
func (w *World) certificates() {
	leaf := map[string]string{pki.CAHashAnnotation: "x"}
	w.certificate(Production+"-payments-eu", "root-ca", "ca.crt", "root-ca", -365*day, 9*365*day, true, nil)
	w.certificate(Production+"-payments-eu", "etcd-server-tls", "tls.crt", "payments-eu-etcd", -356*day, 9*day+7*time.Hour, false, leaf)
	w.certificate(Production+"-payments-eu", "ingress-crt", "tls.crt", "*.apps.payments-eu.example.com", -85*day, 5*day+3*time.Hour, false, nil)
	w.certificate(Production+"-payments-eu", "kas-bootstrap-client", "tls.crt", "bootstrapper", -2*day, 5*day, false, leaf)
	w.certificate(Staging+"-orders", "etcd-server-tls", "tls.crt", "staging-etcd", -30*day, 335*day, false, leaf)
}

// certificate is a Secret with one, which began and ends at times from now.
func (w *World) certificate(ns, secret, key, subject string, from, to time.Duration, authority bool, annotations map[string]string) {
	w.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: subject}, NotBefore: w.now.Add(from), NotAfter: w.now.Add(to), IsCA: authority, BasicConstraintsValid: authority}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		w.t.Fatal(err)
	}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: secret, Annotations: annotations}, Data: map[string][]byte{
		key: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), "tls.key": []byte(KeyMaterial)}})
}
