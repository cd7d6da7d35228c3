package metrics

import "github.com/prometheus/client_golang/prometheus"

// States of a rollout.
const (
	RolloutComplete    = "complete"
	RolloutProgressing = "progressing"
	// RolloutSoaking: a group is done and is given time, as annotation rollout-soak says.
	RolloutSoaking = "soaking"
	// RolloutPaused: somebody has paused it.
	RolloutPaused = "paused"
)

var rolloutStates = []string{RolloutComplete, RolloutProgressing, RolloutSoaking, RolloutPaused}

// Rollout is how far a HostedClusterPackage is.
type Rollout struct {
	// State is one of the constants Rollout….
	State                                 string
	Total, Available, Progressed, Updated int32
}

// rollouts are the gauges of HostedClusterPackages. Their series are as many as there are rollouts, not as clusters.
type rollouts struct{ packages, state *prometheus.GaugeVec }

func newRollouts(gauge func(name, help string, labels ...string) *prometheus.GaugeVec) rollouts {
	return rollouts{
		packages: gauge("hosted_cluster_package_packages",
			"Packages of a HostedClusterPackage: total, those that have the newest template (updated), are available, have progressed.", "pko_name", "state"),
		state: gauge("hosted_cluster_package_rollout", "1 for the state that the rollout of a HostedClusterPackage is in.", "pko_name", "state"),
	}
}

// Rollout records how far the HostedClusterPackage name is.
func (r *Recorder) Rollout(name string, now Rollout) {
	for state, n := range map[string]int32{"total": now.Total, "available": now.Available, "progressed": now.Progressed, "updated": now.Updated} {
		r.rollouts.packages.WithLabelValues(name, state).Set(float64(n))
	}
	for _, state := range rolloutStates {
		value := 0.0
		if state == now.State {
			value = 1
		}
		r.rollouts.state.WithLabelValues(name, state).Set(value)
	}
}

// ForgetRollout removes a HostedClusterPackage that is gone.
func (r *Recorder) ForgetRollout(name string) {
	r.rollouts.packages.DeletePartialMatch(prometheus.Labels{"pko_name": name})
	r.rollouts.state.DeletePartialMatch(prometheus.Labels{"pko_name": name})
}
