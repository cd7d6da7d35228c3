package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/conditions"
)

// Row is one backup, or one schedule, as get backups prints it.
type Row struct {
	Namespace string `json:"namespace"` // of the control plane
	Name      string `json:"name"`
	// State is the reason of BackupCompleted, or Schedule.
	State    string          `json:"state"`
	Message  string          `json:"message,omitempty"`
	Created  metav1.Time     `json:"created"`
	Schedule string          `json:"schedule,omitempty"`
	URL      string          `json:"url,omitempty"`
	Verified string          `json:"verified,omitempty"`
	Summary  *bundle.Summary `json:"summary,omitempty"`
}

// GetCommand is `hypershift get backups`.
func GetCommand() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	var name string
	var all bool
	namespace := connect.DefaultNamespace
	cmd := &cobra.Command{
		Use:   "backups",
		Short: "List backups of hosted clusters, newest first",
		Example: `  hypershift get backups demo
  hypershift get backups -A -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.Client()
			if err != nil {
				return err
			}
			rows, err := list(cmd.Context(), c, namespace, name, all)
			if err != nil {
				return err
			}
			if format == output.Name {
				return printNames(cmd.OutOrStdout(), rows)
			}
			if format != output.Text {
				return format.Value(cmd.OutOrStdout(), rows)
			}
			if len(rows) == 0 {
				_, err := fmt.Fprintln(cmd.ErrOrStderr(), "There are no backups. Make one: hypershift create backup NAME --bucket … --credentials …")
				return err
			}
			return output.Table(cmd.OutOrStdout(), table(rows, time.Now()))
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "Name of the HostedCluster (default: all of the namespace)")
	f.StringVarP(&namespace, "namespace", "n", namespace, "Namespace of the HostedCluster")
	f.BoolVarP(&all, "all-namespaces", "A", false, "Backups of all hosted clusters")
	cmd.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")
	flags.AddFlags(f)
	format.AddObjectFlag(cmd)
	connect.CompleteHostedClusters(cmd, &flags, "name", &namespace)
	connect.CompleteNamespaces(cmd, &flags, "namespace")
	return cmd
}

func printNames(w io.Writer, rows []Row) error {
	for _, r := range rows {
		if _, err := fmt.Fprintln(w, "hcpetcdbackup."+hyperv1.GroupVersion.Group+"/"+r.Name); err != nil {
			return err
		}
	}
	return nil
}

func list(ctx context.Context, c client.Client, namespace, name string, all bool) ([]Row, error) {
	var where []client.ListOption
	if name != "" {
		where = append(where, client.InNamespace(names.ControlPlaneNamespace(namespace, name)))
	}
	wanted := map[string]bool{}
	if name == "" && !all {
		clusters := &hyperv1.HostedClusterList{}
		if err := c.List(ctx, clusters, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing HostedClusters of namespace %s: %w", namespace, err)
		}
		for i := range clusters.Items {
			wanted[names.NamespaceOf(&clusters.Items[i])] = true
		}
	}
	found := &hyperv1.HCPEtcdBackupList{}
	if err := c.List(ctx, found, where...); meta.IsNoMatchError(err) {
		return nil, errNoKind
	} else if err != nil {
		return nil, fmt.Errorf("listing HCPEtcdBackups: %w", err)
	}
	rows := []Row{}
	for i := range found.Items {
		if b := &found.Items[i]; name != "" || all || wanted[b.Namespace] {
			rows = append(rows, rowOf(b))
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), b.Created.Compare(a.Created.Time), cmp.Compare(a.Name, b.Name))
	})
	return rows, nil
}

func rowOf(b *hyperv1.HCPEtcdBackup) Row {
	r := Row{Namespace: b.Namespace, Name: b.Name, State: "Pending", Created: b.CreationTimestamp, Schedule: b.Labels[backups.ScheduleLabel], URL: b.Status.SnapshotURL}
	if when, ok := b.Annotations[backups.ScheduleAnnotation]; ok {
		r.State, r.Schedule = "Schedule", when
		if c := conditions.Get(b.Status.Conditions, hyperv1.EtcdBackupScheduled); c != nil {
			r.Message = c.Message
			if c.Status != metav1.ConditionTrue {
				r.State = c.Reason
			}
		}
		return r
	}
	if c := conditions.Get(b.Status.Conditions, hyperv1.EtcdBackupCompleted); c != nil {
		r.State, r.Message = c.Reason, c.Message
	}
	if c := conditions.Get(b.Status.Conditions, hyperv1.EtcdBackupVerified); c != nil {
		r.Verified = c.Reason
	}
	s := &bundle.Summary{}
	if json.Unmarshal([]byte(b.Annotations[backups.SummaryAnnotation]), s) == nil {
		r.Summary = s
	}
	return r
}

func table(rows []Row, now time.Time) [][]string {
	lines := [][]string{{"CONTROL PLANE", "NAME", "STATE", "AGE", "REVISION", "BYTES", "SEALED", "VERIFIED", "URL"}}
	for _, r := range rows {
		revision, size, sealed := "-", "-", "-"
		if r.Summary != nil {
			revision, size, sealed = strconv.FormatInt(r.Summary.Revision, 10), strconv.FormatInt(r.Summary.Stored, 10), cmp.Or(r.Summary.Key, "no")
		}
		url := r.URL
		switch {
		case url == "" && r.State == "Schedule":
			url = r.Schedule + ": " + r.Message
		case url == "":
			url = r.Message
		}
		lines = append(lines, []string{r.Namespace, r.Name, r.State, duration.HumanDuration(now.Sub(r.Created.Time)), revision, size, sealed, cmp.Or(r.Verified, "-"), url})
	}
	return lines
}
