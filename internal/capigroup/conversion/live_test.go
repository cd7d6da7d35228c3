package conversion

import (
	"crypto/tls"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // because it is what old clients ask for
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/testenv"
)

func liveClient(t *testing.T) (client.Client, *testenv.Env) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, clusterv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	env := testenv.Start(t)
	return env.Client(t, scheme), env
}

func serverTLS(t *testing.T, certs Certificates) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(certs.Cert, certs.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

func port(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// install applies the definitions of some kinds, standard and private, converted by a webhook.
func install(t *testing.T, env *testenv.Env, by config.Converter) {
	t.Helper()
	some := map[string]bool{"machinesets": true, "machines": true, "ipaddresses": true, "localmachines": true, "localmachinetemplates": true}
	standard, err := config.ConvertedCAPICRDs(by)
	if err != nil {
		t.Fatal(err)
	}
	private, err := config.ConvertedPrivateCAPICRDs(by)
	if err != nil {
		t.Fatal(err)
	}
	crds := slices.DeleteFunc(append(standard, private...), func(c *apiextensionsv1.CustomResourceDefinition) bool { return !some[c.Spec.Names.Plural] })
	env.Install(t, crds...)
}

func TestOnAPIServer(t *testing.T) {
	c, env := liveClient(t)
	certs, err := Plan(time.Now(), []string{"localhost"}, Certificates{})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := NewHandler(c, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = serverTLS(t, certs)
	server.StartTLS()
	t.Cleanup(server.Close)
	install(t, env, config.Converter{URL: "https://localhost:" + port(t, server.URL) + "/convert", CABundle: certs.CABundle})

	for _, group := range []string{translate.Standard, translate.Private} {
		t.Run("When an object of "+group+" is written in one version it should be read in the other", func(t *testing.T) {
			g := NewWithT(t)
			ns := env.Namespace(t)
			old := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": group + "/v1beta1", "kind": "MachineSet", "metadata": map[string]any{"name": "s", "namespace": ns},
				"spec": map[string]any{"clusterName": "c", "replicas": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
					"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{
						"clusterName": "c", "bootstrap": map[string]any{"dataSecretName": "x"}, "nodeDrainTimeout": "90s",
						"infrastructureRef": map[string]any{"apiVersion": "infrastructure." + group + "/v1beta1", "kind": "LocalMachineTemplate", "name": "t", "namespace": ns},
					}}},
			}}
			// The API server learns of a new definition's webhook with its next look at the definitions.
			g.Eventually(func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), old.DeepCopy())) }, "60s").Should(Succeed())

			stored := &unstructured.Unstructured{}
			stored.SetAPIVersion(group + "/v1beta2")
			stored.SetKind("MachineSet")
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "s"}, stored)).To(Succeed())
			ref, _, _ := unstructured.NestedStringMap(stored.Object, "spec", "template", "spec", "infrastructureRef")
			g.Expect(ref).To(Equal(map[string]string{"apiGroup": "infrastructure." + group, "kind": "LocalMachineTemplate", "name": "t"}))
			drain, _, _ := unstructured.NestedInt64(stored.Object, "spec", "template", "spec", "deletion", "nodeDrainTimeoutSeconds")
			g.Expect(drain).To(Equal(int64(90)))

			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(group + "/v1beta1")
			list.SetKind("MachineSetList")
			g.Expect(c.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
			g.Expect(list.Items).To(HaveLen(1))
			version, _, _ := unstructured.NestedString(list.Items[0].Object, "spec", "template", "spec", "infrastructureRef", "apiVersion")
			g.Expect(version).To(Equal("infrastructure." + group + "/v1beta1"))

			// Applying in one version what another manager applied in the other converts managed fields, too.
			patch := []byte(`{"apiVersion":"` + group + `/v1beta2","kind":"MachineSet","metadata":{"name":"s"},"spec":{"replicas":3}}`)
			g.Expect(c.Patch(t.Context(), stored, client.RawPatch("application/apply-patch+yaml", patch), client.ForceOwnership, client.FieldOwner("new"))).To(Succeed())
			g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "s"}, old)).To(Succeed())
			replicas, _, _ := unstructured.NestedInt64(old.Object, "spec", "replicas")
			g.Expect(replicas).To(Equal(int64(3)))
		})
	}
	t.Run("When the webhook is away it should still serve the stored version", func(t *testing.T) {
		g := NewWithT(t)
		ns := env.Namespace(t)
		server.Close()
		m := &unstructured.Unstructured{Object: map[string]any{"apiVersion": translate.Private + "/v1beta2", "kind": "Machine", "metadata": map[string]any{"name": "m", "namespace": ns},
			"spec": map[string]any{"clusterName": "c", "bootstrap": map[string]any{"dataSecretName": "x"}, "infrastructureRef": map[string]any{"apiGroup": "infrastructure." + translate.Private, "kind": "LocalMachine", "name": "m"}}}}
		g.Expect(c.Create(t.Context(), m)).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(m), m)).To(Succeed())
	})
}

func TestKeeper(t *testing.T) {
	c, env := liveClient(t)
	g := NewWithT(t)
	ns := env.Namespace(t)
	install(t, env, config.CAPIConverter(ns))
	k := &Keeper{Client: c, Namespace: ns, Clock: clocktesting.NewFakeClock(time.Now())}
	_, err := k.GetCertificate(nil)
	g.Expect(err).To(MatchError(ContainSubstring("no certificate yet")))
	g.Expect(k.Pass(t.Context())).To(Succeed())
	_, err = k.GetCertificate(nil)
	g.Expect(err).NotTo(HaveOccurred())

	secret := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: SecretName}, secret)).To(Succeed())
	bundleOf := func(name string) ([]byte, string) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Name: name}, crd)).To(Succeed())
		if crd.Spec.Conversion.Webhook == nil {
			return nil, crd.ResourceVersion
		}
		return crd.Spec.Conversion.Webhook.ClientConfig.CABundle, crd.ResourceVersion
	}
	for _, name := range []string{"machines.cluster.x-k8s.io", "ipaddresses.ipam.cluster.hypershift.openshift.io"} {
		bundle, _ := bundleOf(name)
		g.Expect(bundle).To(Equal(secret.Data["ca.crt"]), name)
	}
	none, before := bundleOf("localmachines.infrastructure.cluster.hypershift.openshift.io")
	g.Expect(none).To(BeEmpty())

	t.Run("When nothing changed it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		_, was := bundleOf("machines.cluster.x-k8s.io")
		g.Expect(k.Pass(t.Context())).To(Succeed())
		other := &Keeper{Client: c, Namespace: ns, Clock: k.Clock}
		g.Expect(other.Pass(t.Context())).To(Succeed())
		_, is := bundleOf("machines.cluster.x-k8s.io")
		g.Expect(is).To(Equal(was))
		_, after := bundleOf("localmachines.infrastructure.cluster.hypershift.openshift.io")
		g.Expect(after).To(Equal(before))
	})
	t.Run("When a definition is installed again it should have its bundle again", func(t *testing.T) {
		g := NewWithT(t)
		install(t, env, config.CAPIConverter(ns)) // a whole update, which clears the bundle; an apply would not
		g.Expect(k.Pass(t.Context())).To(Succeed())
		bundle, _ := bundleOf("machines.cluster.hypershift.openshift.io")
		g.Expect(bundle).To(Equal(secret.Data["ca.crt"]))
	})
	t.Run("When a definition names another webhook it should leave that alone", func(t *testing.T) {
		g := NewWithT(t)
		elsewhere := &Keeper{Client: c, Namespace: env.Namespace(t), Clock: k.Clock}
		g.Expect(elsewhere.Pass(t.Context())).To(Succeed())
		bundle, _ := bundleOf("machines.cluster.hypershift.openshift.io")
		g.Expect(bundle).To(Equal(secret.Data["ca.crt"]))
	})
	t.Run("When the Secret is emptied it should make new certificates", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(c.Delete(t.Context(), secret)).To(Succeed())
		g.Expect(k.Pass(t.Context())).To(Succeed())
		bundle, _ := bundleOf("machines.cluster.hypershift.openshift.io")
		g.Expect(bundle).NotTo(BeEmpty())
		g.Expect(bundle).NotTo(Equal(secret.Data["ca.crt"]))
	})
}
