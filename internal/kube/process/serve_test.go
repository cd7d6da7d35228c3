package process

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	certutil "k8s.io/client-go/util/cert"

	"hcp.internal/platform/internal/testenv"
)

func TestLoopback(t *testing.T) {
	for name, tc := range map[string]struct{ address, want, refused string }{
		"When there is no address it should serve no profiles":         {address: ""},
		"When the address is 0 it should serve none, either":           {address: "0"},
		"When only a port is given it should take this host":           {address: ":6060", want: "127.0.0.1:6060"},
		"When the host is this one it should stay":                     {address: "[::1]:6060", want: "[::1]:6060"},
		"When the name is this host's it should stay":                  {address: "localhost:6060", want: "localhost:6060"},
		"When all hosts could ask it should say what to write instead": {address: "0.0.0.0:6060", refused: `--pprof-addr "0.0.0.0:6060": profiles are served to this host alone; write :6060`},
		"When a name could be any host's it should be refused":         {address: "example.com:6060", refused: "this host alone"},
		"When there is no port it should say what is missing":          {address: "127.0.0.1", refused: "must be host:port or :port"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := loopback(tc.address)
			if tc.refused != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.refused)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestMetricsOptions(t *testing.T) {
	t.Run("When a certificate is given for plain HTTP it should be refused", func(t *testing.T) {
		_, err := Serve{Metrics: ":8080", Secure: MetricsSecurity{Certificate: "/x"}}.metrics()
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("give --metrics-secure, too")))
	})
	t.Run("When the certificate isn't there it should be an error, and no other certificate", func(t *testing.T) {
		_, err := Serve{Metrics: ":8080", Secure: MetricsSecurity{On: true, Certificate: t.TempDir()}}.metrics()
		NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("--metrics-cert-path"), ContainSubstring("tls.crt"))))
	})
	t.Run("When nothing is said it should serve plain HTTP to everybody, as published", func(t *testing.T) {
		g := NewWithT(t)
		o, err := Serve{Metrics: ":8080"}.metrics()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.SecureServing).To(BeFalse())
		g.Expect(o.FilterProvider).To(BeNil())
	})
}

// TestSecureMetrics asks a process for its metrics as several ServiceAccounts, with a real API server that decides who they are and what they may.
func TestSecureMetrics(t *testing.T) {
	g, env := NewWithT(t), testenv.Start(t)
	ns := env.Namespace(t)
	c := env.Client(t, kubescheme.Scheme)
	token := func(name string) string {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		g.Expect(c.Create(t.Context(), account)).To(Succeed())
		set, err := kubernetes.NewForConfig(env.Config)
		g.Expect(err).NotTo(HaveOccurred())
		request, err := set.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		return request.Status.Token
	}
	operator, prometheus, stranger := token("operator"), token("prometheus"), token("stranger")
	bind := func(role, account string) {
		g.Expect(c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: ns + "-" + account}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: account}},
		})).To(Succeed())
	}
	// What `hypershift install --metrics-secure` gives them.
	g.Expect(c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ns + "-operator"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}})).To(Succeed())
	g.Expect(c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ns + "-reader"}, Rules: []rbacv1.PolicyRule{
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}})).To(Succeed())
	bind(ns+"-operator", "operator")
	bind(ns+"-reader", "prometheus")

	const host = "operator.hypershift.svc"
	folder := t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)).To(Succeed())
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)

	cfg := *env.Config
	cfg.TLSClientConfig.CertData, cfg.TLSClientConfig.KeyData, cfg.BearerToken = nil, nil, operator
	ports, err := testenv.FreePorts(1)
	g.Expect(err).NotTo(HaveOccurred())
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	mgr, err := NewManager(&cfg, Options{
		Scheme: kubescheme.Scheme, Serve: Serve{Metrics: address, Secure: MetricsSecurity{On: true, Certificate: folder}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	go func() { _ = mgr.Start(t.Context()) }()

	scraper := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: host}, DisableKeepAlives: true}}
	get := func(scheme, token string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+address+"/metrics", nil)
		g.Expect(err).NotTo(HaveOccurred())
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := scraper.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		return resp.StatusCode, string(body)
	}
	g.Eventually(func() int { code, _ := get("https", prometheus); return code }).Should(Equal(http.StatusOK), "When the reader may it should get the metrics")
	_, body := get("https", prometheus)
	g.Expect(body).To(ContainSubstring("go_goroutines"))
	code, body := get("https", "")
	g.Expect(code).To(Equal(http.StatusUnauthorized), "When nobody says who asks it should refuse")
	g.Expect(body).NotTo(ContainSubstring("go_goroutines"))
	code, body = get("https", "not-a-token")
	g.Expect(code).NotTo(Equal(http.StatusOK), "When the token is none it should refuse; the library takes it for an error of its own, 500")
	g.Expect(body).NotTo(ContainSubstring("go_goroutines"))
	code, body = get("https", stranger)
	g.Expect(code).To(Equal(http.StatusForbidden), "When the account may not read metrics it should refuse")
	g.Expect(body).NotTo(ContainSubstring("go_goroutines"))
	code, _ = get("http", prometheus)
	g.Expect(code).NotTo(Equal(http.StatusOK), "When the connection is plain it should refuse")
}
