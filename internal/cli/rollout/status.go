package rollout

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/kube/conditions"
)

// Status is "rollout status".
func Status() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	watch, timeout := true, time.Duration(0)
	cmd := &cobra.Command{
		Use:   "status hostedclusterpackage/NAME",
		Short: "Follow a rollout until it ends",
		Example: `  kubectl package rollout status hostedclusterpackage/addon --timeout 1h
  kubectl package rollout status hostedclusterpackage/addon --watch=false`,
	}
	prepare(cmd, &flags, func(cmd *cobra.Command, c client.Client, owner *packagesv1.HostedClusterPackage) error {
		if format != output.Text {
			return format.Value(cmd.OutOrStdout(), owner.Status)
		}
		if !watch {
			done, text := describe(owner)
			if done {
				text = "complete: " + text
			}
			fmt.Fprintln(cmd.OutOrStdout(), text)
			return nil
		}
		ctx, cancel := connect.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		var last string
		err := progress.New(cmd.ErrOrStderr(), nil).Until(ctx, "rollout of "+owner.Name, func(ctx context.Context) (progress.State, error) {
			now, err := get(ctx, c, owner.Name)
			if err != nil {
				return progress.State{}, err
			}
			done, text := describe(now)
			if last = text; done {
				return progress.Done(), nil
			}
			return progress.Waiting("%s", text), nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), "complete: "+last)
		return nil
	})
	cmd.Flags().BoolVarP(&watch, "watch", "w", watch, "Wait until the rollout ends")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "How long to wait; 0 for as long as it takes")
	format.AddFlag(cmd)
	return cmd
}

// describe says how far a rollout is, and whether it is complete.
func describe(p *packagesv1.HostedClusterPackage) (bool, string) {
	s := p.Status
	if int64(s.ObservedGeneration) < p.Generation {
		return false, "the controller has not seen the newest template yet, or could not apply it; `kubectl events --for hostedclusterpackage/" + p.Name + "` tells"
	}
	text := fmt.Sprintf("%d/%d updated, %d/%d available.", s.UpdatedPackages, s.TotalPackages, s.AvailablePackages, s.TotalPackages)
	for _, part := range s.Partitions {
		if part.UpdatedPackages < part.TotalPackages || part.AvailablePackages < part.TotalPackages {
			text += fmt.Sprintf(" Group %s: %d/%d.", part.Name, part.UpdatedPackages, part.TotalPackages)
		}
	}
	if c := conditions.Get(s.Conditions, packagesv1.ConditionProgressing); c != nil {
		text += " " + c.Message
	}
	return conditions.IsFalse(s.Conditions, packagesv1.ConditionProgressing), text
}
