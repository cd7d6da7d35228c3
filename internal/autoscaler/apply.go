package autoscaler

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/patch"
)

// outcome is what was done of a plan.
type outcome struct {
	grown   []Growth
	removed []Removal
	// refused tells that removing has failed, and not because somebody had written the NodePool since it was read: the next pass decides anew
	// after that, and has no reason to wait.
	refused bool
	err     error
}

// apply carries a plan out. A group that fails does not stop the others.
func (l *Loop) apply(ctx context.Context, p Plan, now time.Time) (done outcome) {
	var errs []error
	for _, name := range p.Unmark {
		errs = append(errs, l.mark(ctx, name, nil))
	}
	for _, g := range p.Grow {
		if err := l.scale(ctx, g.Group, g.To); err != nil {
			errs = append(errs, err)
			continue
		}
		ctrl.LoggerFrom(ctx).Info("asked for more machines", "nodePool", g.Group.Name, "from", g.From, "to", g.To, "reason", g.Reason)
		done.grown = append(done.grown, g)
	}
	for group, list := range byGroup(p.Remove) {
		if err := l.remove(ctx, group, list, now); err != nil {
			errs = append(errs, err)
			done.refused = done.refused || !apierrors.IsConflict(err)
			continue
		}
		done.removed = append(done.removed, list...)
	}
	done.err = errors.Join(errs...)
	return done
}

func byGroup(list []Removal) map[*Group][]Removal {
	out := map[*Group][]Removal{}
	for _, r := range list {
		out[r.Group] = append(out[r.Group], r)
	}
	return out
}

// remove marks the machines and then asks for so many fewer. When it ends in between, the next pass goes on with it or takes the
// marks back.
func (l *Loop) remove(ctx context.Context, g *Group, list []Removal, now time.Time) error {
	for _, r := range list {
		if err := l.mark(ctx, r.Machine, ptr.To(markPrefix+now.UTC().Format(time.RFC3339))); err != nil {
			return err
		}
	}
	if err := l.scale(ctx, g, g.Replicas-len(list)); err != nil {
		return err
	}
	for _, r := range list {
		ctrl.LoggerFrom(ctx).Info("asked for fewer machines", "nodePool", g.Name, "machine", r.Machine, "node", r.Node, "reason", r.Reason)
	}
	return nil
}

// mark sets the annotation by which Cluster API deletes this Machine before others, or removes it if value is nil.
func (l *Loop) mark(ctx context.Context, machine string, value *string) error {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: machine}}
	apply.Count("Machine", "patch", FieldOwner)
	if err := l.Management.Patch(ctx, m, patch.Annotation(DeleteAnnotation, value), client.FieldOwner(FieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("marking Machine %s/%s: %w", l.Namespace, machine, err)
	}
	return nil
}

// scale sets the number of replicas of the version that was read. It is a conflict when that has changed: the next pass decides anew.
func (l *Loop) scale(ctx context.Context, g *Group, replicas int) error {
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Object.GetNamespace(), Name: g.Object.GetName(), ResourceVersion: g.Object.GetResourceVersion()},
		Spec:       autoscalingv1.ScaleSpec{Replicas: int32(min(max(replicas, g.Min), g.Max))},
	}
	apply.Count("Scale", "update", FieldOwner)
	target := g.Object.DeepCopyObject().(client.Object)
	if err := l.Management.SubResource("scale").Update(ctx, target, client.WithSubResourceBody(scale), client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("setting the number of machines of NodePool %s to %d: %w", g.Name, replicas, err)
	}
	return nil
}
