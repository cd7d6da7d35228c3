package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"hcp.internal/platform/internal/capigroup/proxy"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

// view is one way to the API: straight to standard objects, or through the proxy to private ones.
type view struct {
	name string
	cfg  *rest.Config
	ns   string
}

// views are both, on one server: that the other's definitions are there must not matter.
func views(t *testing.T) []view {
	t.Helper()
	env := testenv.Start(t)
	env.InstallPrivateCAPI(t)
	conf, err := rest.TLSConfigFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	up, err := proxy.NewUpstream(proxy.UpstreamConfig{URL: env.Config.Host, TLS: conf})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(proxy.New(proxy.Config{Upstream: up}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	direct, through := rest.CopyConfig(env.Config), &rest.Config{Host: front.URL}
	direct.QPS, through.QPS = -1, -1
	return []view{{"direct", direct, env.Namespace(t)}, {"proxied", through, env.Namespace(t)}}
}

// noise is what differs between two objects that were made alike.
var noise = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`"(uid|resourceVersion|creationTimestamp|time|Audit-Id|deletionTimestamp|storageVersionHash|hash)":\s?"[^"]*"`), `"$1":"-"`},
	{regexp.MustCompile(`"resourceVersionMatch":"[^"]*"`), `-`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), `-`},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), `-`},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|s|m|h))+\b`), `-`},
	{regexp.MustCompile(`hash=[0-9A-F]+`), `-`},
	{regexp.MustCompile(`(resourceVersion: |Resource Version: +)"?\d+"?`), `$1-`},
}

func (v view) normal(s string) string {
	s = strings.ReplaceAll(s, v.ns, "NAMESPACE")
	for _, n := range noise {
		s = n.what.ReplaceAllString(s, n.by)
	}
	return sortManagers(s)
}

// managers begins a list that the API server sorts by time in seconds, so that its order depends on when a test ran.
var managers = regexp.MustCompile(`"managedFields":\s*\[`)

// sortManagers orders the entries of each such list by their text.
func sortManagers(s string) string {
	var out strings.Builder
	for {
		at := managers.FindStringIndex(s)
		if at == nil {
			return out.String() + s
		}
		var entries []json.RawMessage
		in := json.NewDecoder(strings.NewReader(s[at[1]-1:]))
		if in.Decode(&entries) != nil {
			return out.String() + s // a text that quotes one
		}
		slices.SortFunc(entries, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
		out.WriteString(s[:at[1]])
		for _, e := range entries {
			out.Write(e)
			out.WriteByte(',')
		}
		s = s[at[1]-1+int(in.InputOffset()):]
	}
}

// request is one step of the script; N in path and body is the namespace.
type request struct{ method, path, media, body, accept string }

const (
	jsonType  = "application/json"
	applyType = "application/apply-patch+yaml"
	mergeType = "application/merge-patch+json"
	patchType = "application/json-patch+json"
	tableType = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	metaType  = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
	capi      = "/apis/cluster.x-k8s.io/v1beta2/namespaces/N/"
	infra     = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/N/"
	crdPath   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

var clusterBody = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","labels":{"cluster.x-k8s.io/cluster-name":"c"},"finalizers":["cluster.cluster.x-k8s.io"]},"spec":{"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"LocalCluster","name":"c"}}}`

var script = []request{
	{"POST", capi + "clusters?fieldManager=test", jsonType, clusterBody, ""},
	{"POST", capi + "clusters", jsonType, clusterBody, ""},
	{"GET", capi + "clusters/c", "", "", ""},
	{"GET", capi + "clusters/none", "", "", ""},
	{"GET", capi + "clusters", "", "", ""},
	{"GET", capi + "clusters", "", "", tableType},
	{"GET", capi + "clusters", "", "", metaType},
	{"GET", capi + "clusters/c?pretty=true", "", "", ""},
	{"POST", capi + "machinesets", jsonType, `{"kind":"MachineSet","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"name":"s"},"spec":{"clusterName":"c","replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"clusterName":"c","bootstrap":{"dataSecretName":"x"},"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"LocalMachineTemplate","name":"t"}}}}}`, ""},
	{"GET", capi + "machinesets/s/scale", "", "", ""},
	{"PATCH", capi + "machinesets/s/scale", mergeType, `{"spec":{"replicas":3}}`, ""},
	{"PATCH", capi + "machinesets/s", mergeType, `{"metadata":{"annotations":{"cluster.x-k8s.io/delete-machine":"yes"}},"spec":{"template":{"spec":{"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io"}}}}}`, ""},
	{"PATCH", capi + "machinesets/s", "application/strategic-merge-patch+json", `{}`, ""},
	{"PATCH", capi + "clusters/c", patchType, `[{"op":"test","path":"/spec/infrastructureRef/apiGroup","value":"infrastructure.cluster.x-k8s.io"},{"op":"test","path":"/metadata/finalizers/0","value":"cluster.cluster.x-k8s.io"},{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"ClusterClass","name":"k","uid":"u"}]}]`, ""},
	{"PATCH", capi + "clusters/c", patchType, `[{"op":"test","path":"/spec/infrastructureRef/apiGroup","value":"wrong"}]`, ""},
	{"PATCH", capi + "machines/m?fieldManager=a", applyType, `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m"},"spec":{"clusterName":"c","bootstrap":{"configRef":{"apiGroup":"bootstrap.cluster.x-k8s.io","kind":"K","name":"k"}},"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"LocalMachine","name":"m"}}}`, ""},
	{"PATCH", capi + "machines/m?fieldManager=b", applyType, "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\nmetadata:\n  name: m\nspec:\n  clusterName: d\n", ""},
	{"PATCH", capi + "machines/m?fieldManager=b&force=true", applyType, "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\nmetadata:\n  name: m\nspec:\n  version: v1.36.3\n", ""},
	{"PATCH", capi + "machines/m/status", mergeType, `{"status":{"nodeRef":{"name":"n"}}}`, ""},
	{"PUT", capi + "machines/m", jsonType, `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m"}}`, ""},
	{"POST", capi + "machines", jsonType, `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"bad"},"spec":{}}`, ""},
	{"POST", capi + "machines", jsonType, `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"bad"},"spec":{}}`, ""},
	{"POST", capi + "machines", jsonType, `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine",`, ""},
	{"POST", capi + "machines", jsonType, ``, ""},
	{"POST", capi + "machines?fieldValidation=Warn", jsonType, `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"w"},"spec":{"nonsense":1,"clusterName":"c","bootstrap":{"dataSecretName":"x"},"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"LocalMachine","name":"m"}}}`, ""},
	{"GET", capi + "machines?limit=1", "", "", metaType},
	{"GET", capi + "machines/m", "", "", "application/vnd.kubernetes.protobuf"},
	{"GET", capi + "machines", "", "", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io"},
	{"GET", capi + "machines", "", "", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io," + tableType},
	{"GET", capi + "machines?labelSelector=cluster.x-k8s.io/cluster-name%3Dc", "", "", ""},
	{"GET", capi + "machines?fieldSelector=metadata.name%3Dm", "", "", tableType},
	{"GET", capi + "nonsense", "", "", ""},
	{"GET", "/apis/cluster.x-k8s.io/v9/x", "", "", ""},
	{"POST", infra + "localmachines", jsonType, `{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1","kind":"LocalMachine","metadata":{"name":"m","ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","name":"m","uid":"u"}]},"spec":{"image":"x","cpu":"1","memory":"1Gi"}}`, ""},
	{"GET", infra + "localmachines", "", "", tableType},
	{"POST", "/api/v1/namespaces/N/secrets", jsonType, `{"apiVersion":"v1","kind":"Secret","type":"cluster.x-k8s.io/secret","metadata":{"name":"s","ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"c","uid":"u"}]}}`, ""},
	{"GET", "/api/v1/namespaces/N/secrets", "", "", ""},
	{"POST", "/api/v1/namespaces/N/configmaps", jsonType, `{"metadata":{"name":"m"},"data":{"x":"apiVersion: cluster.x-k8s.io/v1beta2"}}`, ""},
	{"POST", "/api/v1/namespaces/N/events", jsonType, `{"metadata":{"name":"e"},"involvedObject":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","name":"m","namespace":"N"},"message":"cluster.x-k8s.io/v1beta2"}`, ""},
	{"GET", "/api/v1/namespaces/N/events?fieldSelector=involvedObject.apiVersion%3Dcluster.x-k8s.io%2Fv1beta2", "", "", ""},
	{"POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/N/roles", jsonType, `{"metadata":{"name":"r"},"rules":[{"apiGroups":["cluster.x-k8s.io","infrastructure.cluster.x-k8s.io",""],"resources":["*"],"verbs":["get"]}]}`, ""},
	{"GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/N/roles/r", "", "", ""},
	{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", jsonType, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"group":"cluster.x-k8s.io","resource":"machines","verb":"get"}}}`, ""},
	{"POST", "/api/v1/namespaces/N/resourcequotas", jsonType, `{"metadata":{"name":"q"},"spec":{"hard":{"count/machines.cluster.x-k8s.io":"9"}}}`, ""},
	{"GET", "/apis/cluster.x-k8s.io", "", "", ""},
	{"GET", crdPath + "/machines.cluster.x-k8s.io", "", "", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
	{"GET", crdPath + "/machines.cluster.x-k8s.io", "", "", tableType},
	{"GET", crdPath + "/none.cluster.x-k8s.io", "", "", ""},
	{"GET", "/apis/cluster.x-k8s.io/v1beta2", "", "", ""},
	{"GET", "/openapi/v3/apis/cluster.x-k8s.io/v1beta2", "", "", ""},
	{"GET", "/version", "", "", ""},
	{"DELETE", capi + "machines/w", jsonType, `{"kind":"DeleteOptions","apiVersion":"cluster.x-k8s.io/v1beta2","propagationPolicy":"Background"}`, ""},
	{"DELETE", capi + "machinesets", "", "", ""},
	{"DELETE", capi + "clusters/c", "", "", ""},
	{"PATCH", capi + "clusters/c", mergeType, `{"metadata":{"finalizers":null}}`, ""},
	{"GET", capi + "clusters/c", "", "", ""},
}

func (v view) do(t *testing.T, r request) (code int, head, body string) {
	t.Helper()
	code, head, body = v.ask(t, r)
	return code, head, v.normal(body)
}

// ask is do with the body as it came: making documents of megabytes comparable takes a minute under the race detector.
func (v view) ask(t *testing.T, r request) (code int, head, body string) {
	t.Helper()
	c, err := rest.HTTPClientFor(v.cfg)
	if err != nil {
		t.Fatal(err)
	}
	fill := func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, "/N/", "/"+v.ns+"/"), `"N"`, `"`+v.ns+`"`)
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, v.cfg.Host+fill(r.path), strings.NewReader(fill(r.body)))
	if err != nil {
		t.Fatal(err)
	}
	if r.media != "" {
		req.Header.Set("Content-Type", r.media)
	}
	req.Header.Set("Accept", jsonType)
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	warnings := slices.Sorted(slices.Values(resp.Header["Warning"]))
	return resp.StatusCode, fmt.Sprint(resp.Header.Get("Content-Type"), " ", warnings, " ", resp.Header.Get("Cache-Control")), string(raw)
}

func TestDifferential(t *testing.T) {
	both := views(t)
	for i, r := range script {
		// Every step that differs is told, not only the first.
		g := NewGomega(func(message string, _ ...int) { t.Error(message) })
		code, head, body := both[0].do(t, r)
		code2, head2, body2 := both[1].do(t, r)
		what := fmt.Sprintf("step %d: %s %s %s", i, r.method, r.path, r.body)
		g.Expect(code2).To(Equal(code), what+"\n"+body2)
		g.Expect(head2).To(Equal(head), what+"\n"+head+"\n"+head2)
		if strings.HasPrefix(r.path, "/openapi") {
			// Maps are sorted by names that differ in storage.
			g.Expect(body2).To(MatchJSON(body), what)
			continue
		}
		if strings.HasPrefix(body, `{"kind":"APIResourceList"`) {
			// In no order of the API server's.
			g.Expect(sortedResources(g, body2)).To(Equal(sortedResources(g, body)), what)
			continue
		}
		if body != body2 {
			g.Expect(body2).To(Equal(body), what)
		}
	}
}

// sortedResources are those of a list, as text.
func sortedResources(g Gomega, body string) []string {
	var list struct{ Resources []json.RawMessage }
	g.Expect(json.Unmarshal([]byte(body), &list)).To(Succeed())
	var all []string
	for _, r := range list.Resources {
		all = append(all, string(r))
	}
	slices.Sort(all)
	return all
}

func TestDiscovery(t *testing.T) {
	both := views(t)
	for _, accept := range []string{jsonType, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"} {
		g := NewWithT(t)
		r := request{"GET", "/apis", "", "", accept}
		_, _, direct := both[0].do(t, r)
		code, _, proxied := both[1].do(t, r)
		g.Expect(code).To(Equal(200))
		sorted := func(s string) map[string]string {
			var doc struct{ Groups, Items []json.RawMessage }
			g.Expect(json.Unmarshal([]byte(s), &doc)).To(Succeed())
			out := map[string]string{}
			for _, raw := range append(doc.Groups, doc.Items...) {
				var id struct {
					Name     string
					Metadata struct{ Name string }
				}
				g.Expect(json.Unmarshal(raw, &id)).To(Succeed())
				if name := id.Name + id.Metadata.Name; !translate.IsPrivate(name) {
					out[name] = string(raw)
				}
			}
			return out
		}
		g.Expect(proxied).NotTo(ContainSubstring(translate.Private))
		g.Expect(sorted(proxied)).To(Equal(sorted(direct)))
	}
}

func TestClients(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, v := range views(t) {
		t.Run("When controller-runtime works "+v.name+" it should see its objects in every kind of cache", func(t *testing.T) {
			g := NewWithT(t)
			c, err := client.New(v.cfg, client.Options{Scheme: scheme})
			g.Expect(err).NotTo(HaveOccurred())
			all, err := cache.New(v.cfg, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{v.ns: {}}})
			g.Expect(err).NotTo(HaveOccurred())
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- all.Start(ctx) }()
			defer func() { cancel(); g.Expect(<-done).To(Succeed()) }()

			plain := &unstructured.Unstructured{}
			plain.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
			meta := &metav1.PartialObjectMetadata{}
			meta.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
			crd := &metav1.PartialObjectMetadata{}
			crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
			for _, obj := range []client.Object{&clusterv1.Machine{}, plain, meta, crd, &corev1.Secret{}} {
				_, err := all.GetInformer(ctx, obj)
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(all.WaitForCacheSync(ctx)).To(BeTrue(), "lists that stream end with a bookmark")

			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: v.ns, Name: "cached"}, Spec: clusterv1.MachineSpec{ClusterName: "c",
				Bootstrap:         clusterv1.Bootstrap{DataSecretName: new("x")},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "LocalMachine", Name: "m"}}}
			g.Expect(c.Create(ctx, m)).To(Succeed())
			key := types.NamespacedName{Namespace: v.ns, Name: "cached"}
			for _, obj := range []client.Object{&clusterv1.Machine{}, plain, meta} {
				g.Eventually(func() error { return all.Get(ctx, key, obj) }, patience).Should(Succeed())
				g.Expect(obj.GetUID()).To(Equal(m.UID))
			}
			g.Expect(plain.GetAPIVersion()).To(Equal("cluster.x-k8s.io/v1beta2"))
			ref, _, _ := unstructured.NestedString(plain.Object, "spec", "infrastructureRef", "apiGroup")
			g.Expect(ref).To(Equal("infrastructure.cluster.x-k8s.io"))

			before := m.DeepCopy()
			m.Finalizers = []string{"machine.cluster.x-k8s.io"}
			g.Expect(c.Patch(ctx, m, client.MergeFrom(before))).To(Succeed())
			g.Eventually(func() []string {
				got := &clusterv1.Machine{}
				_ = all.Get(ctx, key, got)
				return got.Finalizers
			}, patience).Should(Equal([]string{"machine.cluster.x-k8s.io"}))
			g.Expect(c.Delete(ctx, m)).To(Succeed())
			g.Expect(c.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
			g.Eventually(func() bool { return client.IgnoreNotFound(all.Get(ctx, key, m)) == nil && all.Get(ctx, key, m) != nil }, patience).Should(BeTrue())

			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(crd.GroupVersionKind())
			g.Expect(all.List(ctx, list)).To(Succeed())
			var names []string
			for _, item := range list.Items {
				if v.name == "proxied" {
					g.Expect(item.Name).NotTo(ContainSubstring(translate.Private))
					g.Expect(names).NotTo(ContainElement(item.Name))
				}
				names = append(names, item.Name)
			}
			g.Expect(names).To(ContainElement("machines.cluster.x-k8s.io"))
		})
		t.Run("When a client speaks protobuf "+v.name+" it should keep owners", func(t *testing.T) {
			g := NewWithT(t)
			cfg := rest.CopyConfig(v.cfg)
			cfg.ContentType = "application/vnd.kubernetes.protobuf"
			cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
			kube, err := kubernetes.NewForConfig(cfg)
			g.Expect(err).NotTo(HaveOccurred())
			secrets := kube.CoreV1().Secrets(v.ns)
			watch, err := secrets.Watch(t.Context(), metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			defer watch.Stop()
			owner := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "c", UID: "u"}
			made, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "proto", OwnerReferences: []metav1.OwnerReference{owner}}}, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(made.OwnerReferences).To(Equal([]metav1.OwnerReference{owner}))
			event := <-watch.ResultChan()
			g.Expect(event.Object.(*corev1.Secret).OwnerReferences).To(Equal([]metav1.OwnerReference{owner}))
			listed, err := secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=proto"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(listed.Items[0].OwnerReferences).To(Equal([]metav1.OwnerReference{owner}))
			_, err = secrets.Get(t.Context(), "none", metav1.GetOptions{})
			g.Expect(err).To(MatchError(`secrets "none" not found`))

			// What is stored: the private group, if it came through the proxy.
			straight, err := kubernetes.NewForConfig(testenv.Start(t).Config)
			g.Expect(err).NotTo(HaveOccurred())
			stored, err := straight.CoreV1().Secrets(v.ns).Get(t.Context(), "proto", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			want := "cluster.x-k8s.io/v1beta2"
			if v.name == "proxied" {
				want = translate.GroupVersion(want)
			}
			g.Expect(stored.OwnerReferences[0].APIVersion).To(Equal(want))
		})
	}
}
