package hostedcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"hcp.internal/platform/internal/operator"
)

// CapacityModes are the values of --control-plane-capacity.
var CapacityModes = []string{CapacityAuto, CapacityWait, CapacityIgnore}

// EnvCapacity is the variable that the flag's default comes from.
const EnvCapacity = "CONTROL_PLANE_CAPACITY"

// growsFresh is how long an answer of growth is believed. It is asked for only while something waits.
const growsFresh = time.Minute

// autoscalerStatus is where the cluster autoscaler of Kubernetes reports, also those of clouds that run it out of sight.
var autoscalerStatus = client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "cluster-autoscaler-status"}

// growKinds are kinds whose objects say that something adds nodes when pods wait.
var growKinds = []schema.GroupKind{
	{Group: "karpenter.sh", Kind: "NodePool"},
	{Group: "autoscaling.openshift.io", Kind: "MachineAutoscaler"},
}

// growth finds out whether the management cluster adds nodes when pods wait for them. There, pods that are held back would never have it add one.
type growth struct {
	live   client.Reader
	mapper meta.RESTMapper
	clock  clock.PassiveClock

	mu  sync.Mutex
	why string
	at  time.Time
}

// Why says what adds nodes; empty: nothing that we know of.
func (g *growth) Why(ctx context.Context) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.clock.Now(); g.at.IsZero() || now.Sub(g.at) > growsFresh {
		why, err := g.look(ctx)
		if err != nil {
			return "", err
		}
		g.why, g.at = why, now
	}
	return g.why, nil
}

func (g *growth) look(ctx context.Context) (string, error) {
	err := g.live.Get(ctx, autoscalerStatus, &corev1.ConfigMap{})
	if err == nil {
		return "ConfigMap " + autoscalerStatus.String() + " tells of a cluster autoscaler", nil
	}
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("looking for a cluster autoscaler: %w", err)
	}
	for _, kind := range growKinds {
		mapping, err := g.mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("looking for kind %s: %w", kind, err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
		err = g.live.List(ctx, list, client.Limit(1))
		switch {
		case apierrors.IsForbidden(err):
			// To make pods that wait is a smaller evil than to wait for ever.
			return fmt.Sprintf("there may be a %s, which the operator may not look at", kind), nil
		case err != nil:
			return "", fmt.Errorf("listing %s: %w", kind, err)
		case len(list.Items) > 0:
			return fmt.Sprintf("%s %s is there", kind, list.Items[0].Name), nil
		}
	}
	return "", nil
}

// CheckCapacityMode is what a flag or variable with a mode is checked with; name is what it is called.
func CheckCapacityMode(name, mode string) error {
	if slices.Contains(CapacityModes, mode) {
		return nil
	}
	return fmt.Errorf("%s %q: must be one of %s", name, mode, strings.Join(CapacityModes, ", "))
}

// newCapacity makes the one of an operator; nil when the mode ignores capacity.
func newCapacity(r *Reconciler, mode string) *Capacity {
	if mode == CapacityIgnore {
		return nil
	}
	c := &Capacity{
		Reader: r.Client, Clock: r.Clock, Operator: operator.Identity{PrivateCAPI: r.PrivateCAPI, Scope: r.Scope},
		Grows: func(context.Context) (string, error) { return "", nil },
		wake:  make(chan event.GenericEvent, wakeBuffer),
	}
	if mode == CapacityAuto {
		g := &growth{live: r.Live, mapper: r.Management.Mapper, clock: r.Clock}
		c.Grows = g.Why
	}
	d := &demands{management: r.Management, capabilities: r.Capabilities, controlPlaneOperator: r.ControlPlaneOperator}
	c.Demands = d.of
	return c
}

// wakeBuffer is more than one nudge sends.
const wakeBuffer = 4 * woken
