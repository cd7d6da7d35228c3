package ignition

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/ignition/tokens"
	"hcp.internal/platform/internal/ignition/tools"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/release/releasetest"
	"hcp.internal/platform/internal/testenv"
)

// world is a control plane namespace with what payloads are made of.
type world struct {
	t     testing.TB
	env   *testenv.Env
	c     client.WithWatch
	hcp   *hyperv1.HostedControlPlane
	clock *clocktesting.FakePassiveClock
	store *tokens.Store
}

func newWorld(t testing.TB) *world {
	t.Helper()
	env := testenv.Start(t)
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, env: env, c: env.Client(t, scheme), clock: clocktesting.NewFakePassiveClock(noon), store: &tokens.Store{}}
	w.hcp = &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "demo"}}
	spec := &w.hcp.Spec
	spec.IssuerURL, spec.PullSecret.Name, spec.Platform.Type, spec.InfraID = "https://kubernetes.default.svc", "pull-secret", hyperv1.NonePlatform, "demo"
	spec.ReleaseImage = "example.com/release:1"
	for _, service := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		spec.Services = append(spec.Services, hyperv1.ServicePublishingStrategyMapping{
			Service: service, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer},
		})
	}
	spec.Etcd.ManagementType = hyperv1.Managed
	spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}
	spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: "10.132.0.0/14"}}
	spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}
	w.create(w.hcp)
	w.create(w.secret(names.PullSecret, names.DockerConfigKey, `{"auths":{}}`))
	w.create(w.secret(bootstrapKubeconfigSecret, "kubeconfig", "kubeconfig"))
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: kubeletCAConfigMap}, Data: map[string]string{"ca.crt": "ca"}})
	return w
}

func (w *world) secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: name}, Data: map[string][]byte{key: []byte(value)}}
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.c.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// token creates a token Secret with the configuration.
func (w *world) token(config string, mutate ...func(*corev1.Secret)) *corev1.Secret {
	w.t.Helper()
	s := tokenSecret(mutate...)
	s.Namespace = w.hcp.Namespace
	packed, err := encodePayload([]byte(config))
	if err != nil {
		w.t.Fatal(err)
	}
	s.Data[token.ConfigKey] = packed
	w.create(s)
	return s
}

func (w *world) reconciler(c client.WithWatch) *Reconciler {
	var n atomic.Int32
	return &Reconciler{
		Client: c, Live: c, Namespace: w.hcp.Namespace, Clock: w.clock, Tokens: w.store,
		Releases: release.ProviderFunc(func(_ context.Context, image string, _ []byte) (*release.Release, error) {
			return &release.Release{Image: image, Version: "1.36.3", Kubernetes: true, Images: map[string]string{"kubelet": "example.com/kubelet:1", "pause": "example.com/pause:1"}}, nil
		}),
		NewToken:   func() string { return fmt.Sprintf("new-%d", n.Add(1)) },
		Kubernetes: payload.Kubernetes{}, OpenShift: &tools.Generator{}, Metrics: NewMetrics(prometheus.NewRegistry()),
	}
}

func (w *world) pass(r *Reconciler, s *corev1.Secret) (ctrl.Result, error) {
	return r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s)})
}

func (w *world) read(s *corev1.Secret) *corev1.Secret {
	w.t.Helper()
	got := &corev1.Secret{}
	if err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(s), got); err != nil {
		w.t.Fatal(err)
	}
	return got
}

func (w *world) good(token string) bool {
	_, ok := w.store.Lookup([]byte(token), w.clock.Now())
	return ok
}

func TestReconcile(t *testing.T) {
	t.Run("When a token is new it should be served and reported, and then be left alone", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.token("")
		r := w.reconciler(w.c)
		result, err := w.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(tokenRotation - time.Hour))
		p, ok := w.store.Lookup([]byte("first"), noon)
		g.Expect(ok).To(BeTrue())
		g.Expect(p.NodePool).To(Equal("clusters/demo"))
		g.Expect(payload.Check(p.Data)).To(Succeed())
		g.Expect(w.read(s).Data).To(HaveKeyWithValue(token.ReasonKey, []byte("AsExpected")))
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error { _, err := w.pass(w.reconciler(c), s); return err })
	})

	t.Run("When half of its life is over it should be replaced, and the old one be good for the other half", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.token("")
		r := w.reconciler(w.c)
		w.clock.SetTime(noon.Add(-time.Hour + tokenRotation))
		_, err := w.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		got := w.read(s)
		g.Expect(got.Data).To(HaveKeyWithValue(token.TokenKey, []byte("new-1")))
		g.Expect(got.Data).To(HaveKeyWithValue(token.OldTokenKey, []byte("first")))
		g.Expect(w.good("first") && w.good("new-1")).To(BeTrue())
		w.clock.SetTime(w.clock.Now().Add(tokenTTL - tokenRotation))
		g.Expect(w.good("first")).To(BeFalse(), "also when there was no pass since")
		g.Expect(w.good("new-1")).To(BeTrue())

		other := &world{t: t, env: w.env, c: w.c, hcp: w.hcp, clock: w.clock, store: &tokens.Store{}} // another replica, or a restart
		w.clock.SetTime(noon.Add(tokenRotation))
		_, err = other.pass(other.reconciler(w.c), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(other.good("first") && other.good("new-1")).To(BeTrue(), "it takes both from the Secret")
	})

	t.Run("When the Secret's time has come it should be deleted and its tokens be refused", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.token("", expiresAt(noon.Add(time.Hour).Format(time.RFC3339)))
		r := w.reconciler(w.c)
		_, err := w.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.good("first")).To(BeTrue())
		w.clock.SetTime(noon.Add(time.Hour))
		g.Expect(w.good("first")).To(BeFalse())
		_, err = w.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(apierrors.IsNotFound(w.c.Get(t.Context(), client.ObjectKeyFromObject(s), s))).To(BeTrue())
		_, err = w.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.store.Len()).To(BeZero())
	})

	t.Run("When somebody takes the annotation or the Secret away it should refuse its tokens", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.token("")
		r := w.reconciler(w.c)
		_, err := w.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		s = w.read(s)
		delete(s.Annotations, hyperv1.TokenSecretAnnotation)
		g.Expect(w.c.Update(t.Context(), s)).To(Succeed())
		_, err = w.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.good("first")).To(BeFalse())
	})

	t.Run("When the configuration is bad it should name the item and serve nothing", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.token("apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: x}\nspec: {kernelArguments: [quiet]}")
		_, err := w.pass(w.reconciler(w.c), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.read(s).Data).To(HaveKeyWithValue(token.ReasonKey, []byte("InvalidConfig")))
		g.Expect(string(w.read(s).Data[token.MessageKey])).To(HavePrefix(`MachineConfig "x": spec.kernelArguments is not supported`))
		g.Expect(w.good("first")).To(BeFalse())
	})

	t.Run("When the registry goes away it should go on with the last payload", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.token("")
		r := w.reconciler(w.c)
		_, err := w.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		r.Releases = release.ProviderFunc(func(context.Context, string, []byte) (*release.Release, error) {
			return nil, errors.New("connection refused")
		})
		result, err := w.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(retryInputs))
		g.Expect(w.good("first")).To(BeTrue())
		g.Expect(w.read(s).Data).To(HaveKeyWithValue(token.ReasonKey, []byte("FailedToGet")))
	})

	t.Run("When it starts while the registry is away it should serve the last payload of the process before", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.token("")
		_, err := w.pass(w.reconciler(w.c), s)
		g.Expect(err).NotTo(HaveOccurred())
		before, _ := w.store.Lookup([]byte("first"), noon)
		next := &world{t: t, env: w.env, c: w.c, hcp: w.hcp, clock: w.clock, store: &tokens.Store{}}
		r := next.reconciler(w.c)
		r.Releases = release.ProviderFunc(func(context.Context, string, []byte) (*release.Release, error) {
			return nil, errors.New("connection refused")
		})
		_, err = next.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		p, ok := next.store.Lookup([]byte("first"), noon)
		g.Expect(ok).To(BeTrue())
		g.Expect(p.Data).To(Equal(before.Data))
		g.Expect(next.read(s).Data).To(HaveKeyWithValue(token.ReasonKey, []byte("FailedToGet")), "and still say what is wrong")
	})

	t.Run("When another replica was faster it should come back and take what that one wrote", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		s := w.token("", bornAt(noon.Add(-tokenRotation)))
		r := w.reconciler(w.c)
		r.Client = raceClient{WithWatch: w.c, before: func() {
			_, err := w.pass(w.reconciler(w.c), s) // has a store of its own in a real process; what counts is the Secret
			g.Expect(err).NotTo(HaveOccurred())
		}}
		_, err := w.pass(r, s)
		g.Expect(outcome.IsConflict(err)).To(BeTrue(), "which is a reason to look again, and no failure")
		g.Expect(string(w.read(s).Data[token.TokenKey])).To(Equal("new-1"))
		g.Expect(string(w.read(s).Data[token.OldTokenKey])).To(Equal("first"))
	})
}

// raceClient lets something happen between reading and writing.
type raceClient struct {
	client.WithWatch
	before func()
}

func (c raceClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	c.before()
	return c.WithWatch.Patch(ctx, obj, patch, opts...)
}

func TestReconcileCrash(t *testing.T) {
	fresh := func(t testing.TB) testenv.CrashCase {
		w := newWorld(t)
		s := w.token("", bornAt(noon.Add(-tokenRotation)))
		return testenv.CrashCase{
			Client: w.c,
			Run: func(c client.WithWatch) error {
				w.store = &tokens.Store{} // a process has no memory across a crash
				_, err := w.pass(w.reconciler(c), s)
				return err
			},
			Check: func(t testing.TB) {
				g := NewWithT(t)
				got := w.read(s)
				g.Expect(string(got.Data[token.TokenKey])).To(HavePrefix("new-"))
				g.Expect(string(got.Data[token.OldTokenKey])).To(Equal("first"), "a machine may have it")
				g.Expect(w.good("first") && w.good(string(got.Data[token.TokenKey]))).To(BeTrue())
				g.Expect(string(got.Data[token.ReasonKey])).To(Equal("AsExpected"))
			},
		}
	}
	testenv.CrashAtEveryWrite(t, 1, fresh)
	testenv.Storm(t, 2, fresh)
}

// asServer is the connection with the rights that the component gives, and no others.
func (w *world) asServer() *rest.Config {
	return w.withRights(filepath.Join("..", "controlplane", "ignitionserver", "assets", "role.yaml"))
}

// withRights is the connection with the rights of a Role in a file.
func (w *world) withRights(file string, more ...rbacv1.PolicyRule) *rest.Config {
	w.t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	role := &rbacv1.Role{}
	if err := yaml.UnmarshalStrict(raw, role); err != nil {
		w.t.Fatal(err)
	}
	role.Namespace, role.Rules = w.hcp.Namespace, append(role.Rules, more...)
	w.create(role)
	user := "system:serviceaccount:" + w.hcp.Namespace + ":ignition-server"
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	cfg := rest.CopyConfig(w.env.Config)
	cfg.Impersonate.UserName = user
	return cfg
}

// list does what the control-plane-operator does with the Role: it names the tokens.
func (w *world) list(tokens ...string) {
	w.t.Helper()
	role := &rbacv1.Role{}
	if err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: names.IgnitionServer}, role); err != nil {
		w.t.Fatal(err)
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Verbs, "delete") })
	if len(tokens) > 0 {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: tokens,
			Verbs: []string{"get", "list", "watch", "patch", "delete"}})
	}
	if err := w.c.Update(w.t.Context(), role); err != nil {
		w.t.Fatal(err)
	}
}

func TestProcess(t *testing.T) {
	t.Run("When the whole process runs with its own rights a machine should get what it boots from", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		registry := releasetest.New(t)
		image := registry.PushRelease(t, "1.36.3", registry.KubernetesTags())
		certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
		g.Expect(err).NotTo(HaveOccurred())
		dir := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), certPEM, 0o600)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "tls.key"), keyPEM, 0o600)).To(Succeed())
		ports, err := testenv.FreePorts(2)
		g.Expect(err).NotTo(HaveOccurred())
		addr, health := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])

		now := func(s *corev1.Secret) {
			bornAt(time.Now())(s)
			s.Data[token.ReleaseKey] = []byte(image)
		}
		early := w.token("", now)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		rights := w.asServer()
		w.list(early.Name)
		go func() {
			ended <- run(ctx, rights, Options{Namespace: w.hcp.Namespace, Addr: addr, HealthAddr: health, MetricsAddr: "0",
				CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}, prometheus.NewRegistry())
		}()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Errorf("the process ended with: %v", err)
			}
		})
		pool := x509.NewCertPool()
		g.Expect(pool.AppendCertsFromPEM(certPEM)).To(BeTrue())
		machine := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}, Timeout: 5 * time.Second}
		get := func(url, token string) (int, string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			g.Expect(err).NotTo(HaveOccurred())
			req.Header.Set("Authorization", "Bearer "+base64.StdEncoding.EncodeToString([]byte(token)))
			resp, err := machine.Do(req)
			if err != nil {
				return 0, ""
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				return 0, "" // as if there were no answer: whoever polls asks again
			}
			return resp.StatusCode, string(body)
		}
		g.Eventually(func() int { status, _ := get("http://"+health+"/readyz", ""); return status }).WithTimeout(time.Minute).Should(Equal(200))
		var status int
		var body string
		g.Eventually(func() int { status, body = get("https://"+addr+"/ignition", "first"); return status }).WithTimeout(time.Minute).ShouldNot(BeZero())
		g.Expect(status).To(Equal(200), "when it is ready, it knows every token")
		g.Expect(payload.Check([]byte(body))).To(Succeed())
		g.Expect(body).To(ContainSubstring(`"version":"3.2.0"`))
		g.Eventually(func() string { return w.read(early).Annotations[hyperv1.TokenSecretIgnitionReachedAnnotation] }).WithTimeout(time.Minute).Should(Equal("True"))

		server, err := client.New(rights, client.Options{Scheme: w.c.Scheme()})
		g.Expect(err).NotTo(HaveOccurred())
		w.create(w.secret("root-ca", "ca.key", "the most precious"))
		g.Expect(apierrors.IsForbidden(server.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: "root-ca"}, &corev1.Secret{}))).To(BeTrue(), "it may read no other Secret")
		g.Expect(apierrors.IsForbidden(server.List(t.Context(), &corev1.SecretList{}, client.InNamespace(w.hcp.Namespace)))).To(BeTrue(), "nor all of them")

		w.token("", now, func(s *corev1.Secret) { s.Name, s.Data[token.TokenKey] = "token-demo-2", []byte("second") })
		w.list(early.Name, "token-demo-2")
		g.Eventually(func() int { status, _ := get("https://"+addr+"/ignition", "second"); return status }).WithTimeout(time.Minute).Should(Equal(200))

		kubeconfig := w.read(w.secret(bootstrapKubeconfigSecret, "", ""))
		kubeconfig.Data["kubeconfig"] = []byte("renewed")
		g.Expect(w.c.Update(t.Context(), kubeconfig)).To(Succeed())
		g.Eventually(func() string { _, body := get("https://"+addr+"/ignition", "first"); return body }).WithTimeout(time.Minute).
			Should(ContainSubstring(base64.StdEncoding.EncodeToString([]byte("renewed"))))

		w.list(early.Name)
		g.Eventually(func() int { status, _ := get("https://"+addr+"/ignition", "second"); return status }).WithTimeout(time.Minute).
			Should(Equal(511), "When a token is not listed any more it should be refused")
		g.Expect(w.c.Delete(t.Context(), early)).To(Succeed())
		g.Eventually(func() int { status, _ := get("https://"+addr+"/ignition", "first"); return status }).WithTimeout(time.Minute).Should(Equal(511))
	})
}
