package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/packages/control/hostedclusterpackage"
)

// entry is a revision as it is printed.
type entry struct {
	Revision  int64      `json:"revision"`
	Completed *time.Time `json:"completed,omitempty"`
	// Changes are the fields in which it differs from the revision before.
	Changes     []string               `json:"changes,omitempty"`
	Labels      map[string]string      `json:"labels,omitempty"`
	Annotations map[string]string      `json:"annotations,omitempty"`
	Spec        packagesv1.PackageSpec `json:"spec"`
}

// History is "rollout history".
func History() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	var number int64
	cmd := &cobra.Command{
		Use:   "history hostedclusterpackage/NAME",
		Short: "List the previous templates of a HostedClusterPackage, and which were good",
		Example: `  kubectl package rollout history hostedclusterpackage/addon
  kubectl package rollout history hostedclusterpackage/addon --revision 3`,
	}
	prepare(cmd, &flags, func(cmd *cobra.Command, c client.Client, owner *packagesv1.HostedClusterPackage) error {
		list, err := hostedclusterpackage.History(cmd.Context(), c, "", owner)
		if err != nil {
			return err
		}
		entries := []entry{} // not null in JSON
		for i, r := range list {
			e := entry{Revision: r.Number, Completed: r.Completed, Labels: r.Labels, Annotations: r.Annotations, Spec: r.Spec}
			if i > 0 {
				e.Changes = r.Changes(list[i-1])
			}
			entries = append(entries, e)
		}
		if number != 0 {
			i := slices.IndexFunc(entries, func(e entry) bool { return e.Revision == number })
			if i < 0 {
				return fmt.Errorf("--revision %d: revision not found; without --revision all are listed", number)
			}
			return format.Value(cmd.OutOrStdout(), entries[i])
		}
		if format != output.Text {
			return format.Value(cmd.OutOrStdout(), entries)
		}
		rows := [][]string{{"REVISION", "COMPLETED", "IMAGE", "CHANGED"}}
		for _, e := range entries {
			completed := "-"
			if e.Completed != nil {
				completed = e.Completed.UTC().Format(time.RFC3339)
			}
			rows = append(rows, []string{fmt.Sprint(e.Revision), completed, e.Spec.Image, changed(e.Changes)})
		}
		return output.Table(cmd.OutOrStdout(), rows)
	})
	cmd.Flags().Int64Var(&number, "revision", 0, "Print this revision")
	format.AddFlag(cmd)
	return cmd
}

// shownChanges bounds how many fields of a change are printed.
const shownChanges = 3

func changed(fields []string) string {
	switch {
	case len(fields) == 0:
		return "-"
	case len(fields) > shownChanges:
		return fmt.Sprintf("%s and %d more", strings.Join(fields[:shownChanges], ", "), len(fields)-shownChanges)
	}
	return strings.Join(fields, ", ")
}

// Pause is "rollout pause".
func Pause() *cobra.Command {
	return paused("pause", "Stop changing packages; changes in progress continue, and new clusters still get their package", "true", "paused")
}

// Resume is "rollout resume".
func Resume() *cobra.Command {
	return paused("resume", "Go on with a rollout that was paused", "", "resumed")
}

func paused(use, short, value, done string) *cobra.Command {
	var flags connect.Flags
	cmd := &cobra.Command{Use: use + " hostedclusterpackage/NAME", Short: short, Example: "  hypershift rollout " + use + " hostedclusterpackage/addon"}
	flags.DryRun.AddFlag(cmd)
	return prepare(cmd, &flags, func(cmd *cobra.Command, c client.Client, owner *packagesv1.HostedClusterPackage) error {
		if owner.Annotations[packagesv1.RolloutPausedAnnotation] == value {
			fmt.Fprintf(cmd.OutOrStdout(), "hostedclusterpackage/%s is %s already\n", owner.Name, done)
			return nil
		}
		var to any
		if value != "" {
			to = value
		}
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{packagesv1.RolloutPausedAnnotation: to}}}
		if err := merge(cmd, c, owner, patch); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "hostedclusterpackage/%s %s%s\n", owner.Name, done, flags.DryRun.Suffix())
		return nil
	})
}

// Undo is "rollout undo".
func Undo() *cobra.Command {
	var flags connect.Flags
	var number int64
	cmd := &cobra.Command{
		Use:   "undo hostedclusterpackage/NAME",
		Short: "Go back to the template of the last completed rollout",
		Long: `Go back to the template of the last completed rollout, or to that of --to-revision.

Clusters that are unavailable get it first.`,
		Example: `  kubectl package rollout undo hostedclusterpackage/addon
  kubectl package rollout undo hostedclusterpackage/addon --to-revision 2`,
	}
	prepare(cmd, &flags, func(cmd *cobra.Command, c client.Client, owner *packagesv1.HostedClusterPackage) error {
		list, err := hostedclusterpackage.History(cmd.Context(), c, "", owner)
		if err != nil {
			return err
		}
		to, err := target(list, number)
		if err != nil {
			return err
		}
		if err := merge(cmd, c, owner, map[string]any{"spec": map[string]any{"template": replacement(owner, to)}}); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "hostedclusterpackage/%s goes back to revision %d, image %s%s\n", owner.Name, to.Number, to.Spec.Image, flags.DryRun.Suffix())
		return nil
	})
	flags.DryRun.AddFlag(cmd)
	cmd.Flags().Int64Var(&number, "to-revision", 0, "Revision to go back to; 0 for the last good one")
	return cmd
}

// target is the revision to go back to. list is sorted, the newest is the current one.
func target(list []hostedclusterpackage.Revision, number int64) (hostedclusterpackage.Revision, error) {
	for i := len(list) - 1; i >= 0; i-- {
		if number != 0 && list[i].Number == number || number == 0 && i < len(list)-1 && list[i].Completed != nil {
			return list[i], nil
		}
	}
	if number != 0 {
		return hostedclusterpackage.Revision{}, fmt.Errorf("--to-revision %d: revision not found; `rollout history` lists them", number)
	}
	return hostedclusterpackage.Revision{}, errors.New("no earlier rollout was completed: choose a revision of `rollout history` with --to-revision")
}

// replacement is a merge patch from the present template to that of a revision: what is only in the present one is removed.
func replacement(owner *packagesv1.HostedClusterPackage, r hostedclusterpackage.Revision) map[string]any {
	present := owner.Spec.Template
	from, to := generic(present.Labels, present.Annotations, present.Spec), generic(r.Labels, r.Annotations, r.Spec)
	dropRest(from, to)
	return to
}

func dropRest(from, to map[string]any) {
	for k, v := range from {
		w, ok := to[k]
		if !ok {
			to[k] = nil
			continue
		}
		a, isMap := v.(map[string]any)
		b, isMapToo := w.(map[string]any)
		if isMap && isMapToo {
			dropRest(a, b)
		}
	}
}

func generic(labels, annotations map[string]string, spec packagesv1.PackageSpec) map[string]any {
	out := map[string]any{}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}, "spec": spec})
	if err == nil {
		_ = json.Unmarshal(data, &out) // what was just encoded
	}
	return out
}

func merge(cmd *cobra.Command, c client.Client, owner *packagesv1.HostedClusterPackage, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding the change: %w", err)
	}
	if err := c.Patch(cmd.Context(), owner, client.RawPatch(types.MergePatchType, data), client.FieldOwner(connect.FieldOwner)); err != nil {
		return fmt.Errorf("changing hostedclusterpackage/%s: %w", owner.Name, err)
	}
	return nil
}
