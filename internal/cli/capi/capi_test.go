package capi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

// management is an API server with both groups, and a namespace stored in each way.
func management(t *testing.T) (env *testenv.Env, private, standard string) {
	t.Helper()
	env = testenv.Start(t)
	env.InstallPrivateCAPI(t)
	private, standard = env.Namespace(t), env.Namespace(t)
	c := env.Client(t, runtime.NewScheme())
	for ns, group := range map[string]string{private: translate.Private, standard: translate.Standard} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1beta2", "kind": "Cluster", "metadata": map[string]any{"name": "of-" + ns, "namespace": ns},
			"spec": map[string]any{"infrastructureRef": map[string]any{"apiGroup": "infrastructure." + group, "kind": "LocalCluster", "name": "c"}}}}
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	return env, private, standard
}

func viewOf(t *testing.T, cfg *rest.Config) (*httptest.Server, *View) {
	t.Helper()
	upstream, err := Upstream(cfg)
	if err != nil {
		t.Fatal(err)
	}
	view, err := NewView(t.Context(), upstream, clocktesting.NewFakePassiveClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(view)
	t.Cleanup(server.Close)
	return server, view
}

// response is what tests look at of an answer.
type response struct {
	StatusCode int
	Proto      string
	Header     http.Header
	Trailer    http.Header
}

func get(t *testing.T, address string) (response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Proto, resp.Header, resp.Trailer}, string(body)
}

func TestView(t *testing.T) {
	env, private, standard := management(t)
	server, view := viewOf(t, env.Config)
	NewWithT(t).Expect(view.Private).To(BeTrue())
	for _, ns := range []string{private, standard} {
		t.Run("When a namespace is stored in either way it should show its objects under standard names", func(t *testing.T) {
			g := NewWithT(t)
			resp, body := get(t, server.URL+"/apis/cluster.x-k8s.io/v1beta2/namespaces/"+ns+"/clusters")
			g.Expect(resp.StatusCode).To(Equal(200))
			g.Expect(body).To(ContainSubstring("of-" + ns))
			g.Expect(body).To(ContainSubstring(`"apiGroup":"infrastructure.cluster.x-k8s.io"`))
			g.Expect(body).NotTo(ContainSubstring(translate.Private))
			resp, _ = get(t, server.URL+"/apis/cluster.x-k8s.io/v1beta2/namespaces/"+ns+"/clusters?watch=1&timeoutSeconds=1")
			g.Expect(resp.StatusCode).To(Equal(200))
		})
	}
	t.Run("When all namespaces are listed it should say that some are missing", func(t *testing.T) {
		g := NewWithT(t)
		resp, body := get(t, server.URL+"/apis/cluster.x-k8s.io/v1beta2/clusters")
		g.Expect(body).To(ContainSubstring("of-" + private))
		g.Expect(body).NotTo(ContainSubstring("of-" + standard))
		g.Expect(resp.Header.Get("Warning")).To(ContainSubstring("name a namespace"))
	})
	t.Run("When the kubeconfig has no rights it should say so", func(t *testing.T) {
		cfg := rest.CopyConfig(env.Config)
		cfg.CertData, cfg.KeyData, cfg.BearerToken = nil, nil, "wrong"
		upstream, err := Upstream(cfg)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = NewView(t.Context(), upstream, clocktesting.NewFakePassiveClock(time.Now()))
		g.Expect(err).To(MatchError(ContainSubstring("status 401: check the credentials")))
	})
	t.Run("When somebody without the password asks it should refuse", func(t *testing.T) {
		g := NewWithT(t)
		locked := httptest.NewServer(guarded("secret", view))
		defer locked.Close()
		resp, body := get(t, locked.URL+"/version")
		g.Expect(resp.StatusCode).To(Equal(401))
		g.Expect(body).To(ContainSubstring(`"reason":"Unauthorized"`))
	})
}

// TestStandardOnly is a management cluster without private groups.
func TestViewOfMove(t *testing.T) {
	env, _, standard := management(t)
	c := env.Client(t, runtime.NewScheme())
	upstream, err := Upstream(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	copied := func(kind, group string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": group, "kind": kind, "metadata": map[string]any{"name": "of-" + standard, "namespace": standard}, "spec": spec}}
	}
	if err := c.Create(t.Context(), copied("Cluster", translate.Private+"/v1beta2", map[string]any{"infrastructureRef": map[string]any{
		"apiGroup": "infrastructure." + translate.Private, "kind": "LocalCluster", "name": "c"}})); err != nil {
		t.Fatal(err)
	}
	look := func(t *testing.T) (bool, error) {
		t.Helper()
		view, err := NewView(t.Context(), upstream, clocktesting.NewFakePassiveClock(time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		return view.private(t.Context(), standard)
	}
	t.Run("When there are Clusters in both groups and nothing says which count it should show neither", func(t *testing.T) {
		_, err := look(t)
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("in both groups"), ContainSubstring("hostedcontrolplanes"))))
	})
	hcp := hostedControlPlane(t, env, standard)
	t.Run("When copies have been made it should still show what they were made from", func(t *testing.T) {
		g := NewWithT(t)
		private, err := look(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(private).To(BeFalse())
	})
	t.Run("When the move is committed it should show the copies", func(t *testing.T) {
		g := NewWithT(t)
		hcp.SetAnnotations(map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"})
		g.Expect(c.Update(t.Context(), hcp)).To(Succeed())
		private, err := look(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(private).To(BeTrue())
	})
}

// hostedControlPlane makes one as it is before a move.
func hostedControlPlane(t *testing.T, env *testenv.Env, ns string) *unstructured.Unstructured {
	t.Helper()
	spec := testenv.HostedCluster(ns, "demo").Spec
	hcp := &hyperv1.HostedControlPlane{TypeMeta: metav1.TypeMeta{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane"}, ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo"},
		Spec: hyperv1.HostedControlPlaneSpec{ReleaseImage: spec.Release.Image, PullSecret: spec.PullSecret, Platform: spec.Platform, Networking: spec.Networking, Services: spec.Services,
			InfraID: "demo", IssuerURL: "https://kubernetes.default.svc", SSHKey: corev1.LocalObjectReference{}, Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed,
				Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}}}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hcp)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: raw}
	if err := env.Client(t, runtime.NewScheme()).Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestStandardOnly(t *testing.T) {
	g := NewWithT(t)
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis/"+translate.Private {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, r.URL.Path+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Impersonate-User"))
	}))
	defer back.Close()
	server, view := viewOf(t, &rest.Config{Host: back.URL, BearerToken: "t", Impersonate: rest.ImpersonationConfig{UserName: "u"}})
	g.Expect(view.Private).To(BeFalse())
	_, body := get(t, server.URL+"/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines")
	g.Expect(body).To(Equal("/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines Bearer t u"))
}

// call runs "hypershift capi" with a kubeconfig of env.
func call(ctx context.Context, t *testing.T, env *testenv.Env, out io.Writer, args ...string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "management.kubeconfig")
	if err := os.WriteFile(file, env.Kubeconfig(t), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := Command()
	cmd.SetOut(out)
	cmd.SetErr(out)
	at := 0
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		at = 1
	}
	cmd.SetArgs(append(append(append([]string{}, args[:at]...), "--kubeconfig", file), args[at:]...))
	return cmd.ExecuteContext(ctx)
}

func TestRun(t *testing.T) {
	env, private, standard := management(t)
	t.Run("When a command runs it should find a kubeconfig, and leave nothing behind", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		g.Expect(call(t.Context(), t, env, &out, "--name", "de.mo", "--", "sh", "-c", "echo $KUBECONFIG; cat $KUBECONFIG")).To(Succeed())
		g.Expect(out.String()).To(MatchRegexp(`server: https://127\.0\.0\.1:\d+`))
		g.Expect(out.String()).To(ContainSubstring("namespace: clusters-de-mo"))
		g.Expect(strings.SplitN(out.String(), "\n", 2)[0]).NotTo(BeAnExistingFile())
	})
	t.Run("When a command fails it should end with its code and say nothing of its own", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		err := call(t.Context(), t, env, &out, "--", "sh", "-c", "exit 7")
		var exit *ExitError
		g.Expect(errors.As(err, &exit)).To(BeTrue())
		g.Expect(*exit).To(Equal(ExitError{Code: 7}))
		g.Expect(out.String()).To(BeEmpty())
	})
	t.Run("When the command is missing, unknown or without dashes it should say what to do", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(call(t.Context(), t, env, io.Discard, "--", "no-such-program")).To(MatchError(ContainSubstring("install it, or give its path")))
		g.Expect(call(t.Context(), t, env, io.Discard, "kubectl", "get", "machines")).To(MatchError(ContainSubstring("put -- before a command")))
		g.Expect(call(t.Context(), t, env, io.Discard)).To(Succeed())
	})
	t.Run("When it is kubectl it should show both ways alike", func(t *testing.T) {
		kubectl := filepath.Join(filepath.Dir(testenv.KubeBinary(t)), "..", "..", "kubectl")
		if _, err := os.Stat(kubectl); err != nil {
			t.Skip("kubectl isn't built; make kubernetes")
		}
		g := NewWithT(t)
		for _, ns := range []string{private, standard} {
			var out bytes.Buffer
			g.Expect(call(t.Context(), t, env, &out, "--", kubectl, "get", "clusters.cluster.x-k8s.io", "-n", ns, "-o", "jsonpath={.items[0].apiVersion} {.items[0].metadata.name}")).To(Succeed(), "%s", &out)
			g.Expect(out.String()).To(Equal("cluster.x-k8s.io/v1beta2 of-" + ns))
		}
	})
}

func TestProxy(t *testing.T) {
	env, private, _ := management(t)
	g := NewWithT(t)
	out := gbytes.NewBuffer()
	ctx, cancel := context.WithCancel(t.Context())
	done, file := make(chan error, 1), filepath.Join(t.TempDir(), "traffic.jsonl")
	go func() { done <- call(ctx, t, env, out, "proxy", "--port", "0", "--record", file) }()
	g.Eventually(out, "60s").Should(gbytes.Say(`Starting to serve on 127\.0\.0\.1:\d+\n`))
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(string(out.Contents()))
	resp, body := get(t, fmt.Sprintf("http://%s/apis/cluster.x-k8s.io/v1beta2/namespaces/%s/clusters/of-%s", address, private, private))
	g.Expect(resp.StatusCode).To(Equal(200))
	g.Expect(body).To(ContainSubstring(`"apiVersion":"cluster.x-k8s.io/v1beta2"`))
	t.Run("When a web page sends a request with the user's rights it should be refused, and not recorded", func(t *testing.T) {
		g := NewWithT(t)
		page, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/api/v1/namespaces/"+private+"/configmaps",
			strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"of-a-page"}}`)) // without a type, which a page may send to anybody
		g.Expect(err).NotTo(HaveOccurred())
		page.Header.Set("Origin", "https://evil.example")
		resp, err := http.DefaultClient.Do(page)
		g.Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		g.Expect(resp.StatusCode).To(Equal(403))
		written := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		err = env.Client(t, runtime.NewScheme()).Get(t.Context(), client.ObjectKey{Namespace: private, Name: "of-a-page"}, written)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		page.Method, page.Body, page.ContentLength = http.MethodGet, nil, 0
		page.URL.Path = "/api/v1/namespaces/of-a-page"
		again, err := http.DefaultClient.Do(page)
		g.Expect(err).NotTo(HaveOccurred())
		defer again.Body.Close()
		g.Expect(again.StatusCode).To(Equal(403))
		traffic, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(traffic)).To(And(ContainSubstring("of-"+private), Not(ContainSubstring("of-a-page"))))
	})
	port := address[strings.LastIndexByte(address, ':')+1:]
	g.Expect(call(t.Context(), t, env, io.Discard, "proxy", "--port", port)).To(MatchError(ContainSubstring("choose another one")))
	g.Expect(call(t.Context(), t, env, io.Discard, "proxy", "--port", "70000")).To(MatchError(ContainSubstring("between 0 and 65535")))
	cancel()
	g.Eventually(done, "60s").Should(Receive(BeNil()))
}
