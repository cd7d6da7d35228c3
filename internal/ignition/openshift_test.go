package ignition

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/ignition/imagefiles"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/ignition/tools"
	"hcp.internal/platform/internal/ignition/tools/toolstest"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/release/releasetest"
	"hcp.internal/platform/internal/testenv"
)

// openShiftWorld is a world whose release is one of OpenShift, with what the control-plane-operator makes for it.
func openShiftWorld(t *testing.T, rel toolstest.Release) (w *world, image, gates string) {
	t.Helper()
	w = newWorld(t)
	rel.Version = "4.20.3"
	image = toolstest.Push(t, releasetest.New(t), rel)
	data := toolstest.Cluster()
	data[token.ConfigurationHashKey] = token.ConfigurationHash(nil)
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.hcp.Namespace, Name: token.MachineConfigServer}, Data: data})
	gates = filepath.Join(t.TempDir(), "99_feature-gate.yaml")
	if err := os.WriteFile(gates, []byte("apiVersion: config.openshift.io/v1\nkind: FeatureGate\nmetadata: {name: cluster}\nspec: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, image, gates
}

// patience is for what a whole process does on a busy machine, where four programs one after the other take their time.
const patience = 5 * time.Minute

func (w *world) openShiftReconciler(c client.WithWatch, work, gates string) *Reconciler {
	w.t.Helper()
	ports, err := testenv.FreePorts(2)
	if err != nil {
		w.t.Fatal(err)
	}
	r := w.reconciler(c)
	r.Releases, r.FeatureGates = release.NewRegistryProvider(release.Options{}), gates
	r.OpenShift = &tools.Generator{Work: work, Images: &imagefiles.Store{Root: filepath.Join(work, "images")}, SecurePort: ports[0], InsecurePort: ports[1]}
	return r
}

func (w *world) releaseInfo() *metav1.Condition {
	w.t.Helper()
	hcp := &hyperv1.HostedControlPlane{}
	if err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(w.hcp), hcp); err != nil {
		w.t.Fatal(err)
	}
	return conditions.Get(hcp.Status.Conditions, string(hyperv1.IgnitionServerValidReleaseInfo))
}

func TestOpenShift(t *testing.T) {
	t.Run("When a pool has an OpenShift release its tools should make the payload, once", func(t *testing.T) {
		g := NewWithT(t)
		w, image, gates := openShiftWorld(t, toolstest.Release{})
		s := w.token("", func(s *corev1.Secret) { s.Data[token.ReleaseKey] = []byte(image) })
		work := t.TempDir()
		r := w.openShiftReconciler(w.c, work, gates)
		_, err := w.pass(r, s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(w.read(s).Data[token.MessageKey])).To(Equal("Payload generated successfully"))
		p, ok := w.store.Lookup([]byte("first"), noon)
		g.Expect(ok).To(BeTrue())
		g.Expect(payload.Check(p.Data)).To(Succeed())
		g.Expect(w.releaseInfo()).To(HaveField("Status", metav1.ConditionTrue))
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error {
			again := w.openShiftReconciler(c, work, gates) // a process that has started again, and has no port to serve on but needs none
			again.OpenShift.(*tools.Generator).Time = time.Nanosecond
			_, err := w.pass(again, s)
			return err
		})
		g.Expect(string(w.read(s).Data[token.ReasonKey])).To(Equal("AsExpected"))
	})

	t.Run("When the cluster has changed since the token was made it should wait until they agree", func(t *testing.T) {
		g := NewWithT(t)
		w, image, gates := openShiftWorld(t, toolstest.Release{})
		s := w.token("", func(s *corev1.Secret) {
			s.Data[token.ReleaseKey] = []byte(image)
			s.Data[token.ClusterConfigKey] = []byte(token.ConfigurationHash(&hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{}}))
		})
		result, err := w.pass(w.openShiftReconciler(w.c, t.TempDir(), gates), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(retryInputs))
		got := w.read(s)
		g.Expect(string(got.Data[token.ReasonKey])).To(Equal("CloudConfigPending"))
		g.Expect(string(got.Data[token.MessageKey])).To(ContainSubstring("hash mismatch: the configuration of the cluster"))
	})

	t.Run("When the release lacks the tools it should say so on the control plane, too", func(t *testing.T) {
		g := NewWithT(t)
		w, image, gates := openShiftWorld(t, toolstest.Release{Tags: map[string]string{"machine-config-operator": ""}})
		s := w.token("", func(s *corev1.Secret) { s.Data[token.ReleaseKey] = []byte(image) })
		_, err := w.pass(w.openShiftReconciler(w.c, t.TempDir(), gates), s)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(w.read(s).Data[token.ReasonKey])).To(Equal("InvalidConfig"))
		g.Expect(w.releaseInfo()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", hyperv1.MissingReleaseImagesReason),
			HaveField("Message", ContainSubstring("machine-config-operator"))))
	})

	t.Run("When the whole process runs with the rights of the component a machine should get what it boots from", func(t *testing.T) {
		g := NewWithT(t)
		w, image, gates := openShiftWorld(t, toolstest.Release{})
		certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
		g.Expect(err).NotTo(HaveOccurred())
		dir := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), certPEM, 0o600)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "tls.key"), keyPEM, 0o600)).To(Succeed())
		ports, err := testenv.FreePorts(3)
		g.Expect(err).NotTo(HaveOccurred())
		addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
		// As the component of payloads grants them: less than is published.
		rights := w.withRights(filepath.Join("..", "controlplane", "ignitionserver", "assets", "role.yaml"),
			rbacv1.PolicyRule{APIGroups: []string{"hypershift.openshift.io"}, Resources: []string{"hostedcontrolplanes/status"}, Verbs: []string{"get", "patch", "update"}})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- run(ctx, rights, Options{Namespace: w.hcp.Namespace, Addr: addr, HealthAddr: "0", MetricsAddr: "0", WorkDir: dir, FeatureGateManifest: gates,
				CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"), securePort: ports[1], insecurePort: ports[2]}, prometheus.NewRegistry())
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
		get := func() (status int, body string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/ignition", nil)
			g.Expect(err).NotTo(HaveOccurred())
			req.Header.Set("Authorization", "Bearer "+base64.StdEncoding.EncodeToString([]byte("first")))
			resp, err := machine.Do(req)
			if err != nil {
				return 0, ""
			}
			defer resp.Body.Close()
			data, err := io.ReadAll(resp.Body)
			if err != nil {
				return 0, "" // as if there were no answer: whoever polls asks again
			}
			return resp.StatusCode, string(data)
		}
		s := w.token("", func(s *corev1.Secret) {
			bornAt(time.Now())(s)
			s.Data[token.ReleaseKey] = []byte(image)
		})
		w.list(s.Name)
		var body string
		g.Eventually(func() (status int) { status, body = get(); return status }).WithTimeout(patience).Should(Equal(200))
		g.Expect(payload.Check([]byte(body))).To(Succeed())
		g.Eventually(func() string { return w.read(s).Annotations[hyperv1.TokenSecretIgnitionReachedAnnotation] }).WithTimeout(patience).Should(Equal("True"))
		g.Expect(w.c.Delete(t.Context(), s)).To(Succeed())
		g.Eventually(func() int { status, _ := get(); return status }).WithTimeout(patience).Should(Equal(511))
	})
}
