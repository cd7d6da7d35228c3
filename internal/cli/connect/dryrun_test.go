package connect

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
)

func TestCovers(t *testing.T) {
	have := map[string]any{"spec": map[string]any{"a": "x", "n": int64(3), "list": []any{map[string]any{"name": "one", "defaulted": true}, "two"}}, "extra": true}
	for name, tc := range map[string]struct {
		want map[string]any
		same bool
	}{
		"When all fields are as they should be it should be covered":    {map[string]any{"spec": map[string]any{"a": "x", "n": int64(3)}}, true},
		"When elements of a list have defaults it should be covered":    {map[string]any{"spec": map[string]any{"list": []any{map[string]any{"name": "one"}, "two"}}}, true},
		"When a list is to be shorter it should change":                 {map[string]any{"spec": map[string]any{"list": []any{"two"}}}, false},
		"When a value is another it should change":                      {map[string]any{"spec": map[string]any{"a": "y"}}, false},
		"When a field isn't there it should change":                     {map[string]any{"spec": map[string]any{"b": "y"}}, false},
		"When an empty map is to be where there is none it should stay": {map[string]any{"labels": map[string]any{}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(covers(have, tc.want)).To(Equal(tc.same))
		})
	}
}

func TestDryRunFlag(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want DryRun
		fail bool
	}{
		"When it isn't given it should be off":                 {nil, NoDryRun, false},
		"When it has no value it should be the client's":       {[]string{"--dry-run"}, DryRunClient, false},
		"When it was written as a switch it should be taken":   {[]string{"--dry-run=true"}, DryRunClient, false},
		"When it is the server's it should be the server's":    {[]string{"--dry-run=server"}, DryRunServer, false},
		"When it is turned off it should be off":               {[]string{"--dry-run=none"}, NoDryRun, false},
		"When the value is unknown it should name those known": {[]string{"--dry-run=maybe"}, NoDryRun, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var d DryRun
			cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }, SilenceErrors: true, SilenceUsage: true}
			d.AddFlag(cmd)
			cmd.SetArgs(append([]string{}, tc.args...))
			err := cmd.ExecuteContext(t.Context())
			if tc.fail {
				g.Expect(err).To(MatchError(ContainSubstring("use client, server or none")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(d).To(Equal(tc.want))
		})
	}
}

func TestContextNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"apiVersion": "v1", "kind": "Config", "current-context": "own", "contexts": [
  {"name": "own", "context": {"cluster": "c", "namespace": "team"}}, {"name": "default", "context": {"cluster": "c", "namespace": "default"}}, {"name": "none", "context": {"cluster": "c"}}]}`
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"When the context has a namespace it should be used":               {nil, "team"},
		"When another context has the word that tools write it should not": {[]string{"--context", "default"}, "clusters"},
		"When the context has none it should be the published one":         {[]string{"--context", "none"}, "clusters"},
		"When the flag is given it should win":                             {[]string{"-n", "mine"}, "mine"},
		"When all namespaces are asked for it should stay out of it":       {[]string{"-A"}, "clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var flags Flags
			namespace, all, got := DefaultNamespace, false, ""
			cmd := &cobra.Command{Use: "x", Annotations: map[string]string{QuietNamespace: "true"}, RunE: func(*cobra.Command, []string) error { got = namespace; return nil }}
			cmd.Flags().StringVarP(&namespace, "namespace", "n", namespace, "")
			cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "")
			cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
			flags.AddFlags(cmd.Flags())
			Finish(cmd)
			cmd.SetArgs(append([]string{"--kubeconfig", file}, tc.args...))
			g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
