// Package certificates are the commands that show the certificates of a hosted cluster's control plane, and ask for new authorities.
package certificates

import (
	"context"
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
	var authorities bool
	name, namespace := "", connect.DefaultNamespace
	cmd := &cobra.Command{
		Use:   "certificates",
		Short: "List the certificates of a hosted cluster's control plane",
		Long: `List the certificates of a hosted cluster's control plane: when they end, whose they are to replace, and what happens to each next. The first one to
end is at the top. Keys are never shown.`,
		Example: `  hypershift get certificates demo
  hypershift get certificates demo --authorities
  hypershift get certificates demo -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := flags.Client()
			if err != nil {
				return err
			}
			report, err := List(cmd.Context(), c, client.ObjectKey{Namespace: namespace, Name: name})
			if err != nil {
				return err
			}
			if authorities {
				report.Certificates = slices.DeleteFunc(report.Certificates, func(c pki.Certificate) bool { return c.Kind == pki.Leaf })
			}
			if format != output.Text {
				return format.Value(cmd.OutOrStdout(), report)
			}
			return table(cmd.OutOrStdout(), report, time.Now())
		},
	}
	clusterFlags(cmd, &flags, &name, &namespace)
	cmd.Flags().BoolVar(&authorities, "authorities", false, "Only certificate authorities")
	format.AddFlag(cmd)
	return cmd
}

func clusterFlags(cmd *cobra.Command, flags *connect.Flags, name, namespace *string) {
	cmd.Flags().StringVar(name, "name", "", "Name of the HostedCluster (required)")
	cmd.Flags().StringVarP(namespace, "namespace", "n", *namespace, "Namespace of the HostedCluster")
	flags.AddFlags(cmd.Flags())
	if err := cmd.MarkFlagRequired("name"); err != nil {
		panic(err) // a misspelt flag above
	}
	connect.CompleteHostedClusters(cmd, flags, "name", namespace)
	connect.CompleteNamespaces(cmd, flags, "namespace")
}

// List reads the certificates of a HostedCluster's control plane.
func List(ctx context.Context, c client.Reader, cluster client.ObjectKey) (Report, error) {
	hc, err := find(ctx, c, cluster)
	if err != nil {
		return Report{}, err
	}
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
	return Report{Cluster: cluster.String(), Certificates: pki.Inventory(secrets, share)}, nil
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

func table(w io.Writer, report Report, now time.Time) error {
	rows := [][]string{{"SECRET", "KEY", "KIND", "SUBJECT", "ISSUER", "ENDS IN", "KEPT BY", "NEXT"}}
	for _, c := range report.Certificates {
		ends := "ended"
		if left := c.NotAfter.Sub(now); left > 0 {
			ends = duration.HumanDuration(left)
		}
		next := "-"
		if c.NextAt != nil {
			next = c.Next + " " + c.NextAt.Format(time.DateOnly)
		}
		rows = append(rows, []string{c.Secret, c.Key, string(c.Kind), strconv.Quote(c.Subject), strconv.Quote(c.Issuer), ends, string(c.Keeper), next})
	}
	return output.Table(w, rows)
}
