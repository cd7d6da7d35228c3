package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
	State                                              string
	Total, Available, Progressed, Updated, Unavailable int32
	// Groups and GroupsDone are how many groups of hosted clusters there are, and in how many of them all is done.
	Groups, GroupsDone int
	// Budget is how many Packages may be unavailable or in flight, negative when any number may; Used is how many are.
	Budget, Used int
	// Now is when this was seen.
	Now time.Time
}

// moved tells that a rollout has gone on since before.
func (r Rollout) moved(before Rollout) bool {
	return r.State != before.State || r.Total != before.Total || r.Progressed != before.Progressed || r.Updated != before.Updated || r.GroupsDone != before.GroupsDone
}

// rollouts are the gauges of HostedClusterPackages. Their series are as many as there are rollouts, not as clusters.
type rollouts struct {
	packages, state, groups, budget, used, moved *prometheus.GaugeVec

	mu   sync.Mutex
	last map[string]Rollout
}

func newRollouts(gauge func(name, help string, labels ...string) *prometheus.GaugeVec) *rollouts {
	return &rollouts{
		last: map[string]Rollout{},
		packages: gauge("hosted_cluster_package_packages",
			"Packages of a HostedClusterPackage: total, those that have the newest template (updated), are available, are unavailable, have progressed.", "pko_name", "state"),
		state:  gauge("hosted_cluster_package_rollout", "1 for the state that the rollout of a HostedClusterPackage is in.", "pko_name", "state"),
		groups: gauge("hosted_cluster_package_groups", "Groups of hosted clusters that a HostedClusterPackage is rolled out to one after the other: total, and those that are done.", "pko_name", "state"),
		budget: gauge("hosted_cluster_package_budget", "How many Packages of a HostedClusterPackage may be unavailable or in flight at a time; no series when any number may.", "pko_name"),
		used:   gauge("hosted_cluster_package_budget_used", "How many Packages of a HostedClusterPackage are unavailable, in flight or yet to be made.", "pko_name"),
		moved: gauge("hosted_cluster_package_last_progress_timestamp_seconds",
			"When the rollout of a HostedClusterPackage went on last, as far as this process has seen it: a state, a group or a number of Packages changed.", "pko_name"),
	}
}

func (r *rollouts) all() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{r.packages, r.state, r.groups, r.budget, r.used, r.moved}
}

// Rollout records how far the HostedClusterPackage name is.
func (r *Recorder) Rollout(name string, now Rollout) {
	for state, n := range map[string]int32{"total": now.Total, "available": now.Available, "progressed": now.Progressed, "updated": now.Updated, "unavailable": now.Unavailable} {
		r.rollouts.packages.WithLabelValues(name, state).Set(float64(n))
	}
	for _, state := range rolloutStates {
		value := 0.0
		if state == now.State {
			value = 1
		}
		r.rollouts.state.WithLabelValues(name, state).Set(value)
	}
	r.rollouts.groups.WithLabelValues(name, "total").Set(float64(now.Groups))
	r.rollouts.groups.WithLabelValues(name, "done").Set(float64(now.GroupsDone))
	if now.Budget < 0 {
		r.rollouts.budget.DeleteLabelValues(name)
	} else {
		r.rollouts.budget.WithLabelValues(name).Set(float64(now.Budget))
	}
	r.rollouts.used.WithLabelValues(name).Set(float64(now.Used))
	r.rollouts.mu.Lock()
	defer r.rollouts.mu.Unlock()
	if before, known := r.rollouts.last[name]; !known || now.moved(before) {
		r.rollouts.moved.WithLabelValues(name).Set(float64(now.Now.Unix()))
	}
	r.rollouts.last[name] = now
}

// ForgetRollout removes a HostedClusterPackage that is gone.
func (r *Recorder) ForgetRollout(name string) {
	for _, vec := range r.rollouts.all() {
		vec.DeletePartialMatch(prometheus.Labels{"pko_name": name})
	}
	r.rollouts.mu.Lock()
	defer r.rollouts.mu.Unlock()
	delete(r.rollouts.last, name)
}
