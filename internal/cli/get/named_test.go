package get

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/testenv"
)

func TestNotWell(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	c, ns := env.Client(t, connect.Scheme()), env.Namespace(t)
	hc := testenv.HostedCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), hc)).To(Succeed())
	hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.HostedClusterAvailable, Status: metav1.ConditionTrue, Reason: hyperv1.AsExpectedReason, LastTransitionTime: metav1.Now()}}
	g.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
	management := filepath.Join(t.TempDir(), "management")
	g.Expect(os.WriteFile(management, env.Kubeconfig(t), 0o600)).To(Succeed())
	run := func(args ...string) (stdout, stderr string, err error) {
		cmd := Command()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		var out, notes bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&notes)
		cmd.SetArgs(append([]string{"clusters", "--kubeconfig", management, "-n", ns, "--not-well"}, args...))
		err = cmd.ExecuteContext(t.Context())
		return out.String(), notes.String(), err
	}
	for name, tc := range map[string]struct {
		args       []string
		out, notes string
	}{
		"When the object that was named is well it should print no line, and say so to people": {
			args: []string{"demo"}, notes: "clusters: demo needs no attention\n",
		},
		"When the object that was named is well it should print no heading either": {
			args: []string{"demo", "-o", "wide"}, notes: "clusters: demo needs no attention\n",
		},
		"When the object that was named is well it should print no name":   {args: []string{"demo", "-o", "name"}},
		"When the object that was named is well it should be null in JSON": {args: []string{"demo", "-o", "json"}, out: "null\n"},
		"When the object that was named is well it should be null in YAML": {args: []string{"demo", "-o", "yaml"}, out: "null\n"},
		"When none was named and all are well it should be an empty list":  {args: []string{"-o", "json"}, out: "{\n  \"items\": []\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, notes, err := run(tc.args...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(Equal(tc.out))
			g.Expect(notes).To(Equal(tc.notes))
		})
	}
	t.Run("When the object that was named does not exist it should end with the code for that", func(t *testing.T) {
		_, _, err := run("other", "-o", "json")
		NewWithT(t).Expect(exit.Code(err)).To(Equal(exit.NotFound))
	})
}
