package openshift

import (
	"encoding/base64"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// forwarding is a control plane that offers its metrics.
func forwarding(t *testing.T) Input {
	t.Helper()
	in := scenario(t, "plain")
	in.HCP.Spec.Monitoring.MetricsForwarding.Mode = hyperv1.MetricsForwardingForward
	in = inputFor(in.HCP, "plain")
	in.Control.ConfigMaps[metricsProxyConfig].Data["config.yaml"] = "components:\n- name: kube-scheduler\n- name: etcd\n"
	in.MetricsHost = "metrics-proxy-demo.example.com"
	return in
}

func TestMetricsForwarder(t *testing.T) {
	t.Run("When metrics are forwarded the hosted cluster should scrape each component through the forwarder", func(t *testing.T) {
		compare(t, "testdata/forwarder", map[string]string{"metrics-forwarder.yaml": rendered(t, forwarding(t))["metrics-forwarder.yaml"]})
	})
	for name, change := range map[string]func(*Input){
		"host":       func(in *Input) { in.MetricsHost = "" },
		"authority":  func(in *Input) { delete(in.Control.Secrets, "metrics-proxy-ca-cert") },
		"components": func(in *Input) { in.Control.ConfigMaps[metricsProxyConfig].Data["config.yaml"] = "" },
		"list":       func(in *Input) { delete(in.Control.ConfigMaps, metricsProxyConfig) },
	} {
		t.Run("When there is no "+name+" yet it should wait without a word", func(t *testing.T) {
			g := NewWithT(t)
			in := forwarding(t)
			change(&in)
			actions, err := metricsForwarder(in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(actions).To(BeEmpty())
		})
	}
	for name, config := range map[string]string{"no YAML": "\t:", "a path": "components: [{name: ../x}]"} {
		t.Run("When the list of components is "+name+" it should say so", func(t *testing.T) {
			g := NewWithT(t)
			in := forwarding(t)
			in.Control.ConfigMaps[metricsProxyConfig].Data["config.yaml"] = config
			_, err := metricsForwarder(in)
			g.Expect(err).To(MatchError(ContainSubstring("ConfigMap metrics-proxy-config")))
		})
	}
	t.Run("When monitoring is switched off what was made should go", func(t *testing.T) {
		g := NewWithT(t)
		in := forwarding(t)
		in.HCP.Annotations = map[string]string{hyperv1.DisableMonitoringServices: "true"}
		actions, err := metricsForwarder(in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(actions).To(HaveLen(4))
		for _, a := range actions {
			g.Expect(a.Do).To(Equal(Delete))
		}
	})
}

func TestGlobalPullSecret(t *testing.T) {
	docker := func(content string) map[string]any {
		return map[string]any{"type": "kubernetes.io/dockerconfigjson", "data": map[string]any{corev1.DockerConfigJsonKey: base64.StdEncoding.EncodeToString([]byte(content))}}
	}
	// given plans with the user's Secret.
	given := func(t *testing.T, live map[string]any) ([]Action, error) {
		in := scenario(t, "plain")
		if live != nil {
			in.Hosted.Objects[additionalKey] = live
		}
		return globalPullSecrets(in)
	}
	content := func(a Action) string {
		raw, _ := base64.StdEncoding.DecodeString(text(outcomeOf(t, a).Object, "data", corev1.DockerConfigJsonKey))
		return string(raw)
	}
	t.Run("When the user adds credentials nodes should get both, and the control plane's for a registry of both", func(t *testing.T) {
		g := NewWithT(t)
		none, err := given(t, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(none[1].Do).To(Equal(Delete), "of global-pull-secret")
		actions, err := given(t, docker(`{"auths":{"quay.io":{"auth":"ZXZpbA=="},"registry.example.com":{"auth":"eDp5","email":"a@example.com"}},"credsStore":"x"}`))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(content(actions[0])).To(MatchJSON(`{"auths":{"quay.io":{"auth":"dTpw"}}}`))
		g.Expect(content(actions[1])).To(MatchJSON(`{"auths":{"quay.io":{"auth":"dTpw"},"registry.example.com":{"auth":"eDp5","email":"a@example.com"}}}`))
		hash := func(actions []Action) string {
			return text(outcomeOf(t, actions[len(actions)-1]).Object, "spec", "template", "metadata", "labels", globalHashLabel)
		}
		g.Expect(hash(actions)).NotTo(Equal(hash(none)), "pods start anew")
		g.Expect(hash(actions)).To(HaveLen(globalHashLength))
	})
	for name, live := range map[string]map[string]any{
		"another type": {"type": "Opaque", "data": map[string]any{corev1.DockerConfigJsonKey: "e30="}}, "no base64": {"type": "kubernetes.io/dockerconfigjson", "data": map[string]any{corev1.DockerConfigJsonKey: "§"}},
		"no JSON": docker("x"), "no auths": docker(`{}`), "a list": docker(`{"auths":[]}`), "credentials without auth": docker(`{"auths":{"a":{}}}`),
	} {
		t.Run("When it is "+name+" nodes should keep what they have, and the error should name it without its content", func(t *testing.T) {
			g := NewWithT(t)
			actions, err := given(t, live)
			g.Expect(err).To(MatchError(HavePrefix(additionalKey + " of the hosted cluster ")))
			g.Expect(actions).To(HaveLen(1), "the control plane's own alone")
		})
	}
	t.Run("When machines don't get the label there should be nothing", func(t *testing.T) {
		g := NewWithT(t)
		in := scenario(t, "gcp")
		g.Expect(wanted(in.HCP)).NotTo(HaveKey(additionalKey))
		actions, err := globalPullSecrets(in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(actions).To(BeEmpty())
	})
}
