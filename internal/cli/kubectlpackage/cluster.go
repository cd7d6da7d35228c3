package kubectlpackage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/packages/engine/scope"
)

// pageSize of lists.
const pageSize = 500

// client is for the scope of a resource.
func (o *Options) client(s scope.Scope) (client.Client, error) {
	c, err := o.flags.Client()
	if err != nil {
		return nil, err
	}
	return s.Client(c), nil
}

// scopeOf is the scope of a resource that commands take, and whether it is a package.
func scopeOf(kind string) (s scope.Scope, isPackage, ok bool) {
	switch singular(kind) {
	case packages:
		return scope.Namespaced, true, true
	case clusterPackages:
		return scope.Cluster, true, true
	case objectDeployments:
		return scope.Namespaced, false, true
	case clusterObjectDeployments:
		return scope.Cluster, false, true
	}
	return scope.Namespaced, false, false
}

// revisions are the ObjectSets of a package or deployment, the oldest first.
func revisions(ctx context.Context, c client.Client, kind, namespace, name string) ([]v1alpha1.ObjectSet, error) {
	_, isPackage, _ := scopeOf(kind)
	selector := labels.SelectorFromSet(labels.Set{v1alpha1.InstanceLabel: name})
	if !isPackage {
		od := &v1alpha1.ObjectDeployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, od); err != nil {
			return nil, fmt.Errorf("getting %s: %w", kind, err)
		}
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(&od.Spec.Selector); err != nil {
			return nil, fmt.Errorf("spec.selector of %s %s: %w", kind, name, err)
		}
	} else if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v1alpha1.Package{}); err != nil {
		return nil, fmt.Errorf("getting %s: %w", kind, err)
	}
	return setsOf(ctx, c, namespace, selector)
}

// setsOf are the ObjectSets that a selector matches, the oldest first.
func setsOf(ctx context.Context, c client.Client, namespace string, selector labels.Selector) ([]v1alpha1.ObjectSet, error) {
	list := &v1alpha1.ObjectSetList{}
	var out []v1alpha1.ObjectSet
	for err := range read.Pages(ctx, c, list, pageSize, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}) {
		if err != nil {
			return nil, fmt.Errorf("listing revisions: %w", err)
		}
		out = append(out, list.Items...)
	}
	slices.SortStableFunc(out, func(a, b v1alpha1.ObjectSet) int { return int(a.Spec.Revision - b.Spec.Revision) })
	return out, nil
}

func (o *Options) clusterTree() *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "clustertree <resource> <name> | <resource>/<name>",
		Short: "Show the phases and objects of an installed package",
		Example: `  kubectl package clustertree package/my-app -n default
  kubectl package clustertree clusterpackage my-operator`,
		Args: cobra.RangeArgs(1, 2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, name, err := resource(args)
		if err != nil {
			return err
		}
		s, isPackage, ok := scopeOf(kind)
		if !ok || !isPackage {
			return errors.New("invalid resource type")
		}
		if !s.IsCluster() && namespace == "" {
			return errors.New("--namespace is required as its a namespaced Resource type")
		}
		if s.IsCluster() {
			namespace = ""
		}
		c, err := o.client(s)
		if err != nil {
			return err
		}
		return clusterTree(cmd, c, s, kind, namespace, name)
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "Namespace of the package")
	return cmd
}

// shown is the revision whose tree is shown: the newest that is available, else the newest. They are those of the package, or, without any, those
// with its name in theirs: somebody may have made them without a package.
func shown(ctx context.Context, c client.Client, kind, namespace, name string) (*v1alpha1.ObjectSet, error) {
	sets, err := revisions(ctx, c, kind, namespace, name)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if len(sets) == 0 {
		all, listErr := setsOf(ctx, c, namespace, labels.Everything())
		if listErr != nil {
			return nil, errors.Join(err, listErr)
		}
		sets = slices.DeleteFunc(all, func(os v1alpha1.ObjectSet) bool { return !strings.Contains(os.Name, name) || !isAvailable(os) })
	}
	slices.Reverse(sets)
	switch i := slices.IndexFunc(sets, isAvailable); {
	case i >= 0:
		return &sets[i], nil
	case len(sets) > 0:
		return &sets[0], nil
	case err != nil:
		return nil, err
	}
	return nil, fmt.Errorf("ObjectSet could not be found: no revision of %s %s is available", kind, name)
}

func isAvailable(os v1alpha1.ObjectSet) bool {
	return conditions.IsTrue(os.Status.Conditions, v1alpha1.ConditionAvailable)
}

// unavailable is the error behind the tree of a revision that isn't available, nil for one that is.
func unavailable(os *v1alpha1.ObjectSet, kind, name string) error {
	if isAvailable(*os) {
		return nil
	}
	why := "it has no status yet"
	if c := conditions.Get(os.Status.Conditions, v1alpha1.ConditionAvailable); c != nil {
		why = c.Message
	}
	return fmt.Errorf("ObjectSet could not be found: no revision of %s %s is available; shown is revision %d: %s", kind, name, os.Spec.Revision, why)
}

func clusterTree(cmd *cobra.Command, c client.Client, s scope.Scope, kind, namespace, name string) error {
	set, err := shown(cmd.Context(), c, kind, namespace, name)
	if err != nil {
		return err
	}
	phases := set.Spec.Phases
	for j := range phases {
		for _, sliceName := range phases[j].Slices {
			slice := &v1alpha1.ObjectSlice{}
			if err := c.Get(cmd.Context(), client.ObjectKey{Namespace: namespace, Name: sliceName}, slice); err != nil {
				return fmt.Errorf("getting slice %s: %w", sliceName, err)
			}
			phases[j].Objects = append(phases[j].Objects, slice.Objects...)
		}
	}
	if s.IsCluster() {
		fmt.Fprintf(cmd.OutOrStdout(), "ClusterPackage /%s\n", name)
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "Package /%s\nnamespace/%s\n", name, namespace)
	}
	printPhases(cmd.OutOrStdout(), phases)
	return unavailable(set, kind, name)
}
