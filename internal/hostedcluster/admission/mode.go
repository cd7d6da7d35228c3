package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"hcp.internal/platform/internal/contract/scope"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/operator"
)

// modes are the values of --control-plane-capacity.
var modes = []string{Auto, Wait, Ignore}

// EnvMode is the variable that the flag's default comes from.
const EnvMode = "CONTROL_PLANE_CAPACITY"

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
		return "ConfigMap " + autoscalerStatus.String() + " indicates a cluster autoscaler", nil
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
			return fmt.Sprintf("there may be a %s, which the operator has no permission to read", kind), nil
		case err != nil:
			return "", fmt.Errorf("listing %s: %w", kind, err)
		case len(list.Items) > 0:
			return fmt.Sprintf("%s %s is there", kind, list.Items[0].Name), nil
		}
	}
	return "", nil
}

// CheckMode is what a flag or variable with a mode is checked with; name is what it is called.
func CheckMode(name, mode string) error {
	if slices.Contains(modes, mode) {
		return nil
	}
	return fmt.Errorf("%s %q: must be one of %s", name, mode, strings.Join(modes, ", "))
}

// Options are what a queue is made from.
type Options struct {
	Reader client.Reader // from caches, see KeepPod
	Live   client.Reader // uncached
	Clock  clock.PassiveClock

	Management   *management.Cluster
	Capabilities operator.Capabilities
	// Operator tells which HostedClusters are in the queue.
	Operator scope.Identity
	// ControlPlaneOperator is what operators of control planes are told of the installation.
	ControlPlaneOperator cpo.Options
	// Render makes the control plane of a HostedCluster as it would be without its NodePools.
	Render func(*hyperv1.HostedCluster) *hyperv1.HostedControlPlane
}

// New makes the queue of an operator; nil when the mode ignores capacity.
func New(mode string, o Options) *Queue {
	if mode == Ignore {
		return nil
	}
	c := &Queue{
		Reader: o.Reader, Clock: o.Clock, Operator: o.Operator, Render: o.Render,
		Grows: func(context.Context) (string, error) { return "", nil },
		Wake:  make(chan event.GenericEvent, wakeBuffer),
	}
	if mode == Auto {
		g := &growth{live: o.Live, mapper: o.Management.Mapper, clock: o.Clock}
		c.Grows = g.Why
	}
	d := &demands{management: o.Management, capabilities: o.Capabilities, controlPlaneOperator: o.ControlPlaneOperator}
	c.Demands = d.of
	return c
}

// wakeBuffer is more than one nudge sends.
const wakeBuffer = 4 * woken
