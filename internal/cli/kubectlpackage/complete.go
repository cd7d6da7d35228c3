package kubectlpackage

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
)

const (
	// CompletionProgram is what kubectl calls for the completion of this plugin, with what was typed behind its name.
	CompletionProgram = "kubectl_complete-package"
	// completionTime: a shell that hangs on a tab is worse than no completion.
	completionTime = 2 * time.Second
)

// folders offers folders for the only argument of a command.
func folders(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completed are the kinds that completion offers, by resource.
var completed = map[string]string{
	packages: "PackageList", clusterPackages: "ClusterPackageList", objectDeployments: "ObjectDeploymentList", clusterObjectDeployments: "ClusterObjectDeploymentList",
}

// complete offers resource/NAME for the arguments of a command about these resources, in the namespace of its flag or else of the context.
func (o *Options) complete(cmd *cobra.Command, resources ...string) *cobra.Command {
	next := cmd.ValidArgsFunction
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if next != nil && (isFleet(args) || isFleet([]string{typed})) {
			return next(cmd, args, typed)
		}
		kind, _, named := strings.Cut(typed, "/")
		switch {
		case len(args) == 1:
			return o.names(cmd, strings.ToLower(args[0]), ""), cobra.ShellCompDirectiveNoFileComp
		case len(args) > 1:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case named:
			return o.names(cmd, strings.ToLower(kind), kind+"/"), cobra.ShellCompDirectiveNoFileComp
		}
		var offers []string
		for _, r := range resources {
			offers = append(offers, r+"/")
		}
		slices.Sort(offers)
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return cmd
}

// names are those of a resource, behind a prefix; none if they can't be had soon.
func (o *Options) names(cmd *cobra.Command, kind, prefix string) []string {
	s, _, ok := scopeOf(kind)
	if !ok {
		return nil
	}
	namespace := ""
	if !s.IsCluster() {
		if namespace, _ = cmd.Flags().GetString("namespace"); !cmd.Flags().Changed("namespace") {
			namespace, _ = o.flags.Namespace() // without one there is no cluster, either
		}
	}
	c, err := o.flags.Client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(completed[singular(kind)]))
	if err := c.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize)); err != nil {
		return nil
	}
	var out []string
	for i := range list.Items {
		out = append(out, prefix+list.Items[i].Name)
	}
	return out
}
