// Package certificates are the commands that show the certificates of a hosted cluster's control plane, and ask for new authorities.
package certificates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/pki"
)

// pageSize of one answer of the API server.
const pageSize = 100

// Report is what `get certificates` prints.
type Report struct {
	// Cluster is NAMESPACE/NAME of the HostedCluster.
	Cluster      string            `json:"cluster"`
	Certificates []pki.Certificate `json:"certificates"`
}

// GetCommand is `hypershift get certificates`.
func GetCommand() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	var authorities, all bool
	var within time.Duration
	name, namespace := "", connect.DefaultNamespace
	cmd := &cobra.Command{
		Use:   "certificates",
		Short: "List the certificates of the control planes of hosted clusters",
		Long: `List the certificates of a hosted cluster's control plane, or without a name of all control planes of the namespace: when they expire, who replaces them,
and what happens to each next. The first to expire is at the top. Keys are never shown.`,
		Example: `  hypershift get certificates demo
  hypershift get certificates -A --ending-within 720h
  hypershift get certificates demo --authorities
  hypershift get certificates demo -o json`,
		Args:        cobra.NoArgs,
		Annotations: map[string]string{connect.QuietNamespace: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.Client()
			if err != nil {
				return err
			}
			now := time.Now()
			shown := func(report Report) Report {
				report.Certificates = slices.DeleteFunc(report.Certificates, func(c pki.Certificate) bool {
					return authorities && c.Kind == pki.Leaf || within > 0 && c.NotAfter.Sub(now) > within
				})
				return report
			}
			if name != "" {
				if all {
					return errors.New("a name needs its namespace: leave out either the name or --all-namespaces")
				}
				report, err := List(cmd.Context(), c, client.ObjectKey{Namespace: namespace, Name: name})
				if err != nil {
					return err
				}
				if report = shown(report); format == output.Name {
					return printNames(cmd.OutOrStdout(), report)
				}
				if format != output.Text {
					return format.Value(cmd.OutOrStdout(), report)
				}
				return table(cmd.OutOrStdout(), false, now, report)
			}
			if all {
				namespace = ""
			}
			reports, err := listAll(cmd.Context(), c, namespace)
			if err != nil {
				return err
			}
			for i := range reports {
				reports[i] = shown(reports[i])
			}
			if format == output.Name {
				return printNames(cmd.OutOrStdout(), reports...)
			}
			if format != output.Text {
				return format.Value(cmd.OutOrStdout(), map[string][]Report{"items": reports})
			}
			return table(cmd.OutOrStdout(), true, now, reports...)
		},
	}
	nameFlags(cmd, &flags, &name, &namespace, "Name of the HostedCluster (default: all of the namespace)")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "In all namespaces")
	cmd.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")
	cmd.Flags().BoolVar(&authorities, "authorities", false, "List only certificate authorities")
	cmd.Flags().DurationVar(&within, "ending-within", 0, "List only certificates that expire within this time, such as 720h; 0 means all")
	format.AddObjectFlag(cmd)
	return cmd
}

// printNames prints the Secrets that hold the certificates, each once.
func printNames(w io.Writer, reports ...Report) error {
	for _, report := range reports {
		seen := map[string]bool{}
		for _, c := range report.Certificates {
			if seen[c.Secret] {
				continue
			}
			seen[c.Secret] = true
			if _, err := fmt.Fprintln(w, "secret/"+c.Secret); err != nil {
				return err
			}
		}
	}
	return nil
}

func clusterFlags(cmd *cobra.Command, flags *connect.Flags, name, namespace *string) {
	nameFlags(cmd, flags, name, namespace, "Name of the HostedCluster (required)")
	if err := cmd.MarkFlagRequired("name"); err != nil {
		panic(err) // a misspelt flag
	}
}

func nameFlags(cmd *cobra.Command, flags *connect.Flags, name, namespace *string, usage string) {
	cmd.Flags().StringVar(name, "name", "", usage)
	cmd.Flags().StringVarP(namespace, "namespace", "n", *namespace, "Namespace of the HostedCluster")
	flags.AddFlags(cmd.Flags())
	connect.CompleteHostedClusters(cmd, flags, "name", namespace)
	connect.CompleteNamespaces(cmd, flags, "namespace")
}

// List reads the certificates of a HostedCluster's control plane.
func List(ctx context.Context, c client.Reader, cluster client.ObjectKey) (Report, error) {
	hc, err := find(ctx, c, cluster)
	if err != nil {
		return Report{}, err
	}
	return list(ctx, c, hc)
}

// listAll reads those of all HostedClusters of a namespace; empty: of all namespaces.
func listAll(ctx context.Context, c client.Reader, namespace string) ([]Report, error) {
	out, page := []Report{}, &hyperv1.HostedClusterList{}
	for err := range read.Pages(ctx, c, page, pageSize, client.InNamespace(namespace)) {
		if err != nil {
			return nil, fmt.Errorf("listing HostedClusters: %w", err)
		}
		for i := range page.Items {
			report, err := list(ctx, c, &page.Items[i])
			if err != nil {
				return nil, err
			}
			out = append(out, report)
		}
	}
	return out, nil
}

func list(ctx context.Context, c client.Reader, hc *hyperv1.HostedCluster) (Report, error) {
	namespace := names.NamespaceOf(hc)
	var secrets []corev1.Secret
	page := &corev1.SecretList{}
	for err := range read.Pages(ctx, c, page, pageSize, client.InNamespace(namespace)) {
		if err != nil {
			return Report{}, fmt.Errorf("listing Secrets of namespace %s: %w", namespace, err)
		}
		secrets = append(secrets, page.Items...)
	}
	share, _ := strconv.ParseFloat(hc.Annotations[pki.RenewalAnnotation], 64) // what can't be read counts as absent
	return Report{Cluster: client.ObjectKeyFromObject(hc).String(), Certificates: pki.Inventory(secrets, share)}, nil
}

func find(ctx context.Context, c client.Reader, cluster client.ObjectKey) (*hyperv1.HostedCluster, error) {
	hc := &hyperv1.HostedCluster{}
	err := c.Get(ctx, cluster, hc)
	if apierrors.IsNotFound(err) {
		return nil, exit.With(exit.NotFound, fmt.Errorf("there is no HostedCluster %s: `kubectl get hostedclusters -A` lists them", cluster))
	}
	if err != nil {
		return nil, fmt.Errorf("reading HostedCluster %s: %w", cluster, err)
	}
	return hc, nil
}

// table prints reports, with a column for the hosted cluster if that is asked for. The first certificate to end is at the top.
func table(w io.Writer, named bool, now time.Time, reports ...Report) error {
	type line struct {
		ends time.Time
		row  []string
	}
	var lines []line
	for _, report := range reports {
		for _, c := range report.Certificates {
			row := cells(c, now)
			if named {
				row = append([]string{report.Cluster}, row...)
			}
			lines = append(lines, line{c.NotAfter, row})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.ends.Compare(b.ends) })
	header := []string{"SECRET", "KEY", "KIND", "SUBJECT", "ISSUER", "ENDS IN", "KEPT BY", "NEXT"}
	if named {
		header = append([]string{"CLUSTER"}, header...)
	}
	rows := [][]string{header}
	for _, l := range lines {
		rows = append(rows, l.row)
	}
	return output.Table(w, rows)
}

func cells(c pki.Certificate, now time.Time) []string {
	ends := "ended"
	if left := c.NotAfter.Sub(now); left > 0 {
		ends = duration.HumanDuration(left)
	}
	next := "-"
	if c.NextAt != nil {
		next = c.Next + " " + c.NextAt.Format(time.DateOnly)
	}
	return []string{c.Secret, c.Key, string(c.Kind), strconv.Quote(c.Subject), strconv.Quote(c.Issuer), ends, string(c.Keeper), next}
}
