package component

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestAdaptMonitor(t *testing.T) {
	for name, tc := range map[string]struct {
		set, component string
		own            hyperv1.MetricsSet // spec.monitoring.metricsSet
		objs           []client.Object
		want           []any // the metric relabellings before the last
	}{
		"When nothing is chosen it should keep the few of telemetry": {component: "kube-apiserver", want: []any{map[string]any{"action": "keep",
			"sourceLabels": []any{"__name__"}, "regex": "apiserver_storage_objects|apiserver_request_total|apiserver_current_inflight_requests"}}},
		"When telemetry has nothing of a component it should drop everything": {component: "kube-scheduler", want: []any{map[string]any{"action": "drop", "sourceLabels": []any{"__name__"}, "regex": ".*"}}},
		"When all are chosen it should drop what is only noise": {set: "All", component: "kube-controller-manager", want: []any{map[string]any{"action": "drop",
			"sourceLabels": []any{"__name__"}, "regex": "etcd_(debugging|disk|request|server).*|rest_client_request_latency_seconds_.*|root_ca_cert_publisher_sync_duration_seconds_.*"}}},
		"When the hosted cluster chooses it should beat the operator's choice": {set: "Telemetry", own: hyperv1.MetricsSetAll, component: "kube-controller-manager", want: []any{map[string]any{"action": "drop",
			"sourceLabels": []any{"__name__"}, "regex": "etcd_(debugging|disk|request|server).*|rest_client_request_latency_seconds_.*|root_ca_cert_publisher_sync_duration_seconds_.*"}}},
		"When those of the service's operators are chosen it should take their list": {set: "SRE", component: "etcd", objs: []client.Object{&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sre-metric-set"}, Data: map[string]string{"config": "etcd: [{action: keep, regex: a}]\n"}}},
			want: []any{map[string]any{"action": "keep", "regex": "a"}}},
		"When it is an operator of ours it should keep everything": {component: "hosted-cluster-config-operator"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			u := &unstructured.Unstructured{}
			g.Expect(yaml.Unmarshal([]byte("kind: ServiceMonitor\nspec: {endpoints: [{port: client}, {port: other, relabelings: [{action: keep}]}]}"), &u.Object)).To(Succeed())
			ctx := contextOf(t, func(hcp *hyperv1.HostedControlPlane) {
				hcp.Spec.ClusterID, hcp.Spec.Monitoring.MetricsSet = "id", tc.own
			}, tc.objs...)
			ctx.MetricsSet = tc.set
			g.Expect(adaptMonitor(ctx, tc.component, u)).To(Succeed())
			namespaces, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "namespaceSelector", "matchNames")
			g.Expect(namespaces).To(Equal([]string{"ns"}))
			endpoints, _, _ := unstructured.NestedSlice(u.Object, "spec", "endpoints")
			id := map[string]any{"action": "replace", "targetLabel": "_id", "replacement": "id"}
			g.Expect(endpoints[0]).To(HaveKeyWithValue("relabelings", []any{id}))
			g.Expect(endpoints[1]).To(HaveKeyWithValue("relabelings", []any{map[string]any{"action": "keep"}, id}))
			g.Expect(endpoints[0]).To(HaveKeyWithValue("metricRelabelings", append(tc.want, id)))
		})
	}
}

func TestMonitorLabels(t *testing.T) {
	g := NewWithT(t)
	u := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal([]byte("kind: PodMonitor\nmetadata: {labels: {a: b}}\nspec: {podMetricsEndpoints: [{port: metrics}]}"), &u.Object)).To(Succeed())
	ctx := contextOf(t, func(*hyperv1.HostedControlPlane) {})
	ctx.Environment.MonitorLabels = "release=kps"
	g.Expect(adaptMonitor(ctx, "hosted-cluster-config-operator", u)).To(Succeed())
	g.Expect(u.GetLabels()).To(Equal(map[string]string{"a": "b", "release": "kps"}), "When monitors are to have labels they should be added to its own")
}

func TestPayloadDrops(t *testing.T) {
	for name, tc := range map[string]struct {
		component   string
		rules       int
		first, last string
	}{
		"When it is the API server it should have a rule for each family, deprecated ones too": {component: "kube-apiserver", rules: 10, first: "etcd_(debugging|disk|server).*",
			last: "apiserver_request_duration_seconds_bucket;(0.15|0.25|0.3|0.35|0.4|0.45|0.6|0.7|0.8|0.9|1.25|1.5|1.75|2.5|3|3.5|4.5|6|7|8|9|15|25|30|50)"},
		"When it is an aggregated API server it should have none of the deprecated ones": {component: "openshift-apiserver", rules: 4, first: "etcd_(debugging|disk|server).*",
			last: "apiserver_request_duration_seconds_bucket;(0.15|0.25|0.3|0.35|0.4|0.45|0.6|0.7|0.8|0.9|1.25|1.5|1.75|2.5|3|3.5|4.5|6|7|8|9|15|25|30|50)"},
		"When it is a controller it should have no buckets": {component: "kube-controller-manager", rules: 3, first: "etcd_(debugging|disk|request|server).*", last: "root_ca_cert_publisher_sync_duration_seconds_.*"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx := contextOf(t, nil)
			ctx.MetricsSet, ctx.Release.Kubernetes = "All", false
			rules, err := metricRelabelings(ctx, tc.component)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rules).To(HaveLen(tc.rules))
			g.Expect(rules).To(HaveEach(HaveKeyWithValue("action", "drop")))
			g.Expect(rules[0]).To(HaveKeyWithValue("regex", tc.first))
			g.Expect(rules[tc.rules-1]).To(HaveKeyWithValue("regex", tc.last))
		})
	}
}
