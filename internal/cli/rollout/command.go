// Package rollout is the command "rollout": what a HostedClusterPackage would do, does and did, and how to stop it.
//
// The same planner that the controller uses makes the plan, so what it shows is what will happen.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
)

// Command is "rollout". extra are subcommands, or replacements by name, that other kinds of resources need.
func Command(extra ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Preview, watch, pause and undo rollouts",
		Example: `  kubectl package rollout plan -f addon.yaml --time-per-cluster 3m
  kubectl package rollout status hostedclusterpackage/addon
  kubectl package rollout undo hostedclusterpackage/addon`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	taken := map[string]bool{}
	for _, c := range extra {
		taken[c.Name()] = true
		cmd.AddCommand(c)
	}
	for _, c := range []*cobra.Command{Plan(), Status(), History(), Pause(), Resume(), Undo()} {
		if !taken[c.Name()] {
			cmd.AddCommand(c)
		}
	}
	return cmd
}

// kinds are the names of the resource that commands take.
var kinds = []string{"hostedclusterpackage", "hostedclusterpackages", "hcpkg", "hostedclusterpackages.package-operator.run"}

// IsFleet tells whether a resource, as a user writes it, is a HostedClusterPackage.
func IsFleet(resource string) bool {
	for _, k := range kinds {
		if strings.EqualFold(k, resource) {
			return true
		}
	}
	return false
}

// nameOf reads "hostedclusterpackage/NAME" or "hostedclusterpackage NAME".
func nameOf(args []string) (string, error) {
	resource, name := "", ""
	switch len(args) {
	case 1:
		var ok bool
		if resource, name, ok = strings.Cut(args[0], "/"); !ok || strings.Contains(name, "/") {
			return "", fmt.Errorf("%q is no resource with a name: write hostedclusterpackage/NAME", args[0])
		}
	case 2:
		resource, name = args[0], args[1]
	}
	if !IsFleet(resource) {
		return "", fmt.Errorf("resource %q has no rollout over hosted clusters: write hostedclusterpackage/NAME", resource)
	}
	if name == "" {
		return "", errors.New("the name is missing: write hostedclusterpackage/NAME")
	}
	return name, nil
}

// complete offers names of HostedClusterPackages.
func complete(flags *connect.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := flags.Client()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list packagesv1.HostedClusterPackageList
		if err := c.List(cmd.Context(), &list, client.Limit(500)); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for i := range list.Items {
			names = append(names, kinds[0]+"/"+list.Items[i].Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func get(ctx context.Context, c client.Reader, name string) (*packagesv1.HostedClusterPackage, error) {
	out := &packagesv1.HostedClusterPackage{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, out)
	if apierrors.IsNotFound(err) {
		return nil, exit.With(exit.NotFound, fmt.Errorf("there is no HostedClusterPackage %q: `kubectl get hostedclusterpackages` lists them", name))
	}
	if err != nil {
		return nil, fmt.Errorf("reading HostedClusterPackage %q: %w", name, err)
	}
	return out, nil
}

// prepare makes a command for one HostedClusterPackage, named by its arguments.
func prepare(cmd *cobra.Command, flags *connect.Flags, run func(cmd *cobra.Command, c client.Client, owner *packagesv1.HostedClusterPackage) error) *cobra.Command {
	cmd.Args = cobra.RangeArgs(1, 2)
	cmd.ValidArgsFunction = complete(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := nameOf(args)
		if err != nil {
			return err
		}
		c, err := flags.Client()
		if err != nil {
			return err
		}
		owner, err := get(cmd.Context(), c, name)
		if err != nil {
			return err
		}
		return run(cmd, c, owner)
	}
	flags.AddFlags(cmd.Flags())
	return cmd
}
