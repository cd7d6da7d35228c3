package connect

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// DefaultNamespace is where hosted clusters live unless told otherwise.
const DefaultNamespace = "clusters"

// Flags of commands that work in a namespace.
const (
	flagNamespace     = "namespace"
	flagAllNamespaces = "all-namespaces"
)

// QuietNamespace is an annotation of commands that only read: they say nothing about which namespace they were sent to.
const QuietNamespace = "hypershift/quiet-namespace"

// Finish gives every command below root the manners that all of them have: names as arguments, and the namespace of the kubeconfig's context.
func Finish(root *cobra.Command) {
	TakeNames(root)
	useContext(root)
	nameCommands(root)
}

// maxNamed is how many commands an error lists.
const maxNamed = 12

// nameCommands lets each group of commands at or below cmd say which there are when it is called with one that it does not have.
func nameCommands(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		nameCommands(child)
	}
	if len(cmd.Commands()) == 0 || cmd.Args == nil {
		return
	}
	const unknown = "x"
	if err := cmd.Args(cmd, []string{unknown}); err == nil || err.Error() != fmt.Sprintf("unknown command %q for %q", unknown, cmd.CommandPath()) {
		return // it takes arguments, or says more about them
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		names := cmd.SuggestionsFor(args[0])
		if len(names) == 0 {
			for _, child := range cmd.Commands() {
				if child.IsAvailableCommand() {
					names = append(names, child.Name())
				}
			}
		}
		if len(names) > maxNamed {
			return fmt.Errorf("unknown command %q for %q: `%s --help` lists those that there are", args[0], cmd.CommandPath(), cmd.CommandPath())
		}
		return fmt.Errorf("unknown command %q for %q: use %s", args[0], cmd.CommandPath(), strings.Join(names, ", "))
	}
	// A flag that stands behind a name is that of a command which was meant: the name is what is wrong.
	cmd.SetFlagErrorFunc(func(at *cobra.Command, err error) error {
		if at != cmd { // commands below use this, too
			return err
		}
		if misspelt := cmd.Args(cmd, cmd.Flags().Args()); misspelt != nil {
			return misspelt
		}
		if takesFlags(cmd) {
			return err
		}
		return fmt.Errorf("%w: flags stand behind the command that they belong to; `%s --help` lists the commands", err, cmd.CommandPath())
	})
}

// takesFlags tells groups that do something themselves, such as install.
func takesFlags(cmd *cobra.Command) bool {
	found := false
	cmd.Flags().VisitAll(func(f *pflag.Flag) { found = found || f.Name != "help" })
	return found
}

// useContext lets each command below cmd that works in namespace "clusters" when none is given work in that of the kubeconfig's context, where it has one
// of its own.
func useContext(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		useContext(child)
	}
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if namespace := contextNamespace(cmd); namespace != "" && cmd.Annotations[QuietNamespace] == "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "using namespace %s, that of the kubeconfig's context; --namespace names another\n", namespace)
		}
		return run(cmd, args)
	}
}

// contextNamespace sets flag --namespace to what the context says, and returns that; empty when the flag stays as it is.
func contextNamespace(cmd *cobra.Command) string {
	namespace := cmd.Flags().Lookup(flagNamespace)
	if namespace == nil || namespace.Changed || namespace.DefValue != DefaultNamespace {
		return ""
	}
	if all := cmd.Flags().Lookup(flagAllNamespaces); all != nil && all.Changed {
		return ""
	}
	value := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	own := Flags{Kubeconfig: value(flagKubeconfig), Context: value(flagContext)}.OwnNamespace()
	// Not by FlagSet.Set: nobody gave the flag, and what excludes it stays allowed.
	if own == "" || namespace.Value.Set(own) != nil {
		return ""
	}
	return own
}
