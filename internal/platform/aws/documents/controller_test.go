package documents

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

// memory is a bucket. It fails the call of a name with a code, when asked to.
type memory struct {
	objects map[string][]byte
	fail    map[string]string
	writes  int
}

func (m *memory) refuse(call string) error {
	if code := m.fail[call]; code != "" {
		return &smithy.GenericAPIError{Code: code, Message: "request 1234"}
	}
	return nil
}

func (m *memory) Get(_ context.Context, name string) ([]byte, error) {
	return m.objects[name], m.refuse("Get")
}

func (m *memory) Put(_ context.Context, name string, content []byte) error {
	if err := m.refuse("Put"); err != nil {
		return err
	}
	m.writes++
	m.objects[name] = bytes.Clone(content)
	return nil
}

func (m *memory) Delete(_ context.Context, list []string) error {
	if err := m.refuse("Delete"); err != nil {
		return err
	}
	for _, name := range list {
		delete(m.objects, name)
	}
	return nil
}

// scene is a HostedCluster with a control plane on a real API server.
type scene struct {
	*testing.T
	c      client.Client
	hc     *hyperv1.HostedCluster
	hcp    *hyperv1.HostedControlPlane
	bucket *memory
	r      *Reconciler
}

func newScene(t *testing.T, change func(*hyperv1.HostedCluster)) *scene {
	t.Helper()
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hyperv1.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	s := &scene{T: t, c: env.Client(t, scheme), bucket: &memory{objects: map[string][]byte{}, fail: map[string]string{}}}
	s.hc = testenv.HostedCluster(env.Namespace(t), "demo")
	onAWS(s.hc)
	if change != nil {
		change(s.hc)
	}
	g.Expect(s.c.Create(t.Context(), s.hc)).To(Succeed())
	t.Cleanup(func() { // other tests have the same infraID
		none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = s.c.Patch(context.Background(), s.hc, none)
		_ = s.c.Delete(context.Background(), s.hc)
	})
	ns := names.NamespaceOf(s.hc)
	g.Expect(s.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(Succeed())
	spec := s.hc.Spec
	s.hcp = &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: names.BackReference(s.hc)}},
		Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: "registry.invalid/release:1", PullSecret: spec.PullSecret, Platform: spec.Platform, Networking: spec.Networking, Services: spec.Services,
			IssuerURL: spec.IssuerURL, InfraID: cmp.Or(spec.InfraID, "demo-abcde"), ControllerAvailabilityPolicy: hyperv1.SingleReplica,
			Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}},
	}
	g.Expect(s.c.Create(t.Context(), s.hcp)).To(Succeed())
	s.r = &Reconciler{Client: s.c, Live: s.c, Clock: clock.RealClock{}, Location: Location{Bucket: "documents", Region: "eu-west-1"},
		Open: func(context.Context) (Bucket, error) { return s.bucket, nil }}
	return s
}

func onAWS(hc *hyperv1.HostedCluster) {
	hc.Spec.InfraID, hc.Spec.IssuerURL = "demo-abcde", "https://documents.s3.eu-west-1.amazonaws.com/demo-abcde"
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{
		Region: "eu-west-1", CloudProviderConfig: &hyperv1.AWSCloudProviderConfig{VPC: "vpc-1"},
		RolesRef: hyperv1.AWSRolesRef{
			IngressARN: arn("a"), ImageRegistryARN: arn("b"), StorageARN: arn("c"), NetworkARN: arn("d"), KubeCloudControllerARN: arn("e"), NodePoolManagementARN: arn("f"),
			ControlPlaneOperatorARN: arn("g"),
		},
	}}
}

func arn(role string) string { return "arn:aws:iam::123456789012:role/" + role }

// started gives the control plane a kubeconfig and a key.
func (s *scene) started() {
	g := NewWithT(s)
	s.hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: "admin-kubeconfig", Key: "kubeconfig"}
	g.Expect(s.c.Status().Update(s.Context(), s.hcp)).To(Succeed())
	s.key()
}

// key makes another key.
func (s *scene) key() {
	g := NewWithT(s)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.hcp.Namespace, Name: names.ServiceAccountKey}, Data: map[string][]byte{publicKeyKey: newKey(s.T)}}
	if err := s.c.Create(s.Context(), secret); apierrors.IsAlreadyExists(err) {
		g.Expect(s.c.Update(s.Context(), secret)).To(Succeed())
	} else {
		g.Expect(err).NotTo(HaveOccurred())
	}
}

func newKey(t testing.TB) []byte {
	g := NewWithT(t)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	g.Expect(err).NotTo(HaveOccurred())
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: der})
}

// pass makes passes until one asks for no early repetition, and returns the HostedCluster, nil once it is gone.
func (s *scene) pass() *hyperv1.HostedCluster {
	g := NewWithT(s)
	for range 4 {
		_, err := s.r.Reconcile(s.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.hc)})
		g.Expect(err).NotTo(HaveOccurred())
	}
	hc := &hyperv1.HostedCluster{}
	if err := s.c.Get(s.Context(), client.ObjectKeyFromObject(s.hc), hc); apierrors.IsNotFound(err) {
		return nil
	} else {
		g.Expect(err).NotTo(HaveOccurred())
	}
	return hc
}

func valid(hc *hyperv1.HostedCluster) *metav1.Condition {
	return conditions.Get(hc.Status.Conditions, hyperv1.ValidOIDCConfiguration)
}

func TestPublish(t *testing.T) {
	t.Run("When the control plane has no kubeconfig yet it should wait and say nothing", func(t *testing.T) {
		g, s := NewWithT(t), newScene(t, nil)
		hc := s.pass()
		g.Expect(valid(hc)).To(BeNil())
		g.Expect(hc.Finalizers).To(BeEmpty())
	})
	t.Run("When the user brings the key it should leave the documents to him", func(t *testing.T) {
		g := NewWithT(t)
		s := newScene(t, func(hc *hyperv1.HostedCluster) {
			hc.Spec.ServiceAccountSigningKey = &corev1.LocalObjectReference{Name: "key"}
		})
		s.started()
		g.Expect(valid(s.pass())).To(BeNil())
		g.Expect(s.bucket.objects).To(BeEmpty())
	})
	t.Run("When the control plane is there it should publish both documents once", func(t *testing.T) {
		g, s := NewWithT(t), newScene(t, nil)
		s.started()
		hc := s.pass()
		g.Expect(valid(hc)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "AsExpected")))
		g.Expect(hc.Finalizers).To(ConsistOf(hyperv1.AWSOIDCDiscoveryFinalizer))
		g.Expect(slices.Sorted(maps.Keys(s.bucket.objects))).To(Equal([]string{"demo-abcde/.well-known/openid-configuration", "demo-abcde/openid/v1/jwks"}))
		g.Expect(s.bucket.writes).To(Equal(2))
		version := hc.ResourceVersion
		g.Expect(s.pass().ResourceVersion).To(Equal(version), "nothing is written when nothing changed")
	})
	t.Run("When a document is lost or the key is another it should put that right", func(t *testing.T) {
		g, s := NewWithT(t), newScene(t, nil)
		s.started()
		s.pass()
		before := maps.Clone(s.bucket.objects)
		delete(s.bucket.objects, Names("demo-abcde")[0])
		s.bucket.objects[Names("demo-abcde")[1]] = []byte("somebody else's")
		s.pass()
		g.Expect(s.bucket.objects).To(Equal(before))
		s.key()
		s.pass()
		g.Expect(s.bucket.objects[Names("demo-abcde")[0]]).To(Equal(before[Names("demo-abcde")[0]]))
		g.Expect(s.bucket.objects[Names("demo-abcde")[1]]).NotTo(Equal(before[Names("demo-abcde")[1]]))
	})
	t.Run("When the role may only write it should write what changed, and no more", func(t *testing.T) {
		g, s := NewWithT(t), newScene(t, nil)
		s.bucket.fail["Get"] = "AccessDenied"
		s.started()
		s.pass()
		g.Expect(s.bucket.writes).To(Equal(2))
		s.key()
		s.pass()
		g.Expect(s.bucket.writes).To(Equal(4))
	})
	for name, tc := range map[string]struct{ call, code, want string }{
		"When there is no such bucket it should say so":     {"Get", "NoSuchBucket", "bucket documents in eu-west-1 does not exist: make it"},
		"When it may not write it should say what it needs": {"Put", "AccessDenied", "put and delete objects"},
		"When AWS is busy it should name the code alone":    {"Put", "SlowDown", "aws returned an error, code: SlowDown"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), newScene(t, nil)
			s.bucket.fail[tc.call] = tc.code
			s.started()
			hc := s.pass()
			g.Expect(valid(hc)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "OIDCConfigurationInvalid"), HaveField("Message", ContainSubstring(tc.want))))
			g.Expect(valid(hc).Message).NotTo(ContainSubstring("1234"), "IDs of requests would change it each time")
			s.bucket.fail = map[string]string{}
			g.Expect(valid(s.pass()).Status).To(Equal(metav1.ConditionTrue))
		})
	}
	t.Run("When the issuer is none it should name the field", func(t *testing.T) {
		g := NewWithT(t)
		s := newScene(t, func(hc *hyperv1.HostedCluster) { hc.Spec.IssuerURL = "" })
		s.started()
		g.Expect(valid(s.pass()).Message).To(ContainSubstring("spec.issuerURL"))
	})
	t.Run("When it is another platform's cluster it should leave it alone", func(t *testing.T) {
		g := NewWithT(t)
		s := newScene(t, func(hc *hyperv1.HostedCluster) { hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.NonePlatform} })
		s.started()
		g.Expect(s.pass().Finalizers).To(BeEmpty())
	})
}

// TestForeignInfraID: somebody else's HostedCluster has the infraID of one whose documents are published. With their keys he would be that cluster to AWS.
func TestForeignInfraID(t *testing.T) {
	for name, older := range map[string]bool{
		"When a younger HostedCluster has the infraID of another its keys should not be published": false,
		"When an older one gets the infraID of another its keys should not be published":           true,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var first, second *scene
			later := func(than *scene) {
				g.Eventually(time.Now).Should(BeTemporally(">", than.hc.CreationTimestamp.Add(time.Second)), "timestamps are of whole seconds")
			}
			if older {
				second = newScene(t, func(hc *hyperv1.HostedCluster) { hc.Spec.InfraID = "" })
				later(second)
				first = newScene(t, nil)
			} else {
				first = newScene(t, nil)
				later(first)
				second = newScene(t, nil)
			}
			second.bucket = first.bucket
			first.started()
			g.Expect(valid(first.pass()).Status).To(Equal(metav1.ConditionTrue))
			before := maps.Clone(first.bucket.objects)

			if older {
				g.Expect(second.c.Patch(t.Context(), second.hc, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"infraID":"demo-abcde"}}`)))).To(Succeed())
			}
			second.started()
			hc := second.pass()
			g.Expect(valid(hc)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", hyperv1.InfraIDTakenReason),
				HaveField("Message", ContainSubstring("spec.infraID demo-abcde is that of HostedCluster "+names.BackReference(first.hc)))))
			g.Expect(first.bucket.objects).To(Equal(before))
			first.bucket.fail["Put"] = "SlowDown"
			first.key()
			g.Expect(valid(first.pass()).Status).To(Equal(metav1.ConditionFalse))
			delete(first.bucket.fail, "Put")
			second.pass()
			g.Expect(first.bucket.objects).To(Equal(before), "nor while AWS is busy")
			g.Expect(valid(first.pass()).Status).To(Equal(metav1.ConditionTrue))
			before = maps.Clone(first.bucket.objects)

			_, err := patch.EnsureFinalizer(t.Context(), second.c, hc, hyperv1.AWSOIDCDiscoveryFinalizer) // whoever may write the object may add it
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(second.c.Delete(t.Context(), second.hcp)).To(Succeed())
			g.Expect(second.c.Delete(t.Context(), second.hc)).To(Succeed())
			g.Expect(second.pass()).To(BeNil())
			g.Expect(first.bucket.objects).To(Equal(before), "When it is deleted the other one's documents should stay")
		})
	}
}

func TestRemove(t *testing.T) {
	const other = "example.com/other"
	deleted := func(t *testing.T) *scene {
		g, s := NewWithT(t), newScene(t, nil)
		s.started()
		hc := s.pass()
		_, err := patch.EnsureFinalizer(t.Context(), s.c, hc, other)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.c.Delete(t.Context(), hc)).To(Succeed())
		return s
	}
	t.Run("When the control plane is still there the documents should stay", func(t *testing.T) {
		g, s := NewWithT(t), deleted(t)
		g.Expect(s.pass().Finalizers).To(ContainElement(hyperv1.AWSOIDCDiscoveryFinalizer))
		g.Expect(s.bucket.objects).To(HaveLen(2))
	})
	t.Run("When the control plane is gone they should go, and the finalizer after them", func(t *testing.T) {
		g, s := NewWithT(t), deleted(t)
		g.Expect(s.c.Delete(t.Context(), s.hcp)).To(Succeed())
		s.bucket.fail["Delete"] = "AccessDenied"
		hc := s.pass()
		g.Expect(hc.Finalizers).To(ContainElement(hyperv1.AWSOIDCDiscoveryFinalizer))
		g.Expect(valid(hc).Message).To(ContainSubstring("AccessDenied"))
		delete(s.bucket.fail, "Delete")
		g.Expect(s.pass().Finalizers).To(Equal([]string{other}))
		g.Expect(s.bucket.objects).To(BeEmpty())
	})
}

func TestOf(t *testing.T) {
	g := NewWithT(t)
	first, second := newKey(t), newKey(t)
	docs, err := Of("demo-abcde", "https://documents.s3.eu-west-1.amazonaws.com/demo-abcde", append(bytes.Clone(first), second...))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(docs["demo-abcde/.well-known/openid-configuration"]).To(MatchJSON(`{
		"issuer": "https://documents.s3.eu-west-1.amazonaws.com/demo-abcde",
		"jwks_uri": "https://documents.s3.eu-west-1.amazonaws.com/demo-abcde/openid/v1/jwks",
		"response_types_supported": ["id_token"], "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"]}`))
	set := struct{ Keys []map[string]string }{}
	g.Expect(json.Unmarshal(docs["demo-abcde/openid/v1/jwks"], &set)).To(Succeed())
	g.Expect(set.Keys).To(HaveLen(2), "When keys are being replaced both should be published")
	g.Expect(set.Keys[0]).To(And(HaveKeyWithValue("use", "sig"), HaveKeyWithValue("kty", "RSA"), HaveKeyWithValue("alg", "RS256"), HaveKeyWithValue("e", "AQAB"), HaveKey("n")))
	g.Expect(set.Keys[0]["kid"]).NotTo(Equal(set.Keys[1]["kid"]))
	for name, tc := range map[string]struct {
		issuer string
		keys   []byte
		want   string
	}{
		"When there is no key it should say so":              {"https://a/b", []byte("nothing"), "no PEM block"},
		"When a block is something else it should say so":    {"https://a/b", []byte("-----BEGIN RSA PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----\n"), "no public key in the form PKIX"},
		"When there are too many keys it should stop":        {"https://a/b", bytes.Repeat(first, maxKeys+1), "more than 10"},
		"When the issuer has a query it should be refused":   {"https://a/b?c", first, "spec.issuerURL"},
		"When the issuer is not secure it should be refused": {"http://a/b", first, "spec.issuerURL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Of("x", tc.issuer, tc.keys)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}
