package destroy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/progress"
)

// NodePoolOptions says which NodePool to destroy.
type NodePoolOptions struct {
	Connect   connect.Flags
	Name      string
	Namespace string
	// Timeout is how long its machines may take to be drained and to go.
	Timeout time.Duration
	// Wait until it is gone; false: return once its deletion has begun.
	Wait bool

	Clock clock.WithTicker // nil: the real one
}

// NewNodePoolOptions returns the defaults.
func NewNodePoolOptions() NodePoolOptions {
	return NodePoolOptions{Namespace: create.DefaultNamespace, Timeout: 30 * time.Minute, Wait: true}
}

// NodePool destroys a NodePool with its machines and prints progress to out. It may be called again at any time. One that doesn't exist
// gives ErrNotFound.
func NodePool(ctx context.Context, o NodePoolOptions, out io.Writer) error {
	if o.Name == "" {
		return errors.New("--name is required")
	}
	c, err := o.Connect.Client()
	if err != nil {
		return err
	}
	return nodePool(ctx, o, c, out)
}

func nodePool(ctx context.Context, o NodePoolOptions, c client.Client, out io.Writer) error {
	p := progress.New(out, o.Clock)
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	pool := &hyperv1.NodePool{}
	if err := c.Get(ctx, key, pool); apierrors.IsNotFound(err) {
		return exit.With(exit.NotFound, fmt.Errorf("NodePool %s: %w; check its name and --namespace", key, ErrNotFound))
	} else if err != nil {
		return fmt.Errorf("reading NodePool %s: %w", key, err)
	}
	uid, protected := pool.UID, checkProtection("NodePool", pool)
	if o.Connect.DryRun != connect.NoDryRun {
		return cmp.Or(previewPool(ctx, o, c, pool, out), protected)
	}
	if protected != nil {
		return protected
	}
	if pool.DeletionTimestamp.IsZero() {
		if err := c.Delete(ctx, pool, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting NodePool %s: %w", key, err)
		}
		p.Printf("deleted NodePool %s; its nodes are drained before their machines go", key)
	}
	if !o.Wait {
		return nil
	}
	err := within(ctx, o.Timeout, func(ctx context.Context) error {
		return p.Until(ctx, fmt.Sprintf("NodePool %s to go", key), func(ctx context.Context) (progress.State, error) {
			pool := &hyperv1.NodePool{}
			switch err := c.Get(ctx, key, pool); {
			case apierrors.IsNotFound(err):
				return progress.Done(), nil
			case err != nil:
				return progress.State{}, err
			case pool.UID != uid:
				return progress.Done(), nil // somebody made a new one of the same name
			}
			return progress.Waiting("%s", waitsFor(pool)), nil
		})
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w; run it again to go on waiting. A node with pods that a PodDisruptionBudget protects is held until spec.nodeDrainTimeout of the NodePool is over; if that is unset, for ever", err)
	}
	return err
}

// waitsFor is what the controller says of the deletion.
func waitsFor(pool *hyperv1.NodePool) string {
	for _, c := range pool.Status.Conditions {
		if c.Type == hyperv1.NodePoolReadyConditionType && c.ObservedGeneration >= pool.Generation && c.Message != "" {
			return c.Message
		}
	}
	return fmt.Sprintf("the operator, which has not said yet what it waits for; finalizers %v", pool.Finalizers)
}

func nodePoolCommand() *cobra.Command {
	o := NewNodePoolOptions()
	cmd := &cobra.Command{
		Use:   "nodepool",
		Short: "Destroy a NodePool with its machines",
		Long: `Destroy a NodePool: its nodes are drained, then their machines are deleted. The hosted cluster and its other NodePools stay.

The command prints what it is waiting for. You can interrupt it and run it again at any time.`,
		Example: `  hypershift destroy nodepool --name demo
  # What would go?
  hypershift destroy nodepool --name demo --dry-run
  # Only begin
  hypershift destroy nodepool --name demo --wait=false`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return NodePool(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Name, "name", o.Name, "Name of the NodePool (required)")
	fs.StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "Namespace of the NodePool")
	fs.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long the deletion of its machines may take")
	fs.BoolVar(&o.Wait, "wait", o.Wait, "Wait until nothing is left")
	o.Connect.AddFlags(fs)
	o.Connect.DryRun.AddFlag(cmd)
	connect.CompleteNodePools(cmd, &o.Connect, "name", &o.Namespace)
	connect.CompleteNamespaces(cmd, &o.Connect, "namespace")
	return cmd
}
