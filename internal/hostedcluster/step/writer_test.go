package step

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/hostedcluster/sources"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// mirror is a HostedCluster that names a certificate and an authority, and its control-plane namespace.
type mirror struct {
	client.WithWatch
	hc    *hyperv1.HostedCluster
	plane string
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	g := NewWithT(t)
	env, scheme := testenv.Start(t), runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "demo"}}
	config := &configv1.APIServerSpec{ClientCA: configv1.ConfigMapNameReference{Name: "authority"}}
	config.ServingCerts.NamedCertificates = []configv1.APIServerNamedServingCert{{ServingCertificate: configv1.SecretNameReference{Name: "serving"}}}
	hc.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: config}
	m := &mirror{WithWatch: env.Client(t, scheme), hc: hc, plane: names.NamespaceOf(hc)}
	g.Expect(m.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.plane}})).To(Succeed())
	return m
}

// certificate and authority are the two objects, as they are in a namespace.
func certificate(namespace, content string, kind corev1.SecretType, immutable bool) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "serving"}, Type: kind, Immutable: ptr.To(immutable),
		Data: map[string][]byte{corev1.TLSCertKey: []byte(content), corev1.TLSPrivateKeyKey: []byte(content)}}
}

func authority(namespace, content string, immutable bool) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "authority"}, Immutable: ptr.To(immutable), Data: map[string]string{names.CABundleKey: content}}
}

// mirrored makes an object what an older operator made of its source.
func (m *mirror) mirrored(obj client.Object) client.Object {
	obj.SetNamespace(m.plane)
	obj.SetAnnotations(map[string]string{"hypershift.openshift.io/copy-of": obj.GetName(), hyperv1.HostedClusterAnnotation: names.BackReference(m.hc)})
	return obj
}

// pass copies what the HostedCluster names.
func (m *mirror) pass(t *testing.T) error {
	t.Helper()
	g := NewWithT(t)
	set, err := sources.Read(t.Context(), m, m.hc)
	g.Expect(err).NotTo(HaveOccurred())
	s := Step{Name: "copies"}
	for _, ref := range sources.References(&m.hc.Spec) {
		obj, err := ref.Copy(m.plane, set)
		g.Expect(err).NotTo(HaveOccurred())
		s.Apply = append(s.Apply, obj)
	}
	g.Expect(s.Apply).To(HaveLen(2))
	return NewWriter(m, m.hc, clock.RealClock{}).execute(t.Context(), s)
}

// copies are the two copies.
func (m *mirror) copies(t *testing.T) (*corev1.Secret, *corev1.ConfigMap) {
	t.Helper()
	secret, cm := &corev1.Secret{}, &corev1.ConfigMap{}
	g := NewWithT(t)
	g.Expect(m.Get(t.Context(), client.ObjectKey{Namespace: m.plane, Name: "serving"}, secret)).To(Succeed())
	g.Expect(m.Get(t.Context(), client.ObjectKey{Namespace: m.plane, Name: "authority"}, cm)).To(Succeed())
	return secret, cm
}

func TestCopiesFollowTheirSources(t *testing.T) {
	replace := func(t *testing.T, m *mirror, objs ...client.Object) {
		t.Helper()
		for _, obj := range objs {
			g := NewWithT(t)
			g.Expect(client.IgnoreNotFound(m.Delete(t.Context(), obj.DeepCopyObject().(client.Object)))).To(Succeed())
			g.Expect(m.Create(t.Context(), obj)).To(Succeed())
		}
	}
	t.Run("When immutable sources are made anew, one with another type, their copies should follow", func(t *testing.T) {
		g, m := NewWithT(t), newMirror(t)
		replace(t, m, certificate(m.hc.Namespace, "old", corev1.SecretTypeTLS, true), authority(m.hc.Namespace, "old", true))
		g.Expect(m.pass(t)).To(Succeed())
		secret, cm := m.copies(t)
		first := []any{secret.UID, cm.UID}
		replace(t, m, certificate(m.hc.Namespace, "new", corev1.SecretTypeOpaque, true), authority(m.hc.Namespace, "new", true))
		g.Expect(m.pass(t)).To(Succeed())
		secret, cm = m.copies(t)
		g.Expect(secret.Data).To(HaveKeyWithValue(corev1.TLSCertKey, []byte("new")))
		g.Expect(cm.Data).To(HaveKeyWithValue(names.CABundleKey, "new"))
		g.Expect([]any{secret.UID, cm.UID}).To(Equal(first), "they are changed, and not made anew")
	})
	t.Run("When an older operator mirrored that the sources are immutable, and a type, the copies should be made anew, once", func(t *testing.T) {
		g, m := NewWithT(t), newMirror(t)
		replace(t, m, m.mirrored(certificate("", "old", corev1.SecretTypeTLS, true)), m.mirrored(authority("", "old", true)))
		replace(t, m, certificate(m.hc.Namespace, "new", corev1.SecretTypeTLS, false), authority(m.hc.Namespace, "new", false))
		g.Expect(m.pass(t)).To(Succeed())
		secret, cm := m.copies(t)
		g.Expect(secret.Data).To(HaveKeyWithValue(corev1.TLSCertKey, []byte("new")))
		g.Expect(secret.Immutable).To(BeNil())
		g.Expect(cm.Data).To(HaveKeyWithValue(names.CABundleKey, "new"))
		g.Expect(cm.Immutable).To(BeNil())
		testenv.ExpectQuiet(t, m, func(c client.WithWatch) error {
			return (&mirror{WithWatch: c, hc: m.hc, plane: m.plane}).pass(t)
		})
	})
	t.Run("When somebody else's object has the name of a copy it should stay, and an error say so", func(t *testing.T) {
		g, m := NewWithT(t), newMirror(t)
		replace(t, m, certificate(m.plane, "theirs", corev1.SecretTypeTLS, true), certificate(m.hc.Namespace, "ours", corev1.SecretTypeTLS, false), authority(m.hc.Namespace, "ours", false))
		err := m.pass(t)
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		secret, cm := m.copies(t)
		g.Expect(secret.Data).To(HaveKeyWithValue(corev1.TLSCertKey, []byte("theirs")))
		g.Expect(cm.Data).To(HaveKeyWithValue(names.CABundleKey, "ours"))
	})
}
