package supporttest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hcp.internal/platform/internal/support"
)

// Flags fails for a flag of a tree of commands that the table lacks or that is not as the table says, and for a line of the table that is about no
// flag. What the table calls refused must be declared so that it is refused, see internal/cli/refuse, and nothing else may. With SUPPORT_FLAGS set,
// the flags that are missing are printed as lines for the table.
func Flags(t *testing.T, program string, root *cobra.Command) {
	t.Helper()
	seen := map[string]bool{}
	missing := map[string][]string{}
	visit(root, func(cmd *cobra.Command, f *pflag.Flag) {
		path := cmd.CommandPath()
		seen[path+" "+f.Name] = true
		verdict := support.Flag(path, f.Name)
		refused := strings.HasPrefix(f.Usage, "Not in this version: ")
		unneeded := strings.HasPrefix(f.Usage, "Not needed: ")
		switch {
		case verdict == "":
			missing[path] = append(missing[path], f.Name+kindOf(refused, unneeded))
		case refused != (verdict == support.Refused):
			t.Errorf("%s --%s: the table says %s, and the command: %s", path, f.Name, verdict, f.Usage)
		case unneeded && verdict != support.NotHeeded:
			t.Errorf("%s --%s: the table says %s, and the command that it changes nothing", path, f.Name, verdict)
		}
	})
	for _, path := range sortedKeys(missing) {
		if os.Getenv("SUPPORT_FLAGS") != "" {
			fmt.Printf("FLAGS\t%s\t%s\n", path, strings.Join(missing[path], " "))
			continue
		}
		t.Errorf("%s: --%s: no line in internal/support/flags_table.go", path, strings.Join(missing[path], " --"))
	}
	for _, p := range support.Programs {
		if p.Name != program {
			continue
		}
		for _, c := range p.Commands {
			for _, flag := range strings.Fields(c.Heeded + " " + c.Refused + " " + c.NotHeeded) {
				if !slices.ContainsFunc(sortedKeys(seen), func(s string) bool {
					return strings.HasPrefix(s, c.Command+" ") && strings.HasSuffix(s, " "+flag)
				}) {
					t.Errorf("the table has %s --%s, which no command has", c.Command, flag)
				}
			}
		}
	}
}

func kindOf(refused, unneeded bool) string {
	switch {
	case refused:
		return "!"
	case unneeded:
		return "~"
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func visit(cmd *cobra.Command, each func(*cobra.Command, *pflag.Flag)) {
	own := func(f *pflag.Flag) {
		if f.Name != "help" {
			each(cmd, f)
		}
	}
	cmd.LocalFlags().VisitAll(own)
	for _, sub := range cmd.Commands() {
		visit(sub, each)
	}
}
