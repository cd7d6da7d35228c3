package openshiftapiserver

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

func TestAdaptConfig(t *testing.T) {
	t.Run("When users, registries and the hosted cluster say something it should be in the configuration", func(t *testing.T) {
		g := NewWithT(t)
		gates, project := &corev1.ConfigMap{}, &corev1.ConfigMap{}
		gates.Namespace, gates.Name = "ns", "feature-gate"
		gates.Data = map[string]string{"feature-gate.yaml": "status: {featureGates: [{enabled: [{name: WatchList}, {name: A}]}]}"}
		project.Namespace, project.Name = "ns", "observed-config-project"
		project.Data = map[string]string{"config": "spec: {projectRequestMessage: ask, projectRequestTemplate: {name: template}}"}
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Namespace, hcp.Name, hcp.Spec.DNS.BaseDomain = "ns", "demo", "example.com"
		hcp.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "hook"}
		hcp.Spec.Capabilities = &hyperv1.Capabilities{Disabled: []hyperv1.OptionalCapability{hyperv1.ImageRegistryCapability}}
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{
			AllowedRegistriesForImport: []configv1.RegistryLocation{{DomainName: "a", Insecure: true}, {DomainName: "b"}}, ExternalRegistryHostnames: []string{"e"},
		}}
		ctx := component.WorkloadContext{Context: t.Context(), HCP: hcp, Reader: fake.NewClientBuilder().WithObjects(gates, project).Build()}
		cm := &corev1.ConfigMap{}
		g.Expect(adaptConfig(ctx, cm)).To(Succeed())
		var got map[string]any
		g.Expect(yaml.Unmarshal([]byte(cm.Data["config.yaml"]), &got)).To(Succeed())
		delete(got, "servingInfo")
		g.Expect(got).To(Equal(map[string]any{
			"apiServerArguments": map[string]any{
				"audit-webhook-config-file": []any{"/etc/kubernetes/auditwebhook/webhook-kubeconfig"}, "audit-webhook-mode": []any{"batch"},
				"audit-webhook-initial-backoff": []any{"5s"}, "feature-gates": []any{"A=true", "WatchList=false"},
			},
			"imagePolicyConfig": map[string]any{
				"internalRegistryHostname": "", "externalRegistryHostnames": []any{"e"},
				"allowedRegistriesForImport": []any{map[string]any{"domainName": "a", "insecure": true}, map[string]any{"domainName": "b"}},
			},
			"projectConfig": map[string]any{"projectRequestMessage": "ask", "projectRequestTemplate": "openshift-config/template"},
			"routingConfig": map[string]any{"subdomain": "apps.demo.example.com"},
			"storageConfig": map[string]any{"urls": []any{"https://etcd-client:2379"}},
		}))
	})
}
