package pki

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shortLived is the life of a certificate that tells nobody anything by ending soon: it always does.
const shortLived = 30 * 24 * time.Hour

// expiryTimeout bounds a read of the cache, which answers at once unless the process is starting.
const expiryTimeout = 5 * time.Second

var earliestExpiry = prometheus.NewDesc("hypershift_certificates_earliest_expiry_timestamp_seconds",
	"When the first of the certificates that are made for this control plane expires.", []string{"namespace"}, nil)

var authorityExpiry = prometheus.NewDesc("hypershift_certificate_authorities_earliest_expiry_timestamp_seconds",
	"When the first of the certificate authorities of this control plane expires, and with it all that it signed.", []string{"namespace"}, nil)

var generationExpiry = prometheus.NewDesc("hypershift_certificate_authority_expiry_timestamp_seconds",
	"When a certificate authority of this control plane expires, by the name of its Secret; generation is Authority for the one that signs, Successor or Previous.",
	[]string{"namespace", "authority", "generation"}, nil)

// Expiry is a metric of when certificates of a control plane end.
type Expiry struct {
	reader    client.Reader // cached
	namespace string
}

// NewExpiry looks at the Secrets of a namespace that this package writes.
func NewExpiry(reader client.Reader, namespace string) *Expiry { return &Expiry{reader, namespace} }

// Describe implements prometheus.Collector.
func (e *Expiry) Describe(ch chan<- *prometheus.Desc) {
	ch <- earliestExpiry
	ch <- authorityExpiry
	ch <- generationExpiry
}

// Collect implements prometheus.Collector. Where nothing can be read there is no series.
func (e *Expiry) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), expiryTimeout) // Prometheus hands none on
	defer cancel()
	secrets := &corev1.SecretList{}
	if e.reader.List(ctx, secrets, client.InNamespace(e.namespace)) != nil {
		return
	}
	if first := earliest(secrets.Items, time.Now()); !first.IsZero() {
		ch <- prometheus.MustNewConstMetric(earliestExpiry, prometheus.GaugeValue, float64(first.Unix()), e.namespace)
	}
	told := map[string]bool{}
	for _, c := range Inventory(authoritiesOf(secrets.Items), 0) {
		series := c.Secret + " " + string(c.Kind)
		if told[series] {
			continue // of several previous ones the first to end counts: a series twice would make all metrics unreadable
		}
		told[series] = true
		ch <- prometheus.MustNewConstMetric(generationExpiry, prometheus.GaugeValue, float64(c.NotAfter.Unix()), e.namespace, c.Secret, string(c.Kind))
	}
	if first := earliestAuthority(secrets.Items); !first.IsZero() {
		ch <- prometheus.MustNewConstMetric(authorityExpiry, prometheus.GaugeValue, float64(first.Unix()), e.namespace)
	}
}

// authoritiesOf are the Secrets of authorities that this package makes: a bounded number, whatever else is there.
func authoritiesOf(secrets []corev1.Secret) []corev1.Secret {
	ours, list := authoritySecrets(), []corev1.Secret{}
	for i := range secrets {
		if ours[secrets[i].Name] {
			list = append(list, secrets[i])
		}
	}
	return list
}

// earliestAuthority is when the first authority of a control plane ends, of those that this package makes; zero when there is none.
func earliestAuthority(secrets []corev1.Secret) time.Time {
	ours := authoritySecrets()
	var first time.Time
	for i := range secrets {
		if !ours[secrets[i].Name] || len(secrets[i].Data[CAKeyKey]) == 0 {
			continue
		}
		if cert, err := parseCertificate(secrets[i].Data[CACertKey]); err == nil && (first.IsZero() || cert.NotAfter.Before(first)) {
			first = cert.NotAfter
		}
	}
	return first
}

// earliest is when the first certificate ends that this package signed; zero when there is none. Certificates of users and those that are handed out
// for some hours are nobody's to replace. One that lives for days only, such as that with which machines join, counts once it should have been replaced
// long ago: when less than a tenth of its life is left.
func earliest(secrets []corev1.Secret, now time.Time) time.Time {
	var first time.Time
	for i := range secrets {
		if secrets[i].Annotations[CAHashAnnotation] == "" {
			continue
		}
		for key, data := range secrets[i].Data { // tls.crt, and those that etcd reads under names of its own
			block, _ := pem.Decode(data)
			if block == nil || key == CACertKey || !strings.HasSuffix(key, ".crt") {
				continue
			}
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil || !first.IsZero() && !cert.NotAfter.Before(first) {
				continue
			}
			if life := cert.NotAfter.Sub(cert.NotBefore); life >= shortLived || cert.NotAfter.Sub(now) < life/10 {
				first = cert.NotAfter
			}
		}
	}
	return first
}
