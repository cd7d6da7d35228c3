package hostedcontrolplane

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/openshift/oauthserver/issuers"
	"hcp.internal/platform/internal/konnectivity"
)

// openTunnel runs a konnectivity server and an agent with the certificates of the control plane, and returns the server's address.
func (w *world) openTunnel() string {
	w.t.Helper()
	g := NewWithT(w.t)
	dir := w.t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		g.Expect(os.WriteFile(path, data, 0o600)).To(Succeed())
		return path
	}
	bundle := &corev1.ConfigMap{}
	g.Expect(w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: "konnectivity-ca-bundle"}, bundle)).To(Succeed())
	ca := write("ca.crt", []byte(bundle.Data["ca.crt"]))
	files := func(name string) konnectivity.Files {
		secret := &corev1.Secret{}
		g.Expect(w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: name}, secret)).To(Succeed())
		return konnectivity.Files{Cert: write(name+".crt", secret.Data["tls.crt"]), Key: write(name+".key", secret.Data["tls.key"]), CA: ca}
	}
	listen := func() net.Listener {
		l, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		return l
	}
	log := slog.New(slog.DiscardHandler)
	server, err := konnectivity.NewServer(konnectivity.ServerOptions{ID: "server", Count: 1, Front: files("konnectivity-server"), Agents: files("konnectivity-server"),
		FrontNames: []string{"konnectivity-client"}, AgentNames: []string{"konnectivity-agent"}, KeepAlive: time.Minute, MaxAgents: 5, MaxTunnels: 5, Log: log, Now: time.Now})
	g.Expect(err).NotTo(HaveOccurred())
	front, back := listen(), listen()
	_, port, _ := net.SplitHostPort(back.Addr().String())
	number, _ := strconv.Atoi(port)
	agent, err := konnectivity.NewAgent(konnectivity.AgentOptions{ID: "agent", Host: "127.0.0.1", Port: number, Files: files("konnectivity-agent"), Identifiers: "default-route=true",
		KeepAlive: time.Minute, SyncInterval: 50 * time.Millisecond, SyncIntervalCap: time.Second, Log: log, Now: time.Now,
		Allow: func(string, string) error { return nil }}) // the issuer of the test is on this machine
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan struct{}, 2)
	go func() { _ = server.Serve(ctx, front, back); done <- struct{}{} }()
	go func() { _ = agent.Run(ctx); done <- struct{}{} }()
	w.t.Cleanup(func() { stop(); <-done; <-done })
	g.Eventually(func() int { have, _ := agent.Connected(); return have }, time.Minute, 10*time.Millisecond).Should(Equal(1))
	return front.Addr().String()
}

func TestIssuers(t *testing.T) {
	t.Run("When users log in by OpenID the issuer should be asked through the tunnel, and the OAuth server follow", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		idp := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			self := "https://" + r.Host
			switch r.URL.Path {
			case "/.well-known/openid-configuration":
				_, _ = rw.Write([]byte(`{"authorization_endpoint":"` + self + `/authorize","token_endpoint":"` + self + `/token"}`))
			case "/token":
				rw.WriteHeader(http.StatusBadRequest)
				_, _ = rw.Write([]byte(`{"error":"invalid_grant"}`))
			default:
				rw.WriteHeader(http.StatusNotFound)
			}
		}))
		t.Cleanup(idp.Close)
		w := newPayloadWorld(t, func(h *hyperv1.HostedControlPlane) {
			h.Spec.Configuration = &hyperv1.ClusterConfiguration{OAuth: &configv1.OAuthSpec{IdentityProviders: []configv1.IdentityProvider{{Name: "company",
				IdentityProviderConfig: configv1.IdentityProviderConfig{Type: configv1.IdentityProviderTypeOpenID, OpenID: &configv1.OpenIDIdentityProvider{
					ClientID: "me", ClientSecret: configv1.SecretNameReference{Name: "idp-client"}, CA: configv1.ConfigMapNameReference{Name: "idp-ca"}, Issuer: idp.URL,
					Claims: configv1.OpenIDClaims{Email: []string{"mail"}, Groups: []configv1.OpenIDClaim{"groups"}},
				}}}}}}
		})
		ns := w.hcp.Namespace
		g.Expect(w.c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "idp-client"}, Data: map[string][]byte{"clientSecret": []byte("hush")}})).To(Succeed())
		ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: idp.Certificate().Raw}))
		g.Expect(w.c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "idp-ca"}, Data: map[string]string{"ca.crt": ca}})).To(Succeed())
		w.generateFeatureGates()
		g.Expect(w.settle(w.c)).To(Succeed())
		g.Expect(condition(w.read(), "ValidIDPConfiguration")).To(And(HavePrefix("False IDPConfigurationError"), ContainSubstring("is left out: the URLs of issuer")))

		// Answers don't grow old however long a pass takes.
		now := clocktesting.NewFakePassiveClock(time.Now())
		changed := make(chan struct{}, 10)
		process := func() *Reconciler {
			r := w.reconciler(w.c)
			r.Issuers = &issuers.Book{Clock: now, Changed: func(context.Context) { changed <- struct{}{} }}
			r.tunnel = "127.0.0.1:1"
			return r
		}
		pass := func(r *Reconciler) ctrl.Result {
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.hcp)})
			g.Expect(err).NotTo(HaveOccurred())
			return result
		}
		r := process()
		pass(r)
		g.Eventually(changed, time.Minute).Should(Receive())
		g.Expect(pass(r).RequeueAfter).To(BeNumerically("<=", 15*time.Second))
		g.Expect(condition(w.read(), "ValidIDPConfiguration")).To(And(HavePrefix("False IDPConfigurationError"), ContainSubstring("it can't be reached from the network of the hosted cluster")))

		r = process()
		r.tunnel = w.openTunnel()
		pass(r)
		g.Eventually(changed, time.Minute).Should(Receive())
		pass(r)
		g.Expect(condition(w.read(), "ValidIDPConfiguration")).To(HavePrefix("True IDPConfigurationValid"))
		config, server := &corev1.ConfigMap{}, &appsv1.Deployment{}
		key := client.ObjectKey{Namespace: ns, Name: "oauth-openshift"}
		g.Expect(w.c.Get(t.Context(), key, config)).To(Succeed())
		g.Expect(w.c.Get(t.Context(), key, server)).To(Succeed())
		g.Expect(config.Data["config.yaml"]).To(And(ContainSubstring("authorize: "+idp.URL+"/authorize"), ContainSubstring("token: "+idp.URL+"/token"),
			ContainSubstring("- mail"), ContainSubstring("challenge: true")))
		g.Expect(server.Spec.Template.Spec.Volumes).To(ContainElement(HaveField("Name", "idp-secret-0-client-secret")))
		revision := server.Generation

		// Another process of the operator, while the issuer is down, keeps what is known.
		idp.Close()
		r = process()
		r.tunnel = "127.0.0.1:1"
		pass(r)
		g.Eventually(changed, time.Minute).Should(Receive())
		pass(r)
		g.Expect(condition(w.read(), "ValidIDPConfiguration")).To(And(HavePrefix("False IDPConfigurationError"), ContainSubstring("is configured with what was known before")))
		g.Expect(w.c.Get(t.Context(), key, server)).To(Succeed())
		g.Expect(server.Generation).To(Equal(revision), "nobody loses the way to log in")
	})
}
