package token_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
)

func TestUserData(t *testing.T) {
	t.Run("When user data is made it should say where the configuration is, and how to get it", func(t *testing.T) {
		g := NewWithT(t)
		secret, err := token.UserData{Namespace: "clusters-demo", Pool: "workers", Hash: "0a1b2c3d", PoolKey: "clusters/workers",
			Endpoint: "192.0.2.10:30443", CA: []byte("PEM"), Token: "secret", HTTPProxy: "http://proxy:3128", NoProxy: []string{"10.0.0.0/8"}}.Secret()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(secret.Name).To(Equal("user-data-workers-0a1b2c3d"))
		g.Expect(secret.Annotations).To(HaveKeyWithValue(hyperv1.NodePoolAnnotation, "clusters/workers"))
		g.Expect(string(secret.Data["disableTemplating"])).To(Equal("dHJ1ZQ=="))
		g.Expect(string(secret.Data["value"])).To(MatchJSON(`{"ignition":{"version":"3.2.0",
			"config":{"replace":{"verification":{}},"merge":[{"source":"https://192.0.2.10:30443/ignition","verification":{},"httpHeaders":[
				{"name":"Authorization","value":"Bearer ` + base64.StdEncoding.EncodeToString([]byte("secret")) + `"},
				{"name":"NodePool","value":"clusters/workers"},{"name":"TargetConfigVersionHash","value":"0a1b2c3d"}]}]},
			"security":{"tls":{"certificateAuthorities":[{"source":"data:text/plain;base64,UEVN","verification":{}}]}},
			"proxy":{"httpProxy":"http://proxy:3128","noProxy":["10.0.0.0/8"]},"timeouts":{}},"passwd":{},"storage":{},"systemd":{}}`))
	})
}

func TestTokenSecret(t *testing.T) {
	content := token.Content{Namespace: "clusters-demo", Pool: "workers", Hash: "0a1b2c3d", PoolKey: "clusters/workers", UpgradeType: hyperv1.UpgradeTypeReplace,
		Release: "registry/release:1.36.3", Version: "1.36.3", Config: []byte("encoded"), PullSecretHash: "p",
		NodeLabels: map[string]string{"zone": "a"}, Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}}
	t.Run("When a token Secret is made it should hold what the ignition server reads", func(t *testing.T) {
		g := NewWithT(t)
		s := token.New(content, "uuid", time.Date(2026, 11, 21, 12, 0, 0, 5, time.UTC))
		g.Expect(s.Name).To(Equal("token-workers-0a1b2c3d"))
		g.Expect(s.Annotations).To(Equal(map[string]string{
			"hypershift.openshift.io/ignition-config": "true", "hypershift.openshift.io/nodePool": "clusters/workers",
			"hypershift.openshift.io/node-pool-upgrade-type": "Replace", "hypershift.openshift.io/last-token-generation-time": "2026-11-21T12:00:00.000000005Z"}))
		g.Expect(s.Data).To(HaveLen(11))
		g.Expect(s.Data).To(And(HaveKeyWithValue("token", []byte("uuid")), HaveKeyWithValue("config", []byte("encoded")), HaveKeyWithValue("release-version", []byte("1.36.3")),
			HaveKeyWithValue("node-labels", []byte(`{"zone":"a"}`))))
		var taints []corev1.Taint
		g.Expect(json.Unmarshal(s.Data["node-taints"], &taints)).To(Succeed())
		g.Expect(taints).To(Equal(content.Taints))
	})
	t.Run("When a cluster was restored it should know that its machines have booted", func(t *testing.T) {
		restored := content
		restored.Reached = true
		NewWithT(t).Expect(token.New(restored, "uuid", time.Now()).Annotations).To(HaveKeyWithValue(hyperv1.TokenSecretIgnitionReachedAnnotation, "True"))
	})
	t.Run("When a name is read it should give the hash of that pool alone", func(t *testing.T) {
		g := NewWithT(t)
		for name, want := range map[string]string{"token-workers-12345678": "12345678", "user-data-workers-12345678": "12345678", "token-other-1": "", "bootstrap": ""} {
			hash, ok := token.HashOf("workers", name)
			g.Expect(hash).To(Equal(want), name)
			g.Expect(ok).To(Equal(want != ""), name)
		}
	})
}
