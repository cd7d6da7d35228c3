// Package hibernate is `hypershift hibernate` and `hypershift wake`: a hosted cluster sleeps without machines and without a control plane, and keeps its data.
package hibernate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
)

// until is what the flags say of the end of sleep.
type until struct {
	at   string
	span time.Duration
}

// value of the annotation.
func (u until) value(now time.Time) (string, error) {
	switch {
	case u.at != "" && u.span != 0:
		return "", errors.New("--until and --for say the same: leave one out")
	case u.span < 0:
		return "", fmt.Errorf("--for is %s: write a duration such as 12h", u.span)
	case u.span > 0:
		return now.Add(u.span).UTC().Truncate(time.Second).Format(time.RFC3339), nil
	case u.at == "":
		return "true", nil
	}
	at, err := time.Parse(time.RFC3339, u.at)
	if err != nil {
		return "", fmt.Errorf("--until is %q: write a time such as %s", u.at, now.Add(12*time.Hour).UTC().Format(time.RFC3339))
	}
	if !at.After(now) {
		return "", fmt.Errorf("--until is %s, which has passed: write a time to come", u.at)
	}
	return at.UTC().Format(time.RFC3339), nil
}

// Command is `hypershift hibernate`.
func Command() *cobra.Command {
	var u until
	cmd := command("hibernate", "Put a hosted cluster to sleep: no machines, no control plane, all data kept", `Put a hosted cluster to sleep. Its machines are drained and removed, then its control plane is stopped, etcd last. Data of etcd, addresses, certificates and the
sizes of NodePools are kept, and volumes of the hosted cluster, too; what nodes have on their own disks is lost with them. Nobody reaches the API until it wakes, and no
alert fires. Condition Hibernated of the HostedCluster says how far it is.`,
		`  hypershift hibernate demo
  hypershift hibernate demo --for 12h
  hypershift hibernate demo --until 2027-01-04T07:00:00Z`,
		func(now time.Time) (any, string, error) {
			value, err := u.value(now)
			if err != nil {
				return nil, "", err
			}
			said := "goes to sleep; `hypershift wake` wakes it"
			if value != "true" {
				said = "goes to sleep, and wakes at " + value
			}
			return value, said, nil
		})
	cmd.Flags().StringVar(&u.at, "until", "", "Time at which it wakes by itself, such as 2027-01-04T07:00:00Z; never by default")
	cmd.Flags().DurationVar(&u.span, "for", 0, "How long it sleeps, such as 12h; until it is woken by default")
	return cmd
}

// WakeCommand is `hypershift wake`.
func WakeCommand() *cobra.Command {
	return command("wake", "Wake a hosted cluster that sleeps", `Wake a hosted cluster: etcd comes first, then kube-apiserver, then the rest of the control plane, and once that is available the machines of its NodePools are made.`,
		`  hypershift wake demo
  hypershift describe demo`,
		func(time.Time) (any, string, error) { return nil, "wakes", nil })
}

// command annotates a HostedCluster with what wanted says, nil for no annotation.
func command(use, short, long, example string, wanted func(now time.Time) (value any, said string, err error)) *cobra.Command {
	var flags connect.Flags
	name, namespace := "", connect.DefaultNamespace
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			value, said, err := wanted(time.Now())
			if err != nil {
				return err
			}
			c, err := flags.Client()
			if err != nil {
				return err
			}
			cluster := client.ObjectKey{Namespace: namespace, Name: name}
			if err := annotate(cmd.Context(), c, cluster, value); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s%s\n", cluster, said, flags.DryRun.Suffix())
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "Name of the HostedCluster (required)")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", namespace, "Namespace of the HostedCluster")
	flags.AddFlags(cmd.Flags())
	flags.DryRun.AddFlag(cmd)
	if err := cmd.MarkFlagRequired("name"); err != nil {
		panic(err) // a misspelt flag above
	}
	connect.CompleteHostedClusters(cmd, &flags, "name", &namespace)
	connect.CompleteNamespaces(cmd, &flags, "namespace")
	return cmd
}

func annotate(ctx context.Context, c client.Client, cluster client.ObjectKey, value any) error {
	hc := &hyperv1.HostedCluster{}
	hc.Namespace, hc.Name = cluster.Namespace, cluster.Name
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{hyperv1.HibernateAnnotation: value}}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	err = c.Patch(ctx, hc, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(connect.FieldOwner))
	if apierrors.IsNotFound(err) {
		return exit.With(exit.NotFound, fmt.Errorf("there is no HostedCluster %s: `kubectl get hostedclusters -A` lists them", cluster))
	}
	if err != nil {
		return fmt.Errorf("annotating HostedCluster %s: %w", cluster, err)
	}
	return nil
}
