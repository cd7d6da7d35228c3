package connect

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
)

func TestTakeNames(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
		fail string
	}{
		"When the name is an argument it should be taken":           {args: []string{"cluster", "demo"}, want: "demo"},
		"When it is a flag it should be, as ever":                   {args: []string{"cluster", "--name", "demo"}, want: "demo"},
		"When both say the same it should be fine":                  {args: []string{"cluster", "demo", "--name=demo"}, want: "demo"},
		"When they differ it should ask for one":                    {args: []string{"cluster", "demo", "--name=prod"}, fail: "give the name once"},
		"When there are two names it should refuse them":            {args: []string{"cluster", "demo", "prod"}, fail: "at most 1 arg"},
		"When a command takes arguments of its own it should go on": {args: []string{"exec", "a", "b"}, want: "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := ""
			root := &cobra.Command{Use: "root", SilenceErrors: true, SilenceUsage: true}
			cluster := &cobra.Command{Use: "cluster", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return nil }}
			flag := cluster.Flags().String("name", "", "")
			cluster.RunE = func(*cobra.Command, []string) error { got = *flag; return nil }
			other := &cobra.Command{Use: "exec", Args: cobra.ArbitraryArgs, RunE: func(_ *cobra.Command, args []string) error { got = args[0] + args[1]; return nil }}
			other.Flags().String("name", "", "")
			root.AddCommand(cluster, other)
			TakeNames(root)
			root.SetArgs(tc.args)
			err := root.ExecuteContext(t.Context())
			if tc.fail != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fail)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
