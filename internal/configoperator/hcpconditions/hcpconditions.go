// Package hcpconditions writes conditions of a HostedControlPlane, whose list has many writers: by server-side apply, each controller as a field owner of its
// own, so that none waits for another.
package hcpconditions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

// Apply makes want all the conditions that owner has, and returns those that differed. It writes nothing when none does and none of the types in gone, which
// owner had before, is still there. An apply takes away what it doesn't speak of, so want must be complete. That hcp is gone is no error.
func Apply(ctx context.Context, c client.Client, owner client.FieldOwner, now time.Time, hcp *hyperv1.HostedControlPlane, want []metav1.Condition, gone ...string) (changed []metav1.Condition, err error) {
	items := []any{}
	var types []string
	for _, w := range want {
		old := conditions.Get(hcp.Status.Conditions, w.Type)
		one := []metav1.Condition{}
		if old != nil {
			one = append(one, *old)
		}
		conditions.Set(&one, now, w)
		if old == nil || *old != one[0] {
			changed = append(changed, one[0])
		}
		types = append(types, w.Type)
		items = append(items, map[string]any{
			"type": one[0].Type, "status": string(one[0].Status), "reason": one[0].Reason, "message": one[0].Message,
			"observedGeneration": one[0].ObservedGeneration, "lastTransitionTime": one[0].LastTransitionTime.UTC().Format(time.RFC3339),
		})
	}
	stale := slices.ContainsFunc(gone, func(t string) bool { return conditions.Get(hcp.Status.Conditions, t) != nil })
	if len(changed) == 0 && !stale {
		return nil, nil
	}
	status := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": hcp.Namespace, "name": hcp.Name, "uid": string(hcp.UID)},
		"status":   map[string]any{"conditions": items},
	}}
	status.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedControlPlane"))
	err = c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), owner, client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("writing the conditions %s of HostedControlPlane %s: %w", strings.Join(append(types, gone...), ", "), klog.KObj(hcp), err)
	}
	return changed, nil
}

// ApplyOne is Apply for an owner of one condition at most: it makes want that condition, or takes the one of that type away when want is nil. What differed is logged.
func ApplyOne(ctx context.Context, c client.Client, owner client.FieldOwner, now time.Time, hcp *hyperv1.HostedControlPlane, conditionType string, want *metav1.Condition) error {
	if want == nil {
		_, err := Apply(ctx, c, owner, now, hcp, nil, conditionType)
		return err
	}
	changed, err := Apply(ctx, c, owner, now, hcp, []metav1.Condition{*want})
	for _, c := range changed {
		ctrl.LoggerFrom(ctx).Info("reported", "hostedControlPlane", klog.KObj(hcp), "condition", c.Type, "status", c.Status, "message", c.Message)
	}
	return err
}
