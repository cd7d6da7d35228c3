package connect

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// TakeNames lets each command below cmd that has a flag --name and takes no arguments take the name as its argument, too, as kubectl does:
// "destroy cluster local demo".
func TakeNames(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		TakeNames(child)
	}
	if len(cmd.Commands()) > 0 || cmd.Flags().Lookup("name") == nil || cmd.Args == nil || cmd.Args(cmd, []string{"x"}) == nil {
		return
	}
	cmd.Use += " [NAME]"
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.ValidArgsFunction = cobra.NoFileCompletions // of a new name, nobody knows any
	if names, ok := cmd.GetFlagCompletionFunc("name"); ok {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names(cmd, args, toComplete)
		}
	}
	// Cobra looks for flags that are required before a command runs, and so before the argument becomes one.
	required := len(cmd.Flags().Lookup("name").Annotations[cobra.BashCompOneRequiredFlag]) > 0
	delete(cmd.Flags().Lookup("name").Annotations, cobra.BashCompOneRequiredFlag)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			flag := cmd.Flags().Lookup("name")
			if flag.Changed && flag.Value.String() != args[0] {
				return fmt.Errorf("the argument says %q and --name %q: give the name once", args[0], flag.Value.String())
			}
			if err := cmd.Flags().Set("name", args[0]); err != nil {
				return fmt.Errorf("name %q: %w", args[0], err)
			}
		}
		if required && cmd.Flags().Lookup("name").Value.String() == "" {
			return errors.New("a name is required: give it as the argument, or with --name")
		}
		return run(cmd, nil)
	}
}
