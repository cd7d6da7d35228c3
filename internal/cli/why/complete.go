package why

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/why"
)

// groups are those whose objects completion offers, by kind. Machines are stored in one group or the other.
var groups = map[string][]schema.GroupVersion{
	"HostedCluster": {hyperv1.GroupVersion}, "NodePool": {hyperv1.GroupVersion}, "ControlPlaneComponent": {hyperv1.GroupVersion}, "HostedControlPlane": {hyperv1.GroupVersion},
	"Machine": {{Group: translate.Group(clusterv1.GroupVersion.Group), Version: clusterv1.GroupVersion.Version}, clusterv1.GroupVersion},
	"Package": {packagesv1.GroupVersion}, "ObjectDeployment": {packagesv1.GroupVersion}, "ObjectSet": {packagesv1.GroupVersion},
	"ClusterPackage": {packagesv1.GroupVersion}, "ClusterObjectDeployment": {packagesv1.GroupVersion}, "HostedClusterPackage": {packagesv1.GroupVersion},
}

// complete offers kinds, and behind "KIND/" or "KIND " the names of the objects where this command would look for them.
func (o *options) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	word, _, slash := strings.Cut(typed, "/")
	switch {
	case len(args) > 1 || len(args) == 1 && strings.Contains(args[0], "/"):
		return nil, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1:
		return o.names(cmd, args[0], typed), cobra.ShellCompDirectiveNoFileComp
	case slash:
		offers := o.names(cmd, word, typed)
		for i := range offers {
			offers[i] = word + "/" + offers[i]
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, k := range shown {
		out = append(out, k+"/")
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeJournaled is complete for commands whose argument is a HostedCluster when it names no kind.
func (o *options) completeJournaled(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) > 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case strings.Contains(typed, "/"):
		return o.complete(cmd, args, typed)
	}
	return o.names(cmd, "hostedcluster", typed), cobra.ShellCompDirectiveNoFileComp
}

// names are those of the objects of a kind, as it is typed; none when they can't be listed.
func (o *options) names(cmd *cobra.Command, word, typed string) []string {
	of := why.Object{Kind: kinds[strings.ToLower(word)]}
	if of.Kind == "" || o.place(&of) != nil {
		return nil
	}
	var out []string
	for _, group := range groups[of.Kind] {
		some, _ := connect.CompleteArgument(&o.connect, group.WithKind(of.Kind+"List"), &of.Namespace, of.Namespace != "")(cmd, nil, typed)
		out = append(out, some...)
	}
	return out
}
