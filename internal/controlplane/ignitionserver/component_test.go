package ignitionserver

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/nodeconfig"
	"hcp.internal/platform/internal/testenv/bare"
)

// What goes into the configuration of every machine must pass the check that users' own configuration has to pass.
func TestCoreConfigs(t *testing.T) {
	g := NewWithT(t)
	hcp := bare.HostedControlPlane(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.SSHKey.Name = "ssh-key"
		hcp.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "quay.io", Mirrors: []string{"mirror.example.com:5000"}}}
		hcp.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{Service: hyperv1.Ignition, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
			Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "10.244.0.1", Port: 30222}}}}
	})
	ctx := bare.Context(t, hcp, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: names.SSHKey}, Data: map[string][]byte{names.SSHPublicKey: []byte("ssh-ed25519 AAAA user\n")}})
	out, err := NewComponent().Render(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	var sources []nodeconfig.Source
	for _, obj := range out.Manifests {
		switch o := obj.(type) {
		case *corev1.ConfigMap:
			g.Expect(o.Labels).To(HaveKeyWithValue(hyperv1.CoreIgnitionConfigLabel, "true"))
			sources = append(sources, nodeconfig.Source{Name: o.Name, Data: o.Data[configKey]})
		case *corev1.Service:
			g.Expect(o.Spec.Type).To(Equal(corev1.ServiceTypeNodePort))
			g.Expect(o.Spec.Ports[0].NodePort).To(Equal(int32(30222)))
		}
	}
	g.Expect(sources).To(HaveLen(3))
	c, err := nodeconfig.Parse(nodeconfig.Target{Kubernetes: true}, sources...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Mirrors).To(Equal([]nodeconfig.Mirror{{Source: "quay.io", Mirrors: []string{"mirror.example.com:5000"}}}))
	g.Expect(c.Ignition.Passwd.Users[0].SSHAuthorizedKeys[0]).To(BeEquivalentTo("ssh-ed25519 AAAA user"))
}

func TestWanted(t *testing.T) {
	g := NewWithT(t)
	ctx := bare.Context(t, bare.HostedControlPlane())
	g.Expect(wanted(ctx)).To(BeTrue())
	ctx.HCP.Annotations[hyperv1.DisableIgnitionServerAnnotation] = ""
	g.Expect(wanted(ctx)).To(BeFalse(), "switched off")
	delete(ctx.HCP.Annotations, hyperv1.DisableIgnitionServerAnnotation)
	delete(ctx.UserRelease.Images, "kubelet")
	g.Expect(wanted(ctx)).To(BeFalse(), "no machine can be made of the release")
}

func TestSleep(t *testing.T) {
	replicas := func(t *testing.T, objs ...client.Object) *int32 {
		out, err := NewComponent().Render(bare.Context(t, bare.HostedControlPlane(), objs...))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return out.Workload.(*appsv1.Deployment).Spec.Replicas
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: bare.HostedControlPlane().Namespace, Name: "token-workers"}}
	t.Run("When there is no NodePool it should not run", func(t *testing.T) {
		NewWithT(t).Expect(replicas(t, secret.DeepCopy())).To(HaveValue(BeZero()))
	})
	t.Run("When a NodePool has a token it should run", func(t *testing.T) {
		token := secret.DeepCopy()
		token.Annotations = map[string]string{hyperv1.TokenSecretAnnotation: "true"}
		NewWithT(t).Expect(replicas(t, token)).To(HaveValue(BeEquivalentTo(1)))
	})
}
