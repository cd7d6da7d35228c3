package connect

import (
	"fmt"

	"github.com/spf13/cobra"
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
