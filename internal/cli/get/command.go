package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/why"
)

// Item is one object as it is printed. With -o json and yaml it is what scripts read: fields are added, and none goes.
type Item struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is the HostedCluster that it belongs to.
	Cluster     string `json:"cluster,omitempty"`
	why.Finding `json:",inline"`
	Created     *metav1.Time `json:"created,omitempty"`
	// Details are the columns of the kind, by their names.
	Details map[string]string `json:"details,omitempty"`

	resource string // as -o name has it
}

// query is what is asked for.
type query struct {
	client.Client
	namespace string // empty: all
	name      string // empty: all
	cluster   string // empty: of all hosted clusters
	selector  labels.Selector
	now       time.Time
	pageSize  int64 // of one answer of the API server; 0: pageSize
}

// kind is what can be listed.
type kind struct {
	name    string
	aliases []string
	short   string
	// namespaced objects are asked for in a namespace, and have that of their HostedCluster.
	namespaced bool
	// ofCluster: --cluster restricts them.
	ofCluster bool
	// columns and wide are keys of Details, in their order.
	columns, wide []string
	list          func(context.Context, query) ([]Item, error)
	// completes is the list that completion reads names from; empty: none.
	completes schema.GroupVersionKind
}

// Command is "get". more are kinds that other packages list.
func Command(more ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List hosted clusters, NodePools, machines and more, with their health and its cause",
		Long: `List the objects of the management cluster. HEALTH is one word: Healthy, Progressing, Deleting, Paused, Blocked (nothing continues until
someone acts), Degraded, or Unknown (no status has been reported yet). CAUSE says why, in one line, from the object's own status.
"hypershift why" looks further, and says what to do.`,
		Example: `  hypershift get clusters -A
  hypershift get nodepools --cluster demo
  hypershift get machines --cluster demo -o wide
  hypershift get clusters -A --not-well
  hypershift get certificates demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, k := range kinds {
		cmd.AddCommand(kindCommand(k))
	}
	cmd.AddCommand(more...)
	return cmd
}

// options are the flags of a command.
type options struct {
	connect                      connect.Flags
	namespace, cluster, selector string
	all, notWell                 bool
	format                       output.Format
}

func kindCommand(k kind) *cobra.Command {
	o := &options{namespace: connect.DefaultNamespace}
	example := fmt.Sprintf("  hypershift get %[1]s\n  hypershift get %[1]s -o json", k.name)
	if k.namespaced {
		example = fmt.Sprintf("  hypershift get %[1]s -n clusters\n  hypershift get %[1]s -A --not-well\n  hypershift get %[1]s demo -o json", k.name)
	}
	cmd := &cobra.Command{
		Use:         k.name + " [NAME]",
		Aliases:     k.aliases,
		Short:       "List " + k.short,
		Example:     example,
		Args:        cobra.MaximumNArgs(1),
		Annotations: map[string]string{connect.QuietNamespace: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := o.query(args)
			if err != nil {
				return err
			}
			if !k.namespaced {
				q.namespace = ""
			}
			items, err := k.list(cmd.Context(), q)
			if err != nil {
				return err
			}
			if q.name != "" && len(items) == 0 {
				return exit.With(exit.NotFound, fmt.Errorf("%s: %s not found%s", k.name, q.name, where(k, q)))
			}
			if o.notWell {
				items = slices.DeleteFunc(items, func(i Item) bool { return i.Health.Well() })
			}
			switch forPeople := o.format == output.Text || o.format == output.Wide; {
			case len(items) == 0 && forPeople && q.name != "":
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s needs no attention\n", k.name, q.name)
				return nil
			case len(items) == 0 && o.format == output.Text:
				fmt.Fprintf(cmd.ErrOrStderr(), "nothing found%s\n", where(k, q))
				return nil
			}
			return o.print(cmd.OutOrStdout(), k, q, items)
		},
	}
	fs := cmd.Flags()
	if k.namespaced {
		fs.StringVarP(&o.namespace, "namespace", "n", o.namespace, "Namespace of the HostedClusters and their objects")
		fs.BoolVarP(&o.all, "all-namespaces", "A", false, "In all namespaces")
		cmd.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")
		connect.CompleteNamespaces(cmd, &o.connect, "namespace")
	}
	if !k.namespaced { // as kubectl does
		fs.BoolP("all-namespaces", "A", false, "Changes nothing: these have no namespace")
	}
	if k.ofCluster {
		fs.StringVar(&o.cluster, "cluster", "", "Only those of this hosted cluster")
		connect.CompleteHostedClusters(cmd, &o.connect, "cluster", &o.namespace)
	}
	fs.StringVarP(&o.selector, "selector", "l", "", "Only objects with these labels, such as tier=gold")
	fs.BoolVar(&o.notWell, "not-well", false, "List only objects that need attention; with a name, nothing (null in JSON and YAML) if that one needs none")
	o.connect.AddFlags(fs)
	o.format.AddObjectFlag(cmd, output.Wide)
	if !k.completes.Empty() {
		cmd.ValidArgsFunction = connect.CompleteArgument(&o.connect, k.completes, &o.namespace, k.namespaced)
	} else {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	return cmd
}

func (o *options) query(args []string) (query, error) {
	q := query{namespace: o.namespace, cluster: o.cluster, selector: labels.Everything(), now: time.Now()}
	var err error
	if o.selector != "" {
		if q.selector, err = labels.Parse(o.selector); err != nil {
			return q, fmt.Errorf("--selector %s: %w", o.selector, err)
		}
	}
	if o.all {
		q.namespace = ""
	}
	if len(args) > 0 {
		q.name = args[0]
		if o.all {
			return q, errors.New("a name needs its namespace: leave out either the name or --all-namespaces")
		}
	}
	if o.cluster != "" && o.all {
		return q, errors.New("--cluster needs its namespace: leave out either that or --all-namespaces")
	}
	q.Client, err = o.connect.Client()
	return q, err
}

func where(k kind, q query) string {
	switch {
	case !k.namespaced:
		return ""
	case q.namespace == "":
		return " in any namespace"
	}
	return " in namespace " + q.namespace
}

func (o *options) print(w io.Writer, k kind, q query, items []Item) error {
	switch o.format {
	case output.JSON, output.YAML:
		if q.name != "" {
			var one *Item // null: it is well, and only what isn't was asked for
			if len(items) > 0 {
				one = &items[0]
			}
			return o.format.Value(w, one)
		}
		if items == nil {
			items = []Item{} // not null
		}
		return o.format.Value(w, map[string][]Item{"items": items})
	case output.Name:
		for _, i := range items {
			if _, err := fmt.Fprintln(w, i.resource+"/"+i.Name); err != nil {
				return err
			}
		}
		return nil
	}
	columns := k.columns
	if o.format == output.Wide {
		columns = slices.Concat(columns, k.wide)
	}
	header := []string{"NAME"}
	if o.all {
		header = []string{"NAMESPACE", "NAME"}
	}
	for _, c := range columns {
		header = append(header, heading(c))
	}
	rows := [][]string{append(slices.Insert(header, len(header)-len(columns), "HEALTH"), "AGE", "CAUSE")}
	for _, i := range items {
		row := []string{i.Name}
		if o.all {
			row = []string{i.Namespace, i.Name}
		}
		row = append(row, string(i.Health))
		for _, c := range columns {
			row = append(row, dash(i.Details[c]))
		}
		rows = append(rows, append(row, age(i.Created, q.now), i.Cause))
	}
	return output.Table(w, rows)
}

// heading is a key of details as the head of a column: "nodePool" is NODEPOOL.
func heading(key string) string { return strings.ToUpper(key) }

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func age(created *metav1.Time, now time.Time) string {
	if created.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}
