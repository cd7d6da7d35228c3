package create

import (
	"bytes"
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/testenv"
)

// TestCreatedAgain is about clusters that others have changed since they were created.
func TestCreatedAgain(t *testing.T) {
	const first, upgraded, offered = "registry.example.com/release:1", "registry.example.com/release:2", "registry.example.com/release:offered"
	env := testenv.Start(t)
	c := env.Client(t, connect.Scheme())
	g := NewWithT(t)
	g.Expect(client.IgnoreAlreadyExists(c.Create(t.Context(), connect.Namespace(install.DefaultNamespace)))).To(Succeed())
	g.Expect(OfferRelease(t.Context(), c, offered)).To(Succeed())
	t.Cleanup(func() { // other tests are about installations that offer none
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: install.DefaultNamespace, Name: DefaultReleaseName}}
		g.Expect(c.Delete(context.WithoutCancel(t.Context()), cm)).To(Succeed())
	})

	rotated := &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{
		ActiveKey: corev1.LocalObjectReference{Name: "new-key"}, BackupKey: &corev1.LocalObjectReference{Name: encryptionKeyName("demo")},
	}}
	// made is a cluster that was upgraded, its key rotated and its first one deleted, as whoever rotates keys does in the end.
	made := func(t *testing.T) (Options, func(Gomega) (*hyperv1.HostedCluster, *hyperv1.NodePool)) {
		g := NewWithT(t)
		o := options(hyperv1.NonePlatform, func(o *Options) { o.Namespace, o.ReleaseImage = env.Namespace(t), first })
		g.Expect(cluster(t.Context(), o, c, &bytes.Buffer{})).To(Succeed())
		key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
		read := func(g Gomega) (*hyperv1.HostedCluster, *hyperv1.NodePool) {
			hc, np := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
			g.Expect(c.Get(t.Context(), key, hc)).To(Succeed())
			g.Expect(c.Get(t.Context(), key, np)).To(Succeed())
			return hc, np
		}
		hc, np := read(g)
		hc.Spec.Release.Image, hc.Spec.SecretEncryption = upgraded, rotated.DeepCopy()
		g.Expect(c.Update(t.Context(), hc)).To(Succeed())
		np.Spec.Replicas = ptr.To[int32](1)
		g.Expect(c.Update(t.Context(), np)).To(Succeed())
		g.Expect(c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: encryptionKeyName(o.Name)}})).To(Succeed())
		o.ReleaseImage = ""
		return o, read
	}
	noKey := func(g Gomega, o Options) {
		secrets := &corev1.SecretList{}
		g.Expect(c.List(t.Context(), secrets, client.InNamespace(o.Namespace))).To(Succeed())
		g.Expect(secrets.Items).NotTo(ContainElement(HaveField("Name", encryptionKeyName(o.Name))), "a key of another content under the name of one that encrypted")
	}

	t.Run("When no release is named it should keep release and keys, and say so", func(t *testing.T) {
		g := NewWithT(t)
		o, read := made(t)
		before, poolBefore := read(g)
		var out bytes.Buffer
		g.Expect(cluster(t.Context(), o, c, &out)).To(Succeed())
		after, pool := read(g)
		g.Expect(after.Spec).To(BeComparableTo(before.Spec))
		g.Expect(pool.Spec).To(BeComparableTo(poolBefore.Spec))
		noKey(g, o)
		g.Expect(out.String()).To(And(
			ContainSubstring("HostedCluster "+o.Namespace+"/demo exists already: kept its release "+upgraded+"; --release-image changes it"),
			ContainSubstring("kept its spec.secretEncryption")))
	})
	t.Run("When pools are scaled it should keep their release, too", func(t *testing.T) {
		g := NewWithT(t)
		o, read := made(t)
		o.NodePool.Replicas, o.ScalePools = 3, true
		var out bytes.Buffer
		g.Expect(cluster(t.Context(), o, c, &out)).To(Succeed())
		_, pool := read(g)
		g.Expect(pool.Spec.Replicas).To(Equal(ptr.To[int32](3)))
		g.Expect(pool.Spec.Release.Image).To(Equal(first), "they are upgraded after the cluster, and nobody asked for that here")
		g.Expect(out.String()).To(ContainSubstring("NodePool " + o.Namespace + "/demo exists already: kept its release " + first))
	})
	t.Run("When a release is named it should get that, and keep its keys", func(t *testing.T) {
		g := NewWithT(t)
		o, read := made(t)
		o.ReleaseImage = "registry.example.com/release:3"
		o.NodePool.Replicas, o.ScalePools = 3, true
		var out bytes.Buffer
		g.Expect(cluster(t.Context(), o, c, &out)).To(Succeed())
		after, pool := read(g)
		g.Expect(after.Spec.Release.Image).To(Equal("registry.example.com/release:3"))
		g.Expect(pool.Spec.Release.Image).To(Equal("registry.example.com/release:3"))
		g.Expect(after.Spec.SecretEncryption).To(BeComparableTo(rotated))
		noKey(g, o)
		g.Expect(out.String()).NotTo(ContainSubstring("kept its release"))
	})
	t.Run("When a cluster was made without encryption it should stay without", func(t *testing.T) {
		g := NewWithT(t)
		o := options(hyperv1.NonePlatform, func(o *Options) { o.Namespace = env.Namespace(t) })
		g.Expect(c.Create(t.Context(), testenv.HostedCluster(o.Namespace, "demo"))).To(Succeed())
		existing := &hyperv1.HostedCluster{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: "demo"}, existing)).To(Succeed())
		g.Expect(existing.Spec.SecretEncryption).To(BeNil())
		o.keep(existing)
		for _, obj := range Objects(o, fixed) {
			g.Expect(obj.GetName()).NotTo(Equal(encryptionKeyName("demo")))
			if hc, ok := obj.(*hyperv1.HostedCluster); ok {
				g.Expect(hc.Spec.SecretEncryption).To(BeNil())
			}
		}
	})
}
