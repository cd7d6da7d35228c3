package endpoints

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/names"
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
//
// payload has the Services of OpenShift payloads read, too, and is what of it is known beforehand; nil for releases of Kubernetes.
func Observe(ctx context.Context, services, events client.Reader, hcp *hyperv1.HostedControlPlane, payload *Payload) (Live, error) {
	live := Live{}
	var err error
	if live.API, err = readService(ctx, services, hcp.Namespace, names.KubeAPIServer); live.API == nil {
		return live, err
	}
	if hasAPIBalancer(hcp) {
		if live.APIBalancer, err = readService(ctx, services, hcp.Namespace, APIBalancerServiceName); err != nil {
			return Live{}, err
		}
	}
	if konnectivity(hcp) != nil {
		if live.Konnectivity, err = readService(ctx, services, hcp.Namespace, KonnectivityServiceName); err != nil {
			return Live{}, err
		}
	}
	if payload != nil {
		if live.Payload, err = observePayload(ctx, services, hcp.Namespace, *payload); err != nil {
			return Live{}, err
		}
	}
	status := StatusOf(hcp, live)
	if status.Ready() {
		return live, nil
	}
	switch {
	case status.APIHost == "" && privateAPI(hcp):
		live.Warnings, err = readWarnings(ctx, events, hcp.Namespace, APIPrivateServiceName)
	case live.Payload != nil && live.Payload.Routing.privateRouter() && status.InternalRouterHost == "":
		live.Payload.RouterWarnings, err = readWarnings(ctx, events, hcp.Namespace, PrivateRouterServiceName)
	case live.Payload != nil && live.Payload.Routing.publicRouter() && status.ExternalRouterHost == "":
		live.Payload.RouterWarnings, err = readWarnings(ctx, events, hcp.Namespace, RouterServiceName)
	case status.APIHost == "":
		live.Warnings, err = readWarnings(ctx, events, hcp.Namespace, apiBalancer(hcp))
	case live.Konnectivity != nil && status.KonnectivityHost == "":
		live.KonnectivityWarnings, err = readWarnings(ctx, events, hcp.Namespace, KonnectivityServiceName)
	case live.Payload != nil && live.Payload.OAuthService != nil:
		live.Payload.OAuthWarnings, err = readWarnings(ctx, events, hcp.Namespace, OAuthServiceName)
	}
	if err != nil {
		return Live{}, err
	}
	return live, nil
}

// observePayload reads the Services that only OpenShift payloads have.
func observePayload(ctx context.Context, services client.Reader, namespace string, known Payload) (*Payload, error) {
	out := known
	out.Aggregated = map[string]string{}
	for _, a := range aggregated {
		svc, err := readService(ctx, services, namespace, a.name)
		if err != nil {
			return nil, err
		}
		if svc != nil && svc.Spec.ClusterIP != corev1.ClusterIPNone {
			out.Aggregated[a.name] = svc.Spec.ClusterIP
		}
	}
	for name, into := range map[string]**corev1.Service{
		OAuthServiceName: &out.OAuthService, RouterServiceName: &out.Router, PrivateRouterServiceName: &out.PrivateRouter, APIPrivateServiceName: &out.APIPrivate,
	} {
		var err error
		if *into, err = readService(ctx, services, namespace, name); err != nil {
			return nil, err
		}
	}
	if !known.Routing.Kind {
		return &out, nil
	}
	var err error
	out.Routes, err = ObserveRoutes(ctx, services, namespace)
	return &out, err
}

// ObserveRoutes gives the Routes of the control plane by their names. A namespace has a handful. The management cluster must serve the kind.
func ObserveRoutes(ctx context.Context, c client.Reader, namespace string) (map[string]LiveRoute, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(RouteKind.GroupVersion().WithKind(RouteKind.Kind + "List"))
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing routes of %s: %w", namespace, err)
	}
	found := map[string]LiveRoute{}
	for i := range list.Items {
		host, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "host")
		found[list.Items[i].GetName()] = LiveRoute{Host: host}
	}
	return found, nil
}

// readService gives nil for a Service that does not exist.
func readService(ctx context.Context, services client.Reader, namespace, name string) (*corev1.Service, error) {
	svc := &corev1.Service{}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if err := services.Get(ctx, key, svc); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading service %s: %w", key, err)
	}
	return svc, nil
}

func readWarnings(ctx context.Context, events client.Reader, namespace, service string) ([]string, error) {
	list := &corev1.EventList{}
	err := events.List(ctx, list, client.InNamespace(namespace), client.Limit(maxEvents), client.MatchingFieldsSelector{
		Selector: fields.SelectorFromSet(fields.Set{"involvedObject.kind": "Service", "involvedObject.name": service, "type": corev1.EventTypeWarning}),
	})
	if err != nil {
		return nil, fmt.Errorf("listing events about service %s/%s: %w", namespace, service, err)
	}
	return warnings(list.Items), nil
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
		text := clip.Over(e.Reason+": "+e.Message, maxWarningLength, "…")
		if len(out) < maxWarnings && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
