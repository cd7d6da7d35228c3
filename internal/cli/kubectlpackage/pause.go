package kubectlpackage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/kube/conditions"
)

// pauseTime is how long pause and unpause wait for the package to follow.
const pauseTime = 60 * time.Second

func (o *Options) pause(paused bool) *cobra.Command {
	var namespace, message string
	var dry connect.DryRun
	verb, short := "unpause", "Go on with what a package has"
	if paused {
		verb, short = "pause", "Stop changing what a package has"
	}
	cmd := &cobra.Command{
		Use:     verb + " <resource> <name> | <resource>/<name>",
		Short:   short,
		Example: fmt.Sprintf("  kubectl package %s package/my-app -n default", verb),
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.setPaused(cmd.Context(), args, namespace, message, paused, dry)
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "Namespace of the package")
	cmd.Flags().StringVarP(&message, "message", "m", "", "Why it is paused; has no effect on unpause")
	dry.AddFlag(cmd)
	return cmd
}

func (o *Options) setPaused(ctx context.Context, args []string, namespace, message string, paused bool, dry connect.DryRun) error {
	kind, name, err := resource(args)
	if err != nil {
		return err
	}
	s, isPackage, ok := scopeOf(kind)
	if !ok || !isPackage {
		return fmt.Errorf("invalid resource name: expected `clusterpackage`/`package`, got `%s`", kind)
	}
	if s.IsCluster() {
		namespace = ""
	}
	flags := o.flags
	flags.DryRun = dry
	plain, err := flags.Client()
	if err != nil {
		return err
	}
	c := s.Client(plain)
	p := &v1alpha1.Package{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p); err != nil {
		return fmt.Errorf("getting package object: %w", err)
	}
	// Going on gives the field up: who keeps false owns it, and a rollout that pauses all packages is refused here.
	var note, value any
	verb := "unpausing"
	if paused {
		note, value, verb = message, true, "pausing"
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{v1alpha1.PauseMessageAnnotation: note}},
		"spec":     map[string]any{"paused": value},
	})
	if err != nil {
		return fmt.Errorf("encoding the change: %w", err)
	}
	if err := c.Patch(ctx, p, client.RawPatch(types.MergePatchType, data), client.FieldOwner(connect.FieldOwner)); err != nil {
		return fmt.Errorf("%s package: %w", verb, err)
	}
	if dry != connect.NoDryRun {
		return nil
	}
	want := v1alpha1.ConditionAvailable
	if paused {
		want = v1alpha1.ConditionPaused
	}
	err = wait.PollUntilContextTimeout(ctx, o.PollInterval, pauseTime, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return false, err
		}
		return conditions.IsTrue(p.Status.Conditions, want) && (paused || !conditions.IsTrue(p.Status.Conditions, v1alpha1.ConditionPaused)), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s %s to be %s: %w", kind, name, want, err)
	}
	return nil
}
