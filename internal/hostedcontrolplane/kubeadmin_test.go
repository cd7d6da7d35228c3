package hostedcontrolplane

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestKeepKubeadmin(t *testing.T) {
	t.Run("When nobody says who logs in there should be a password, and none once somebody does", func(t *testing.T) {
		g := NewWithT(t)
		ctx, c := t.Context(), fake.NewClientBuilder().Build()
		r := &Reconciler{Client: c}
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Namespace, hcp.Name, hcp.UID = "ns", "demo", "uid"
		obs := &Observed{HCP: hcp, Flavour: kubernetes}
		key, secret := client.ObjectKey{Namespace: "ns", Name: "kubeadmin-password"}, &corev1.Secret{}

		g.Expect(r.keepKubeadmin(ctx, obs)).To(Succeed())
		reportKubeadmin(&hcp.Status, *obs)
		g.Expect(c.Get(ctx, key, secret)).NotTo(Succeed(), "a release without an OAuth server")
		g.Expect(hcp.Status.KubeadminPassword).To(BeNil())

		obs.Flavour = openShift
		g.Expect(r.keepKubeadmin(ctx, obs)).To(Succeed())
		g.Expect(c.Get(ctx, key, secret)).To(Succeed())
		g.Expect(string(secret.Data["password"])).To(MatchRegexp(`^([a-km-zA-NP-Z2-9]{5}-){3}[a-km-zA-NP-Z2-9]{5}$`))
		reportKubeadmin(&hcp.Status, *obs)
		g.Expect(hcp.Status.KubeadminPassword.Name).To(Equal("kubeadmin-password"))
		again := &corev1.Secret{}
		g.Expect(r.keepKubeadmin(ctx, obs)).To(Succeed())
		g.Expect(c.Get(ctx, key, again)).To(Succeed())
		g.Expect(again.Data).To(Equal(secret.Data))

		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{OAuth: &configv1.OAuthSpec{}}
		g.Expect(r.keepKubeadmin(ctx, obs)).To(Succeed())
		g.Expect(c.Get(ctx, key, secret)).NotTo(Succeed())
		reportKubeadmin(&hcp.Status, *obs)
		g.Expect(hcp.Status.KubeadminPassword).To(BeNil())
	})
}
