package inplace

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

func TestPayload(t *testing.T) {
	withCluster := func(t *testing.T) *pool {
		t.Helper()
		g := NewWithT(t)
		p := newPool(t)
		scheme := p.client.Scheme()
		g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
		p.client = testenv.Start(t).Client(t, scheme)
		hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: "demo"}}
		hcp.Spec.IssuerURL, hcp.Spec.PullSecret.Name, hcp.Spec.Platform.Type, hcp.Spec.InfraID = "https://kubernetes.default.svc", "pull-secret", hyperv1.NonePlatform, "demo"
		hcp.Spec.ReleaseImage = "quay.io/ocp:4.20.3"
		for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
			hcp.Spec.Services = append(hcp.Spec.Services, hyperv1.ServicePublishingStrategyMapping{
				Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}})
		}
		hcp.Spec.Etcd.ManagementType = hyperv1.Managed
		hcp.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}
		hcp.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
		hcp.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "http://proxy:3128"}}
		g.Expect(p.client.Create(t.Context(), hcp)).To(Succeed())
		g.Expect(p.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: names.PullSecret},
			Data: map[string][]byte{names.DockerConfigKey: []byte("{}")}})).To(Succeed())
		return p
	}
	reconcile := func(t *testing.T, p *pool, answer func(image string) (*release.Release, error)) error {
		t.Helper()
		r := &Reconciler{Management: p.client, Hosted: p.client, Releases: release.ProviderFunc(func(_ context.Context, image string, _ []byte) (*release.Release, error) {
			return answer(image)
		})}
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p.set)})
		return err
	}
	t.Run("When the release is OpenShift's the daemon should be that of the release that machines are changed to", func(t *testing.T) {
		g := NewWithT(t)
		p := withCluster(t)
		g.Expect(reconcile(t, p, func(image string) (*release.Release, error) {
			return &release.Release{Image: image, Version: "4.20.4", Images: map[string]string{"machine-config-operator": image + "/mco"}}, nil
		})).To(Succeed())
		pods := &corev1.PodList{}
		g.Expect(p.client.List(t.Context(), pods, client.InNamespace(namespaceOf(p.set.Name)))).To(Succeed())
		g.Expect(pods.Items).To(HaveLen(1), "one may be unavailable")
		main := pods.Items[0].Spec.Containers[0]
		g.Expect(main.Image).To(Equal("quay.io/ocp:4.20.4/mco"))
		g.Expect(main.Env).To(ContainElement(corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://proxy:3128"}))
		g.Expect(main.Env).To(ContainElement(HaveField("Name", "NO_PROXY")))
	})
	t.Run("When the release can't be read no node should be told anything", func(t *testing.T) {
		g := NewWithT(t)
		p := withCluster(t)
		g.Expect(reconcile(t, p, func(string) (*release.Release, error) { return nil, errors.New("no route") })).To(MatchError(ContainSubstring("no route")))
		node := &corev1.Node{}
		g.Expect(p.client.Get(t.Context(), client.ObjectKey{Name: p.nodes[0]}, node)).To(Succeed())
		g.Expect(node.Annotations).NotTo(HaveKey(desiredConfig))
	})
}
