package metricsproxy

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/kube/static"
	"hcp.internal/platform/internal/testenv/bare"
)

type all struct{}

func (all) Accessible(context.Context, schema.GroupVersionKind) (bool, error) { return true, nil }

const monitors = `
- apiVersion: monitoring.coreos.com/v1
  kind: ServiceMonitor
  metadata:
    name: kube-scheduler
    namespace: clusters-demo
    annotations: {hypershift.openshift.io/metrics-job: scheduler}
  spec:
    selector: {matchLabels: {app: kube-scheduler}}
    endpoints:
    - {targetPort: client, scheme: https, tlsConfig: {serverName: kube-scheduler, ca: {configMap: {name: root-ca, key: ca.crt}}, cert: {secret: {name: metrics-client, key: tls.crt}}, keySecret: {name: metrics-client, key: tls.key}}}
- apiVersion: monitoring.coreos.com/v1
  kind: ServiceMonitor
  metadata: {name: nobody, namespace: clusters-demo}
  spec: {selector: {matchLabels: {app: nobody}}, endpoints: [{port: x}]}
- apiVersion: monitoring.coreos.com/v1
  kind: PodMonitor
  metadata: {name: autoscaler, namespace: clusters-demo}
  spec: {selector: {matchLabels: {app: autoscaler}}, podMetricsEndpoints: [{port: metrics, path: /m}]}
`

func TestTargets(t *testing.T) {
	t.Run("When there are monitors it should scrape those that are served, by their files", func(t *testing.T) {
		g := NewWithT(t)
		var docs []map[string]any
		g.Expect(yaml.Unmarshal([]byte(monitors), &docs)).To(Succeed())
		reader, err := static.NewReader(bare.Scheme(t),
			&unstructured.Unstructured{Object: docs[0]}, &unstructured.Unstructured{Object: docs[1]}, &unstructured.Unstructured{Object: docs[2]},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: bare.Namespace, Name: "kube-scheduler"}, Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "kube-scheduler"}, Ports: []corev1.ServicePort{{Name: "client", Port: 10259, TargetPort: intstr.FromString("client")}}}},
			pod("kube-scheduler", "client", 10259), pod("autoscaler", "metrics", 8085))
		g.Expect(err).NotTo(HaveOccurred())
		ctx := component.WorkloadContext{Context: t.Context(), HCP: bare.HostedControlPlane(), Reader: reader, Capabilities: all{}}
		cm := &corev1.ConfigMap{}
		g.Expect(adaptConfig(ctx, cm)).To(Succeed())
		g.Expect(cm.Data["config.yaml"]).To(MatchYAML(`
endpointResolver: {url: "https://endpoint-resolver.clusters-demo.svc", caFile: /etc/metrics-proxy/certs/endpoint-resolver-ca/tls.crt}
components:
- {name: autoscaler, selector: {app: autoscaler}, metricsPort: 8085, metricsPath: /m, metricsScheme: http}
- name: kube-scheduler
  selector: {app: kube-scheduler}
  metricsPort: 10259
  metricsPath: /metrics
  metricsScheme: https
  tlsServerName: kube-scheduler
  caFile: /etc/metrics-proxy/certs/root-ca/ca.crt
  certFile: /etc/metrics-proxy/certs/metrics-client/tls.crt
  keyFile: /etc/metrics-proxy/certs/metrics-client/tls.key
  metricsJob: scheduler
`))
		found, err := monitored(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(filesOf(found)).To(Equal([]files{{"metrics-client", false, []string{"tls.crt", "tls.key"}}, {"root-ca", true, []string{"ca.crt"}}}))
	})
}

func pod(app, port string, number int32) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: bare.Namespace, Name: app, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: port, ContainerPort: number}}}}},
	}
}
