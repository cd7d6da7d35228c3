package hostedcluster

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hcp.internal/platform/internal/hostedcluster/sources"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/hostedcluster/status"
)

var update = flag.Bool("update", os.Getenv("UPDATE") == "true", "rewrite the golden files")

// TestGolden compares every object that a plan makes with testdata/<case>/<kind>_<name>.yaml.
func TestGolden(t *testing.T) {
	scheme, err := NewScheme()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, obs := range map[string]*state.Observed{
		"none": statetest.Seen(),
		"local-full": statetest.Seen(func(obs *state.Observed) {
			s := &obs.HC.Spec
			s.Platform.Type = hyperv1.LocalPlatform
			s.ControllerAvailabilityPolicy = hyperv1.SingleReplica
			s.SSHKey.Name = "ssh"
			s.AuditWebhook = &corev1.LocalObjectReference{Name: "audit"}
			s.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "ca"}
			s.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "key1"}}}
			s.KubeAPIServerDNSName = "api.example.com"
			obs.HC.Labels = map[string]string{"api.openshift.com/id": "1", "team": "a"}
			obs.OperatorLabels = map[string]string{state.LabelCustomKubeconfig: "true"}
			obs.HCP = &hyperv1.HostedControlPlane{}
			obs.Published = state.PublishedSecrets{Kubeconfig: []byte("admin"), Custom: []byte("custom"), Existing: map[string]bool{}, Foreign: map[string]bool{}}
			for key, content := range map[sources.Key]map[string][]byte{
				{Kind: sources.Secret, Name: "ssh"}:   {"id_rsa.pub": []byte("ssh-ed25519 AAAA")},
				{Kind: sources.Secret, Name: "audit"}: {"webhook-kubeconfig": []byte("kind: Config\n")},
				{Kind: sources.Secret, Name: "key1"}:  {"key": []byte("0123456789abcdef0123456789abcdef")},
				{Kind: sources.ConfigMap, Name: "ca"}: {"ca-bundle.crt": []byte("PEM")},
			} {
				obs.Sources[key] = sources.Object{Data: content}
			}
		}),
	} {
		t.Run("When the cluster is "+name+" it should render the same objects as before", func(t *testing.T) {
			g := NewWithT(t)
			p := planFor(obs, status.Set(obs, statetest.Noon), statetest.Noon, options{})
			g.Expect(p.err).NotTo(HaveOccurred())
			dir := filepath.Join("testdata", name)
			written := map[string]bool{}
			for _, s := range p.steps {
				g.Expect(s.Err).NotTo(HaveOccurred(), s.Name)
				for _, obj := range s.Apply {
					compare(g, scheme, dir, obj, written)
				}
			}
			files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
			g.Expect(err).NotTo(HaveOccurred())
			for _, f := range files {
				if written[f] {
					continue
				}
				if *update {
					g.Expect(os.Remove(f)).To(Succeed())
				} else {
					t.Errorf("%s is no longer rendered; run the test with -update", f)
				}
			}
		})
	}
}

func compare(g Gomega, scheme *runtime.Scheme, dir string, obj client.Object, written map[string]bool) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	g.Expect(err).NotTo(HaveOccurred())
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	got, err := yaml.Marshal(obj)
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(dir, strings.ToLower(gvk.Kind)+"_"+obj.GetName()+".yaml")
	written[file] = true
	if *update {
		g.Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		g.Expect(os.WriteFile(file, got, 0o644)).To(Succeed())
		return
	}
	want, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred(), "run the test with -update")
	g.Expect(string(got)).To(Equal(string(want)), file)
}
