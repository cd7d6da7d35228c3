package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/why"
)

// packageOperatorNamespace is where journals of HostedClusterPackages are.
const packageOperatorNamespace = "package-operator-system"

// journaled are the kinds whose conditions are kept.
var journaled = []string{"HostedCluster", "NodePool", "Package", "HostedClusterPackage"}

// Timeline is "timeline".
func Timeline() *cobra.Command {
	o, since := &options{}, time.Duration(0)
	cmd := &cobra.Command{
		Use:   "timeline [KIND/]NAME",
		Short: "Show the history of an object's conditions, oldest first",
		Long: `Print the journal of a HostedCluster, NodePool, Package or HostedClusterPackage: each transition of a condition with its time. A name alone is
a HostedCluster's. The last 200 transitions, or 32 KiB, are kept in a ConfigMap beside the object, which is deleted with it; operator restarts lose none.`,
		Example: `  hypershift timeline demo
  hypershift timeline demo --since 1h
  hypershift timeline np/demo-workers -n clusters -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, _, err := o.journal(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if since > 0 {
				from := time.Now().Add(-since)
				list = slices.DeleteFunc(list, func(e journal.Entry) bool { return e.At.Before(from) })
			}
			if o.format != output.Text {
				return o.format.Value(cmd.OutOrStdout(), list)
			}
			return printJournal(cmd.OutOrStdout(), list)
		},
	}
	o.addJournalFlags(cmd)
	cmd.Flags().DurationVar(&since, "since", 0, "Only transitions of the last period, such as 1h; 0 means all")
	return cmd
}

// FirstFailure is "first-failure".
func FirstFailure() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "first-failure [KIND/]NAME",
		Short: "Show the transition with which the present problem began",
		Long: `Find in the journal of a HostedCluster, NodePool, Package or HostedClusterPackage the first condition that went bad after the last moment at
which all were good. A name alone is a HostedCluster's.

Exit codes: 0 also if nothing is wrong; 4 the object doesn't exist, or has no journal.`,
		Example: `  hypershift first-failure demo
  hypershift first-failure package/addon --cluster demo`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, of, err := o.journal(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			first := journal.FirstFailure(list, why.Good)
			if o.format != output.Text {
				return o.format.Value(cmd.OutOrStdout(), first)
			}
			if first == nil {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: nothing is wrong\n", of)
				return err
			}
			return printJournal(cmd.OutOrStdout(), []journal.Entry{*first})
		},
	}
	o.addJournalFlags(cmd)
	return cmd
}

func (o *options) addJournalFlags(cmd *cobra.Command) {
	o.addPlaceFlags(cmd)
	cmd.ValidArgsFunction = o.completeJournaled
	o.format.AddFlag(cmd)
}

// journal reads that of an object, named as "KIND/NAME" or as the name of a HostedCluster.
func (o *options) journal(ctx context.Context, arg string) ([]journal.Entry, why.Object, error) {
	if !strings.Contains(arg, "/") {
		arg = "hostedcluster/" + arg
	}
	of, err := Target([]string{arg})
	if err != nil {
		return nil, of, err
	}
	if !slices.Contains(journaled, of.Kind) {
		return nil, of, fmt.Errorf("%ss have no journal: name one of %s", of.Kind, strings.Join(journaled, ", "))
	}
	if err := o.place(&of); err != nil {
		return nil, of, err
	}
	c, err := o.connect.Client()
	if err != nil {
		return nil, of, err
	}
	list, err := journal.Read(ctx, c, strings.ToLower(of.Kind), cmp.Or(of.Namespace, packageOperatorNamespace), of.Name)
	if err == nil && len(list) == 0 {
		err = exit.With(exit.NotFound, errors.New("there is no journal of "+of.String()+": check the name, and the namespace with -n; an operator writes it with the object's first condition"))
	}
	return list, of, err
}

// printJournal writes a line for each transition.
func printJournal(w io.Writer, list []journal.Entry) error {
	rows := [][]string{{"TIME", "CONDITION", "FROM", "TO", "REASON", "MESSAGE"}}
	for _, e := range list {
		rows = append(rows, []string{e.At.UTC().Format(time.RFC3339), e.Type, shownStatus(e.From), shownStatus(e.To), e.Reason, printable(e.Message)})
	}
	return output.Table(w, rows)
}

func shownStatus(s metav1.ConditionStatus) string { return cmp.Or(string(s), "-") }

// printable leaves out what a terminal would take for a command: messages repeat what hosted clusters say.
func printable(s string) string { return why.Clean(s) }
