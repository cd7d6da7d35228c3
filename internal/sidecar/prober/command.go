package prober

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/sidecar/kubeapi"
)

// Command is `hcp-sidecar availability-prober`.
func Command() *cobra.Command {
	var (
		conditions            Conditions
		kubeconfig, podsGone  string
		kinds                 []string
		timeout               time.Duration
		errNoKubeconfigNeeded = errors.New("--kubeconfig is needed for the conditions asked for")
	)
	cmd := &cobra.Command{
		Use:   "availability-prober",
		Short: "Wait until a hosted API server answers and serves what is needed, then exit 0",
		Example: `  hcp-sidecar availability-prober --target=https://kube-apiserver:6443/readyz

  # ... and until it serves two kinds
  hcp-sidecar availability-prober --target=https://kube-apiserver:6443/readyz --kubeconfig=/var/kubeconfig/kubeconfig \
    --required-api=apps,v1,Deployment --required-api=,v1,Namespace`,
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := complete(&conditions, kinds, podsGone); err != nil {
				return err
			}
			p := &Prober{Conditions: conditions, Log: cmd.OutOrStdout(), Now: time.Now, Connect: func() (*kubeapi.Client, error) {
				if kubeconfig == "" {
					return nil, errNoKubeconfigNeeded
				}
				return kubeapi.FromKubeconfig(kubeconfig)
			}}
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			return p.Wait(ctx)
		},
	}
	f := cmd.Flags()
	f.StringVar(&conditions.Target, "target", "", "URL that must answer with a 2xx status")
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster for the conditions below")
	f.StringArrayVar(&kinds, "required-api", nil, "group,version,kind that must be served; may be repeated")
	f.BoolVar(&conditions.Infrastructure, "wait-for-infrastructure-resource", false, "wait for the cluster's Infrastructure object")
	f.StringVar(&podsGone, "wait-for-labeled-pods-gone", "", "namespace/label=value of pods that must be gone")
	f.StringVar(&conditions.ClusterRoleBinding, "wait-for-cluster-rolebinding", "", "name of a ClusterRoleBinding that must exist")
	f.DurationVar(&timeout, "timeout", 0, "give up after this long; 0 waits for ever")
	return cmd
}

// complete parses what the flags gave as text.
func complete(c *Conditions, kinds []string, podsGone string) error {
	if c.Target == "" {
		return errors.New("--target must be given: the URL to wait for")
	}
	if u, err := url.Parse(c.Target); err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return fmt.Errorf("--target %q must be an http or https URL", c.Target)
	}
	for _, s := range kinds {
		kind, err := ParseKind(s)
		if err != nil {
			return fmt.Errorf("--required-api: %w", err)
		}
		c.Kinds = append(c.Kinds, kind)
	}
	if podsGone != "" {
		pods, err := ParsePods(podsGone)
		if err != nil {
			return fmt.Errorf("--wait-for-labeled-pods-gone: %w", err)
		}
		c.PodsGone = &pods
	}
	return nil
}
