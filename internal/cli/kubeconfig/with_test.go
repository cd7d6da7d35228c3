package kubeconfig

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"
	"hcp.internal/platform/internal/testenv"
)

func TestMerge(t *testing.T) {
	demo, err := renamed("clusters-demo", admin(t, "https://demo:6443"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Run("When there is no kubeconfig yet it should make one that only its owner can read", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "kube", "config")
		names, err := mergeInto(file, demo)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names).To(ConsistOf("clusters-demo"))
		info, err := os.Stat(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode()).To(Equal(fs.FileMode(0o600)))
		config, err := clientcmd.LoadFromFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.CurrentContext).To(Equal("clusters-demo"))
	})
	t.Run("When there are others it should leave them and the current context alone, and replace its own", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "config")
		g.Expect(os.WriteFile(file, admin(t, "https://mine:6443"), 0o600)).To(Succeed())
		for _, server := range []string{"https://old:6443", "https://new:6443"} {
			raw, err := renamed("clusters-demo", admin(t, server))
			g.Expect(err).NotTo(HaveOccurred())
			_, err = mergeInto(file, raw)
			g.Expect(err).NotTo(HaveOccurred())
		}
		config, err := clientcmd.LoadFromFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.CurrentContext).To(Equal("admin"))
		g.Expect(config.Clusters["cluster"].Server).To(Equal("https://mine:6443"))
		g.Expect(config.Clusters["clusters-demo"].Server).To(Equal("https://new:6443"))
		g.Expect(config.Contexts).To(HaveLen(2))
	})
	t.Run("When the file is none it should be left as it is", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "config")
		g.Expect(os.WriteFile(file, []byte("hunter2: ["), 0o600)).To(Succeed())
		_, err := mergeInto(file, demo)
		g.Expect(err).To(MatchError(And(ContainSubstring("is not a kubeconfig"), Not(ContainSubstring("hunter2")))))
		g.Expect(os.ReadFile(file)).To(BeEquivalentTo("hunter2: ["))
	})
	t.Run("When the kubeconfig is a link it should write what it leads to", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(dir, "real"), admin(t, "https://mine:6443"), 0o600)).To(Succeed())
		g.Expect(os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, "link"))).To(Succeed())
		t.Setenv("KUBECONFIG", filepath.Join(dir, "link"))
		g.Expect(mergedFile()).To(HaveSuffix("/real"))
	})
}

func TestLeased(t *testing.T) {
	env := testenv.Start(t)
	raw := env.Kubeconfig(t)
	t.Run("When a credential is to end it should be a token of an administrator with an end, and no key", func(t *testing.T) {
		g := NewWithT(t)
		var out []byte
		for range 2 { // the ServiceAccount is there the second time
			var until time.Time
			var err error
			out, until, err = Leased(t.Context(), raw, time.Hour)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(until).To(BeTemporally("~", time.Now().Add(time.Hour), 10*time.Minute))
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(out)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.KeyData).To(BeEmpty())
		g.Expect(config.CertData).To(BeEmpty())
		g.Eventually(func() (string, error) { return whoAmI(t.Context(), config) }).WithTimeout(time.Minute).Should(Equal("system:serviceaccount:kube-system:hypershift-cli"))
	})
	t.Run("When the time is too short it should say how long it has to be", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(CheckLease(time.Minute)).To(MatchError(ContainSubstring("10m")))
		g.Expect(CheckLease(0)).To(Succeed())
	})
}

func whoAmI(ctx context.Context, config *rest.Config) (string, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := c.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

func TestConnect(t *testing.T) {
	env := testenv.Start(t)
	g := NewWithT(t)
	c := env.Client(t, connect.Scheme())
	ns := env.Namespace(t)
	management := filepath.Join(t.TempDir(), "management")
	g.Expect(os.WriteFile(management, env.Kubeconfig(t), 0o600)).To(Succeed())
	hc := publish(t, c, ns)
	run := func(args ...string) (string, error) {
		cmd := ConnectCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{"--kubeconfig", management, "-n", ns}, args...))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	t.Run("When a command is given it should see the kubeconfig, which goes with it", func(t *testing.T) {
		g := NewWithT(t)
		out, err := run(hc, "--", "sh", "-c", `grep -c hunter2 "$KUBECONFIG"; stat -c %a "$KUBECONFIG"; echo "$KUBECONFIG" >&2`)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(HavePrefix("1\n600\n"))
		g.Expect(filepath.Join("/", out[len("1\n600\n"):len(out)-1])).NotTo(BeAnExistingFile())
	})
	t.Run("When the command fails it should end with its code", func(t *testing.T) {
		_, err := run(hc, "--", "sh", "-c", "exit 7")
		g := NewWithT(t)
		g.Expect(exit.Code(err)).To(Equal(7))
		g.Expect(exit.Silent(err)).To(BeTrue())
	})
	t.Run("When there is no such hosted cluster it should say so", func(t *testing.T) {
		_, err := run("other", "--", "true")
		NewWithT(t).Expect(exit.Code(err)).To(Equal(exit.NotFound))
	})
	t.Run("When the dashes are forgotten it should say how to write it", func(t *testing.T) {
		_, err := run(hc, "kubectl")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("connect demo -- COMMAND")))
	})
	t.Run("When no pod of the API server is ready it should say so instead of forwarding", func(t *testing.T) {
		_, err := run(hc, "--port-forward", "--", "true")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("none of its pods is ready")))
	})
}

// publish makes a HostedCluster with a kubeconfig, and returns its name.
func publish(t *testing.T, c client.Client, ns string) string {
	t.Helper()
	g := NewWithT(t)
	hc := hostedclustertest.Example(ns, "registry.example.com/release:1", func(hc *hyperv1.HostedCluster) { hc.Name = "demo" })
	g.Expect(c.Create(t.Context(), hc)).To(Succeed())
	hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"}
	g.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
	content := secret("demo", admin(t, "https://demo:6443"))
	content.Namespace = ns
	g.Expect(c.Create(t.Context(), content)).To(Succeed())
	return hc.Name
}

func TestForwarded(t *testing.T) {
	g := NewWithT(t)
	raw, err := (&Forwarding{port: 40123}).Kubeconfig(admin(t, "https://api.demo.example.com:6443"))
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.Load(raw)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*config.Clusters["cluster"]).To(BeComparableTo(clientcmdapi.Cluster{Server: "https://127.0.0.1:40123", TLSServerName: "api.demo.example.com", Extensions: config.Clusters["cluster"].Extensions}))
}
