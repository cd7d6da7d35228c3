package connect

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const (
	// completionTimeout: a shell that hangs on a tab is worse than no completion.
	completionTimeout = 2 * time.Second
	// completionLimit is more names than a shell can show well.
	completionLimit = 500
)

// CompleteHostedClusters offers the names of HostedClusters in *namespace for a flag.
func CompleteHostedClusters(cmd *cobra.Command, flags *Flags, flag string, namespace *string) {
	completeNames(cmd, flags, flag, hyperv1.GroupVersion.WithKind("HostedClusterList"), namespace)
}

// CompleteNodePools offers the names of NodePools in *namespace for a flag.
func CompleteNodePools(cmd *cobra.Command, flags *Flags, flag string, namespace *string) {
	completeNames(cmd, flags, flag, hyperv1.GroupVersion.WithKind("NodePoolList"), namespace)
}

// CompleteNamespaces offers the names of namespaces for a flag.
func CompleteNamespaces(cmd *cobra.Command, flags *Flags, flag string) {
	none := ""
	completeNames(cmd, flags, flag, schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"}, &none)
}

// CompleteStorageClasses offers the names of StorageClasses for a flag.
func CompleteStorageClasses(cmd *cobra.Command, flags *Flags, flag string) {
	none := ""
	completeNames(cmd, flags, flag, schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClassList"}, &none)
}

// CompleteArgument offers the names of objects for the only argument of a command: those of a list kind, in *namespace if they are namespaced.
func CompleteArgument(flags *Flags, kind schema.GroupVersionKind, namespace *string, namespaced bool) cobra.CompletionFunc {
	if !namespaced {
		namespace = new(string)
	}
	offer := offers(flags, kind, namespace)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(cmd, args, typed)
	}
}

func completeNames(cmd *cobra.Command, flags *Flags, flag string, kind schema.GroupVersionKind, namespace *string) {
	// Only fails for a flag that isn't there.
	_ = cmd.RegisterFlagCompletionFunc(flag, offers(flags, kind, namespace))
}

func offers(flags *Flags, kind schema.GroupVersionKind, namespace *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if namespace != nil && *namespace != "" {
			_ = contextNamespace(cmd) // of the same flag that namespace points to
		}
		c, err := flags.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(ctx, list, client.InNamespace(*namespace), client.Limit(completionLimit)); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := make([]string, len(list.Items))
		for i := range list.Items {
			names[i] = list.Items[i].Name
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
