package trouble

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/controlplane/component"
)

// Bounds of what is read: a control plane has some fifty pods, and of warnings the last are enough.
const (
	maxPods   = 500
	maxClaims = 50
	maxEvents = 200
)

// Look reads what is needed of a namespace, past caches, and finds the troubles of the named components; no name means all. deployments and
// sets are the workloads as the caller has them. It costs two requests, and one more when events may tell.
func Look(ctx context.Context, reader client.Reader, namespace string, deployments []appsv1.Deployment, sets []appsv1.StatefulSet, now time.Time, names ...string) ([]Trouble, error) {
	selector := labels.NewSelector()
	operator := selection.Exists
	if len(names) > 0 {
		operator = selection.In
	}
	of, err := labels.NewRequirement(component.ControlPlaneComponentLabel, operator, names)
	if err != nil {
		return nil, fmt.Errorf("selecting pods: %w", err)
	}
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector.Add(*of)}, client.Limit(maxPods)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", namespace, err)
	}
	in := Input{Pods: pods.Items, Deployments: deployments, StatefulSets: sets, Now: now, Warnings: map[string]string{}}
	if len(sets) > 0 {
		if in.Claims, err = unbound(ctx, reader, namespace); err != nil {
			return nil, err
		}
	}
	if in.needsEvents() {
		if err := in.readWarnings(ctx, reader, namespace); err != nil {
			return nil, err
		}
	}
	return Find(in), nil
}

// needsEvents tells whether only events can say more.
func (in *Input) needsEvents() bool {
	if len(in.Claims) > 0 {
		return true
	}
	for i := range in.StatefulSets {
		if in.StatefulSets[i].Status.Replicas < ptr.Deref(in.StatefulSets[i].Spec.Replicas, 1) {
			return true
		}
	}
	for i := range in.Pods {
		s := in.Pods[i].Status
		for _, c := range s.ContainerStatuses {
			if creating(c) && s.StartTime != nil && in.Now.Sub(s.StartTime.Time) > slowStart {
				return true
			}
		}
	}
	return false
}

func unbound(ctx context.Context, reader client.Reader, namespace string) ([]Claim, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(maxClaims)); err != nil {
		return nil, fmt.Errorf("listing the volume claims of %s: %w", namespace, err)
	}
	var out []Claim
	for _, c := range list.Items {
		if c.Status.Phase != corev1.ClaimBound {
			out = append(out, Claim{Name: c.Name, Component: c.Labels["app"]})
		}
	}
	return out, nil
}

// readWarnings reads the last warning about each object.
func (in *Input) readWarnings(ctx context.Context, reader client.Reader, namespace string) error {
	list := &corev1.EventList{}
	err := reader.List(ctx, list, client.InNamespace(namespace), client.Limit(maxEvents), client.MatchingFields{"type": corev1.EventTypeWarning})
	if err != nil {
		return fmt.Errorf("listing the events of %s: %w", namespace, err)
	}
	last := map[string]time.Time{}
	for _, e := range list.Items {
		key := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
		at := e.LastTimestamp.Time
		if e.Series != nil {
			at = e.Series.LastObservedTime.Time
		} else if at.IsZero() {
			at = e.EventTime.Time
		}
		if !at.Before(last[key]) {
			last[key], in.Warnings[key] = at, e.Message
		}
	}
	for i := range in.Claims {
		in.Claims[i].Warning = in.Warnings["PersistentVolumeClaim/"+in.Claims[i].Name]
	}
	return nil
}
