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
)

func TestPayload(t *testing.T) {
	withCluster := func(t *testing.T) *pool {
		t.Helper()
		g := NewWithT(t)
		p := newPool(t)
		p.controlPlane(t, func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPProxy: "http://proxy:3128"}}
		})
		g.Expect(p.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.set.Namespace, Name: names.PullSecret},
			Data: map[string][]byte{names.DockerConfigKey: []byte("{}")}})).To(Succeed())
		return p
	}
	reconcile := func(t *testing.T, p *pool, answer func(image string) (*release.Release, error)) error {
		t.Helper()
		r := p.reconciler(p.client)
		r.Image, r.Releases = "", release.ProviderFunc(func(_ context.Context, image string, _ []byte) (*release.Release, error) {
			return answer(image)
		})
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
