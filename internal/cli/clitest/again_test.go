package clitest_test

import (
	"bytes"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
)

// Clusters that an earlier version or the published tool made are created again, as scripts do to change one thing.
func TestCreateAgain(t *testing.T) {
	f, c, env := flags(t)
	publishedAt := func(t *testing.T) (create.Options, client.ObjectKey) {
		o := clusterOptions(f, hyperv1.NonePlatform, env.Namespace(t))
		o.PullSecret, o.APIServerAddress = []byte(`{"auths":{}}`), "10.0.0.1"
		return o, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	}
	for _, kind := range []corev1.SecretType{corev1.SecretTypeOpaque, corev1.SecretTypeDockerConfigJson} {
		t.Run("When the pull secret exists with type "+string(kind)+" it should be applied over it", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			o, key := publishedAt(t)
			key.Name += "-pull-secret"
			g.Expect(c.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: kind, Data: map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"a":{}}}`)},
			})).To(Succeed())
			g.Expect(create.Cluster(t.Context(), o, &bytes.Buffer{})).To(Succeed())
			secret := &corev1.Secret{}
			g.Expect(c.Get(t.Context(), key, secret)).To(Succeed())
			g.Expect(secret.Type).To(Equal(kind))
			g.Expect(string(secret.Data[".dockerconfigjson"])).To(Equal(`{"auths":{}}`))
		})
	}
	t.Run("When a pool has other replicas it should be left alone unless a number is given", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		o, key := publishedAt(t)
		g.Expect(create.Cluster(t.Context(), o, &bytes.Buffer{})).To(Succeed())
		pool := &hyperv1.NodePool{}
		g.Expect(c.Get(t.Context(), key, pool)).To(Succeed())
		g.Expect(pool.Spec.Replicas).To(Equal(ptr.To[int32](0)))
		pool.Spec.Replicas = ptr.To[int32](3)
		g.Expect(c.Update(t.Context(), pool)).To(Succeed())

		g.Expect(create.Cluster(t.Context(), o, &bytes.Buffer{})).To(Succeed())
		g.Expect(c.Get(t.Context(), key, pool)).To(Succeed())
		g.Expect(pool.Spec.Replicas).To(Equal(ptr.To[int32](3)))

		o.ScalePools = true
		g.Expect(create.Cluster(t.Context(), o, &bytes.Buffer{})).To(Succeed())
		g.Expect(c.Get(t.Context(), key, pool)).To(Succeed())
		g.Expect(pool.Spec.Replicas).To(Equal(ptr.To[int32](0)))
	})
	t.Run("When an earlier version had other defaults it should keep what can't change and the SSH key", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		o, key := publishedAt(t)
		for _, obj := range create.Objects(o, create.Generated{InfraID: "demo-abc23", EncryptionKey: make([]byte, 32)}) {
			hc, ok := obj.(*hyperv1.HostedCluster)
			if !ok {
				continue
			}
			hc.Spec.Services = slices.DeleteFunc(hc.Spec.Services, func(s hyperv1.ServicePublishingStrategyMapping) bool { return s.Service == hyperv1.OIDC })
			hc.Spec.DNS.BaseDomain, hc.Spec.SSHKey.Name = "", "demo-ssh-key"
			_, err := connect.Apply(t.Context(), c, hc)
			g.Expect(err).NotTo(HaveOccurred())
		}
		before, after := &hyperv1.HostedCluster{}, &hyperv1.HostedCluster{}
		g.Expect(c.Get(t.Context(), key, before)).To(Succeed())
		g.Expect(before.Spec.Services).To(HaveLen(4))
		g.Expect(create.Cluster(t.Context(), o, &bytes.Buffer{})).To(Succeed())
		g.Expect(c.Get(t.Context(), key, after)).To(Succeed())
		g.Expect(after.Spec).To(Equal(before.Spec))
	})
	t.Run("When a number below none is given it should make no pool", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		o, _ := publishedAt(t)
		o.NodePool.Replicas = -1
		g.Expect(create.Cluster(t.Context(), o, &bytes.Buffer{})).To(Succeed())
		pools := &hyperv1.NodePoolList{}
		g.Expect(c.List(t.Context(), pools, client.InNamespace(o.Namespace))).To(Succeed())
		g.Expect(pools.Items).To(BeEmpty())
	})
}
