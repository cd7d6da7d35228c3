package nodepool

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// transitions are the times from the creation of NodePools until conditions became True. Its series are as many as there are conditions, not as NodePools.
var transitions = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "hypershift_nodepools_transition_seconds",
	Help:    "Time from the creation of a NodePool until a condition became True, while its first version was rolled out.",
	Buckets: []float64{5, 10, 20, 30, 60, 90, 120, 180, 240, 300, 360, 480, 600},
}, []string{"condition"})

// observedTransitions are the conditions that a pool goes through while it comes up.
var observedTransitions = []string{
	hyperv1.NodePoolValidPlatformImageType, hyperv1.NodePoolReachedIgnitionEndpoint, hyperv1.NodePoolAllMachinesReadyConditionType,
	hyperv1.NodePoolAllNodesHealthyConditionType, hyperv1.NodePoolReadyConditionType,
}

// registerMetrics adds the metrics to a registry, unless another operator of a test did.
func registerMetrics(r prometheus.Registerer) error {
	if err := r.Register(transitions); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		return fmt.Errorf("registering metrics of NodePools: %w", err)
	}
	return nil
}

// newlyTrue are the conditions that became True between two states of a pool that has not been rolled out yet, with the time since its creation.
func newlyTrue(before, after *hyperv1.NodePool) map[string]time.Duration {
	if before.Status.Version != "" {
		return nil
	}
	found := map[string]time.Duration{}
	for _, kind := range observedTransitions {
		was, is := findCondition(before.Status.Conditions, kind), findCondition(after.Status.Conditions, kind)
		if is == nil || is.Status != corev1.ConditionTrue || was != nil && was.Status == corev1.ConditionTrue {
			continue
		}
		found[kind] = is.LastTransitionTime.Sub(after.CreationTimestamp.Time)
	}
	return found
}

func observeTransitions(before, after *hyperv1.NodePool) {
	for kind, took := range newlyTrue(before, after) {
		transitions.WithLabelValues(kind).Observe(took.Seconds())
	}
}
