package endpoints

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

const (
	// maxWarnings in a message: the newest say what happens now.
	maxWarnings = 3
	// maxEvents read: events about one Service; more would not end up in the message.
	maxEvents = 50
	// maxWarningLength of one event's text, which comes from a cloud controller.
	maxWarningLength = 300
)

// Observe reads what StatusOf looks at. events must not be cached: events are only read while an address is missing, and a cache of them would
// cost every control plane memory for good.
func Observe(ctx context.Context, services, events client.Reader, hcp *hyperv1.HostedControlPlane) (Live, error) {
	svc := &corev1.Service{}
	key := client.ObjectKey{Namespace: hcp.Namespace, Name: APIServiceName}
	if err := services.Get(ctx, key, svc); apierrors.IsNotFound(err) {
		return Live{}, nil
	} else if err != nil {
		return Live{}, fmt.Errorf("reading service %s: %w", key, err)
	}
	live := Live{API: svc}
	if StatusOf(hcp, live).Ready() {
		return live, nil
	}
	list := &corev1.EventList{}
	err := events.List(ctx, list, client.InNamespace(hcp.Namespace), client.Limit(maxEvents), client.MatchingFieldsSelector{
		Selector: fields.SelectorFromSet(fields.Set{"involvedObject.kind": "Service", "involvedObject.name": APIServiceName, "type": corev1.EventTypeWarning}),
	})
	if err != nil {
		return Live{}, fmt.Errorf("listing events about service %s: %w", key, err)
	}
	live.Warnings = warnings(list.Items)
	return live, nil
}

func warnings(events []corev1.Event) []string {
	seenLast := func(e corev1.Event) time.Time {
		if !e.LastTimestamp.IsZero() {
			return e.LastTimestamp.Time
		}
		return e.EventTime.Time
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		return cmp.Or(seenLast(b).Compare(seenLast(a)), cmp.Compare(a.Name, b.Name))
	})
	var out []string
	for _, e := range events {
		text := e.Reason + ": " + e.Message
		if len(text) > maxWarningLength {
			text = text[:maxWarningLength] + "…"
		}
		if len(out) < maxWarnings && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
