package clitest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/describe"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/follow"
	"hcp.internal/platform/internal/cli/get"
	"hcp.internal/platform/internal/cli/why"
)

// call runs a command of the program with its manners.
func call(t *testing.T, f connect.Flags, args ...string) (string, error) {
	t.Helper()
	return execute(t, append(args, "--kubeconfig", f.Kubeconfig)...)
}

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := &cobra.Command{Use: "hypershift", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(get.Command(), describe.Command(), follow.Events(), follow.Logs(), create.Command(), why.Command(), why.Timeline())
	connect.Finish(root)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestReading(t *testing.T) {
	f, c, env := flags(t)
	g := NewWithT(t)
	crds, err := config.PackageOperatorCRDs()
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, crds...)
	o := clusterOptions(f, hyperv1.NonePlatform, env.Namespace(t))
	o.PullSecret, o.APIServerAddress = []byte(`{"auths":{}}`), "10.0.0.1"
	g.Expect(create.Cluster(t.Context(), o, &bytes.Buffer{})).To(Succeed())
	hc := &hyperv1.HostedCluster{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, hc)).To(Succeed())
	hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.ValidReleaseImage, Status: metav1.ConditionFalse, Reason: "NotFound", Message: "no such image", LastTransitionTime: metav1.Now()}}
	g.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())

	t.Run("When clusters are listed it should say how they are and why", func(t *testing.T) {
		g := NewWithT(t)
		out, err := call(t, f, "get", "clusters", "-n", o.Namespace)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(MatchRegexp(`NAME +HEALTH +VERSION +WORKERS +AGE +CAUSE\n` + o.Name + ` +Blocked +- +0/0 +\S+ +no such image\n`))
		out, err = call(t, f, "get", "clusters", "-A", "-o", "name")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(ContainSubstring("hostedcluster.hypershift.openshift.io/" + o.Name + "\n"))
	})
	t.Run("When scripts read it should be JSON with health and cause", func(t *testing.T) {
		g := NewWithT(t)
		out, err := call(t, f, "get", "cluster", o.Name, "-n", o.Namespace, "-o", "json")
		g.Expect(err).NotTo(HaveOccurred())
		item := get.Item{}
		g.Expect(json.Unmarshal([]byte(out), &item)).To(Succeed())
		g.Expect(item.Finding.Health).To(BeEquivalentTo("Blocked"))
		g.Expect(item.Details).To(HaveKeyWithValue("platform", "None"))
	})
	t.Run("When a named object isn't there it should end with its code", func(t *testing.T) {
		g := NewWithT(t)
		for _, args := range [][]string{
			{"get", "cluster", "other"}, {"get", "nodepool", "other"}, {"get", "machines", "--cluster", "other"}, {"get", "nodepools", "--cluster", "other"}, {"why", "hc/other"}, {"timeline", "other"}, {"describe", "other"}, {"events", "other"}, {"logs", "etcd", "--cluster", "other"},
			{"logs", "etcd", "--cluster", o.Name},
		} {
			_, err := call(t, f, append(args, "-n", o.Namespace)...)
			g.Expect(exit.Code(err)).To(Equal(exit.NotFound), "%v: %v", args, err)
		}
	})
	t.Run("When pools, machines, packages and rollouts are listed it should succeed", func(t *testing.T) {
		g := NewWithT(t)
		for _, args := range [][]string{{"get", "machines", "-A"}, {"get", "packages", "-A"}, {"get", "rollouts"}} {
			_, err := call(t, f, args...)
			g.Expect(err).NotTo(HaveOccurred(), "%v", args)
		}
		out, err := call(t, f, "get", "nodepools", "-n", o.Namespace, "-o", "wide")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(ContainSubstring(o.Name))
	})
	t.Run("When a cluster is described it should show what is not well", func(t *testing.T) {
		g := NewWithT(t)
		out, err := call(t, f, "describe", o.Name, "-n", o.Namespace)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(HavePrefix("HostedCluster " + o.Namespace + "/" + o.Name + "  (None)  Blocked: no such image"))
		g.Expect(out).To(ContainSubstring("it has no components yet"))
	})
	t.Run("When a shell completes what why is asked about it should offer kinds, and names behind them", func(t *testing.T) {
		g := NewWithT(t)
		for _, tc := range []struct {
			words []string
			want  string
		}{
			{[]string{"why", ""}, "hostedcluster/\nnodepool/\n"},
			{[]string{"why", "hc/"}, "hc/" + o.Name + "\n"},
			{[]string{"why", "nodepool", ""}, o.Name + "\n"},
			{[]string{"why", "hc/" + o.Name, ""}, ":4\n"},
			{[]string{"why", "secret/"}, ":4\n"},
			{[]string{"timeline", ""}, o.Name + "\n"},
			{[]string{"timeline", "np/"}, "np/" + o.Name + "\n"},
		} {
			out, err := execute(t, slices.Concat([]string{"__complete", tc.words[0], "--kubeconfig", f.Kubeconfig, "-n", o.Namespace}, tc.words[1:])...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(HavePrefix(tc.want), "%v", tc.words)
		}
	})
	t.Run("When events are asked for it should show those of the cluster alone", func(t *testing.T) {
		g := NewWithT(t)
		for name, object := range map[string]string{"mine": o.Name, "other": "other"} {
			g.Expect(c.Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name}, Type: corev1.EventTypeWarning, Reason: "Refused",
				Message: "of " + name, LastTimestamp: metav1.Now(), InvolvedObject: corev1.ObjectReference{Kind: "HostedCluster", Namespace: o.Namespace, Name: object}})).To(Succeed())
		}
		out, err := call(t, f, "events", o.Name, "-n", o.Namespace, "--types", "Warning")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(And(ContainSubstring("HostedCluster/"+o.Name+"  of mine"), Not(ContainSubstring("of other"))))
		_, err = call(t, f, "events", o.Name, "-n", o.Namespace, "--types", "warning")
		g.Expect(err).To(MatchError(`--types warning: must be of Warning and Normal, with commas between them`))
	})
}

func TestDryRun(t *testing.T) {
	f, c, env := flags(t)
	namespace := env.Namespace(t)
	args := []string{"create", "cluster", "none", "dry", "-n", namespace, "--release-image", "r:1", "--external-api-server-address", "10.0.0.1", "--pull-secret", pullSecretFile(t)}
	for _, how := range []string{"client", "server"} {
		t.Run("When a cluster is created as a dry run of the "+how+" it should say what would be made and make nothing", func(t *testing.T) {
			g := NewWithT(t)
			out, err := call(t, f, append(args, "--dry-run="+how)...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(And(ContainSubstring("would create HostedCluster "+namespace+"/dry"), HaveSuffix("Nothing has been changed.\n")))
			err = c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "dry"}, &hyperv1.HostedCluster{})
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
			secrets := &corev1.SecretList{}
			g.Expect(c.List(t.Context(), secrets, client.InNamespace(namespace))).To(Succeed())
			g.Expect(secrets.Items).To(BeEmpty())
		})
	}
	t.Run("When it is there already a dry run should say that nothing would change, and -o name should not change the verb", func(t *testing.T) {
		g := NewWithT(t)
		out, err := call(t, f, append(args, "-o", "name")...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(Equal("hostedcluster.hypershift.openshift.io/dry\n"))
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "dry"}, &hyperv1.HostedCluster{})).To(Succeed())
		out, err = call(t, f, append(args, "--dry-run=server")...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).NotTo(ContainSubstring("would"))
	})
}

func pullSecretFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pull-secret.json")
	if err := os.WriteFile(path, []byte(`{"auths":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
