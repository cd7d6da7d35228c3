package connect

import (
	"errors"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
)

func TestUnknownCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"When a command is almost one that there is it should name that":        {[]string{"rotate", "authoritys"}, `unknown command "authoritys" for "x rotate": use authorities`},
		"When it is none it should list those that there are":                   {[]string{"rotate", "certificates"}, `unknown command "certificates" for "x rotate": use authorities, keys`},
		"When there are too many it should say how to list them":                {[]string{"frobnicate"}, "unknown command \"frobnicate\" for \"x\": `x --help` lists those that there are"},
		"When it has a flag its name should be what is wrong":                   {[]string{"rotate", "authoritys", "demo", "--dry-run"}, `unknown command "authoritys" for "x rotate": use authorities`},
		"When a flag comes before the command it should say where flags stand":  {[]string{"rotate", "--dry-run", "keys"}, "unknown flag: --dry-run: flags stand behind the command that they belong to; `x rotate --help` lists the commands"},
		"When a command does not have a flag it should say that alone":          {[]string{"rotate", "keys", "--nope"}, "unknown flag: --nope"},
		"When a group takes arguments it should say about them what it did say": {[]string{"own", "a"}, "its own words"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			help := func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			root := &cobra.Command{Use: "x", Args: cobra.NoArgs, RunE: help, SilenceErrors: true, SilenceUsage: true}
			rotate := &cobra.Command{Use: "rotate", Args: cobra.NoArgs, RunE: help}
			own := &cobra.Command{Use: "own", RunE: help, Args: func(_ *cobra.Command, args []string) error {
				if len(args) > 0 {
					return errors.New("its own words")
				}
				return nil
			}}
			own.AddCommand(&cobra.Command{Use: "child", RunE: help})
			rotate.AddCommand(&cobra.Command{Use: "authorities", RunE: help}, &cobra.Command{Use: "keys", RunE: help}, &cobra.Command{Use: "old", Hidden: true, RunE: help})
			root.AddCommand(rotate, own)
			for c := 'a'; c <= 'm'; c++ {
				root.AddCommand(&cobra.Command{Use: string(c) + "-another-command", RunE: help})
			}
			Finish(root)
			root.SetOut(io.Discard)
			root.SetArgs(tc.args)
			g.Expect(root.Execute()).To(MatchError(tc.want))
			root.SetArgs([]string{"rotate"})
			g.Expect(root.Execute()).To(Succeed())
		})
	}
}
