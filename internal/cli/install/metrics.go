package install

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Metrics says who may read the metrics of the operators. The zero value serves them to everybody by plain HTTP, as published.
type Metrics struct {
	// Secure serves them by HTTPS, and to those only who are bound to the ClusterRole metricsReaderName, or otherwise may GET /metrics.
	Secure bool
	// CertSecret is a Secret with tls.crt, tls.key and ca.crt, which has to be in the namespace of each operator. Empty: operators make certificates
	// themselves, which nobody can verify.
	CertSecret string
}

const (
	metricsCertName   = "metrics-cert" // volume
	metricsCertFolder = "/etc/hypershift/metrics-cert"
	// prometheusToken is where a Prometheus in a pod has its own token.
	prometheusToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

	healthPortName = "health"
	healthPort     = 8081
)

func (m Metrics) validate() error {
	if m.CertSecret == "" {
		return nil
	}
	if !m.Secure {
		return errors.New("--metrics-cert-secret: metrics have no certificate; give --metrics-secure, too, or leave it out")
	}
	if problems := validation.IsDNS1123Subdomain(m.CertSecret); len(problems) > 0 {
		return fmt.Errorf("--metrics-cert-secret %q: %s", m.CertSecret, strings.Join(problems, "; "))
	}
	return nil
}

// args are the operators' flags.
func (m Metrics) args() []string {
	if !m.Secure {
		return nil
	}
	args := []string{"--metrics-secure=true"}
	if m.CertSecret != "" {
		args = append(args, "--metrics-cert-path="+metricsCertFolder)
	}
	return args
}

func (m Metrics) volumes() []corev1.Volume {
	if m.CertSecret == "" {
		return nil
	}
	return []corev1.Volume{{Name: metricsCertName, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: m.CertSecret, Items: []corev1.KeyToPath{{Key: corev1.TLSCertKey, Path: corev1.TLSCertKey}, {Key: corev1.TLSPrivateKeyKey, Path: corev1.TLSPrivateKeyKey}},
	}}}}
}

func (m Metrics) mounts() []corev1.VolumeMount {
	if m.CertSecret == "" {
		return nil
	}
	return []corev1.VolumeMount{{Name: metricsCertName, MountPath: metricsCertFolder, ReadOnly: true}}
}

// endpoint is where a ServiceMonitor finds the metrics of a Service. Whatever is in more is added to it.
func (m Metrics) endpoint(service, namespace string, more map[string]any) map[string]any {
	e := map[string]any{"port": "metrics", "interval": "30s"}
	maps.Copy(e, more)
	if !m.Secure {
		return e
	}
	e["scheme"], e["bearerTokenFile"] = "https", prometheusToken
	if m.CertSecret == "" {
		e["tlsConfig"] = map[string]any{"insecureSkipVerify": true}
		return e
	}
	e["tlsConfig"] = map[string]any{
		"serverName": service + "." + namespace + ".svc",
		"ca":         map[string]any{"secret": map[string]any{"name": m.CertSecret, "key": "ca.crt"}},
	}
	return e
}

// reviewRules let the operator ask the API server who reads its metrics, and whether he may. That of packages may create whatever there is.
func (m Metrics) reviewRules() []rbacv1.PolicyRule {
	if !m.Secure {
		return nil
	}
	return []rbacv1.PolicyRule{
		rule(group("authentication.k8s.io"), "tokenreviews", "create"),
		rule(group("authorization.k8s.io"), "subjectaccessreviews", "create"),
	}
}

// metricsReader is the right to read metrics, given to the monitoring of an OpenShift management cluster where Prometheus is told of them.
func metricsReader(o Options) []client.Object {
	if !o.Metrics.Secure {
		return nil
	}
	objs := []client.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: metricsReaderName}, Rules: []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}}}
	if !o.Monitoring.Objects {
		return objs
	}
	return append(objs, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: metricsReaderName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReaderName},
		Subjects:   []rbacv1.Subject{o.Monitoring.prometheus()},
	})
}

// prometheus is the one that asks.
func (m Monitoring) prometheus() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: cmp.Or(m.Account, "prometheus-k8s"), Namespace: cmp.Or(m.Namespace, "openshift-monitoring")}
}
