package main

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/testenv"
)

// absent are calls about an object that is not there, one for each command that is about an object that has to be.
var absent = []struct{ command, args string }{
	{"hypershift capi migrate", "nope --dry-run"},
	{"hypershift capi migrate status", "nope"},
	{"hypershift connect", "nope -- true"},
	{"hypershift create kubeconfig", "nope"},
	{"hypershift create nodepool none", "workers --cluster-name nope"},
	{"hypershift describe", "nope"},
	{"hypershift destroy cluster none", "nope"},
	{"hypershift destroy nodepool", "nope"},
	{"hypershift events", "nope"},
	{"hypershift first-failure", "nope"},
	{"hypershift get certificates", "nope"},
	{"hypershift get clusters", "nope"},
	{"hypershift get machines", "--cluster nope"},
	{"hypershift get nodepools", "--cluster nope"},
	{"hypershift get packages", "nope"},
	{"hypershift get rollouts", "nope"},
	{"hypershift hibernate", "nope"},
	{"hypershift logs", "etcd --cluster nope"},
	{"hypershift rollout history", "hcpkg/nope"},
	{"hypershift rollout pause", "hcpkg/nope"},
	{"hypershift rollout plan", "hcpkg/nope"},
	{"hypershift rollout resume", "hcpkg/nope"},
	{"hypershift rollout status", "hcpkg/nope"},
	{"hypershift rollout undo", "hcpkg/nope"},
	{"hypershift rotate authorities", "nope"},
	{"hypershift timeline", "nope"},
	{"hypershift wake", "nope"},
	{"hypershift why", "hc/nope"},
}

// otherwise are commands, by the beginning of their names, that take a name and are not in the list above, and why.
var otherwise = map[string]string{
	"hypershift capi proxy": "it is about all objects", "hypershift capi": "the name says a namespace", "hypershift capi verify": "the name says a namespace",
	"hypershift clone": "a backup is looked for first", "hypershift restore": "a backup is looked for first", "hypershift create backup": "a bucket is looked at first",
	"hypershift create schedule": "a bucket is looked at first", "hypershift create oadp": "it makes what is named", "hypershift create cluster": "it makes what is named",
	"hypershift create nodepool": "as for platform None", "hypershift destroy cluster": "as for platform None", "hypershift create bastion": "it is in an account",
	"hypershift create infra": "it is in an account", "hypershift create iam": "it is in an account", "hypershift destroy bastion": "it is in an account", "hypershift destroy infra": "it is in an account",
	"hypershift destroy iam": "it is in an account", "hypershift console-logs": "it is in an account", "hypershift dump": "it writes what there is", "hypershift etcd recover": "it asks for a snapshot first",
	"hypershift get backups": "a technology preview", "hypershift upgrade preview": "it asks for an image first", "hypershift sizing": "it takes a file",
	"kubectl package": "rollouts are those of hypershift; the rest is about packages",
}

// TestAbsent: what scripts rely on is the same everywhere.
func TestAbsent(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	crds, err := config.PackageOperatorCRDs()
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, crds...)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(path, env.Kubeconfig(t), 0o600)).To(Succeed())
	t.Setenv("KUBECONFIG", path)
	for _, a := range absent {
		t.Run("When "+a.command+" is about what is not there it should say so, and end with its code", func(t *testing.T) {
			g := NewWithT(t)
			args := append(strings.Fields(a.command)[1:], strings.Fields(a.args)...)
			err := run(t.Context(), "hypershift", args)
			g.Expect(err).To(MatchError(And(ContainSubstring("nope"), Or(ContainSubstring("not found"), ContainSubstring("there is no")))))
			g.Expect(exit.Code(err)).To(Equal(exit.NotFound))
		})
	}
	t.Run("When a command takes a name it should be in one of the lists", func(t *testing.T) {
		everyCommand(func(cmd *cobra.Command) {
			path := cmd.CommandPath()
			named := takesArguments(cmd) || cmd.Flags().Lookup("name") != nil || cmd.Flags().Lookup("cluster") != nil
			if len(cmd.Commands()) > 0 && cmd.RunE == nil || flagOf(cmd, "kubeconfig") == nil || !named {
				return
			}
			tried := slices.ContainsFunc(absent, func(a struct{ command, args string }) bool { return a.command == path })
			excused := false
			for beginning := range otherwise {
				excused = excused || strings.HasPrefix(path, beginning)
			}
			NewWithT(t).Expect(tried || excused).To(BeTrue(), path)
		})
	})
}

func TestTimeIsUp(t *testing.T) {
	t.Run("When the API server does not answer in time a command should end as timeout does", func(t *testing.T) {
		g := NewWithT(t)
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = silent.Close() })
		path := filepath.Join(t.TempDir(), "kubeconfig")
		config := `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}], users: [{name: x, user: {}}], ` +
			`clusters: [{name: x, cluster: {server: "http://` + silent.Addr().String() + `"}}]}`
		g.Expect(os.WriteFile(path, []byte(config), 0o600)).To(Succeed())
		for _, args := range [][]string{{"get", "clusters"}, {"describe", "demo"}, {"why", "hc/demo"}} {
			err := run(t.Context(), "hypershift", append(args, "--kubeconfig", path, "--request-timeout", "500ms"))
			g.Expect(exit.Code(err)).To(Equal(exit.TimedOut), "%v: %v", args, err)
		}
	})
}
