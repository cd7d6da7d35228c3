package kubectlpackage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/scope"
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
			of, err := o.pausable(args, namespace)
			if err != nil {
				return err
			}
			if namespace == "" && of.key.Namespace != "" {
				// Not on standard output, which is as published: empty.
				fmt.Fprintf(cmd.ErrOrStderr(), "using namespace %s, that of the kubeconfig's context; --namespace names another\n", of.key.Namespace)
			}
			return o.setPaused(cmd.Context(), cmd.ErrOrStderr(), of, message, paused, dry)
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", pausableHelp)
	cmd.Flags().StringVarP(&message, "message", "m", "", "Why it is paused; has no effect on unpause")
	dry.AddFlag(cmd)
	return cmd
}

const pausableHelp = "Namespace of the package (default: the one of the kubeconfig's context)"

// pausable is a package that is paused, or goes on.
type pausable struct {
	kind  string // as it was written
	key   client.ObjectKey
	scope scope.Scope
}

// String names it as messages do: "package shop/web", "clusterpackage/web".
func (p pausable) String() string {
	if p.key.Namespace == "" {
		return p.kind + "/" + p.key.Name
	}
	return p.kind + " " + p.key.String()
}

// pausable is the package that arguments name. An empty namespace becomes the context's where there is one.
func (o *Options) pausable(args []string, namespace string) (pausable, error) {
	kind, _, err := resource(args)
	if err != nil {
		return pausable{}, err
	}
	if _, isPackage, _ := scopeOf(kind); !isPackage {
		return pausable{}, fmt.Errorf("invalid resource name: expected `clusterpackage`/`package`, got `%s`", kind)
	}
	kind, name, _, err := o.target(args, &namespace)
	s, _, _ := scopeOf(kind)
	return pausable{kind: kind, key: client.ObjectKey{Namespace: namespace, Name: name}, scope: s}, err
}

func (o *Options) setPaused(ctx context.Context, said io.Writer, of pausable, message string, paused bool, dry connect.DryRun) error {
	flags := o.flags
	flags.DryRun = dry
	plain, err := flags.Client()
	if err != nil {
		return err
	}
	c := of.scope.Client(plain)
	p := &v1alpha1.Package{}
	if err := c.Get(ctx, of.key, p); err != nil {
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
	return o.followPause(ctx, said, c, of, paused)
}

// followPause waits until a package whose pause was set, or ended, has followed.
func (o *Options) followPause(ctx context.Context, said io.Writer, c client.Client, of pausable, paused bool) error {
	want := v1alpha1.ConditionAvailable
	if paused {
		want = v1alpha1.ConditionPaused
	}
	patience := progress.NewPatience(said, nil)
	_ = patience.Bear(ctx, nil) // the change is written, so somebody answers there
	err := wait.PollUntilContextTimeout(ctx, o.PollInterval, pauseTime, true, func(ctx context.Context) (bool, error) {
		p := &v1alpha1.Package{}
		if err := c.Get(ctx, of.key, p); err != nil {
			return false, patience.Bear(ctx, err)
		}
		_ = patience.Bear(ctx, nil)
		return conditions.IsTrue(p.Status.Conditions, want) && (paused || !conditions.IsTrue(p.Status.Conditions, v1alpha1.ConditionPaused)), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be %s: %w", of, want, err)
	}
	return nil
}
