package rollout

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Assumptions are what a forecast takes for granted.
type Assumptions struct {
	// PerCluster is how long a Package is down while it is updated; at least a second.
	PerCluster time.Duration
	// Fail are clusters whose Package never becomes available again once it has the template.
	Fail map[types.NamespacedName]bool
}

// Wave is what is started at one moment.
type Wave struct {
	After    time.Duration // since the begin of the forecast
	Group    string
	Clusters []types.NamespacedName
	Returned bool // to the last good version
	// Used of Budget count as unavailable once the wave is started; a Budget of -1 has no limit.
	Used, Budget int
}

// Forecast is what a rollout would do.
type Forecast struct {
	// Awaited are in flight at the begin, and assumed to become available.
	Awaited []types.NamespacedName
	Waves   []Wave
	// Duration until the rollout ends or stops.
	Duration time.Duration
	// Finished tells that all clusters that can be reached have the template and are available.
	Finished bool
	// Rest are the clusters which don't have it then, with the reason.
	Rest []Decision
}

// maxWaves bounds a forecast. A rollout takes at most a few waves per cluster.
const maxWaves = 100_000

// Predict plays a rollout from what is observed now, with the planner that the controller uses and Packages that behave as assumed.
func Predict(in Observed, a Assumptions, now time.Time) Forecast {
	took := max(a.PerCluster, time.Second)
	in.Packages = maps.Clone(in.Packages)
	names := map[string]types.NamespacedName{}
	for _, c := range in.Clusters {
		names[c.Namespace] = c.Name
	}
	begin, out := now, Forecast{}
	upAt, flying := map[string]time.Time{}, map[string]types.UID{}
	for _, ref := range in.Processing {
		flying[ref.Namespace] = ref.UID
	}
	for ns, p := range in.Packages {
		// What is being updated is assumed to come up, also when the template has changed since.
		if (p.Current || flying[ns] == p.UID && !p.down()) && !p.settled() && !a.Fail[names[ns]] {
			upAt[ns] = now.Add(took)
			out.Awaited = append(out.Awaited, names[ns])
		}
	}
	slices.SortFunc(out.Awaited, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	for range maxWaves {
		plan := Make(in, now)
		in.Processing, in.Orphans = plan.Processing, nil
		if len(plan.Create)+len(plan.Apply) > 0 {
			out.Waves = append(out.Waves, waves(plan, now.Sub(begin))...)
			for _, c := range slices.Concat(plan.Create, plan.Apply) {
				p := in.Packages[c.Namespace]
				p.Namespace, p.Current, p.Returned, p.Good = c.Namespace, c.Version == Template, c.Version == LastGood, c.Version == LastGood
				p.Available, p.Progressed, p.Unreported, p.AppliedAt = false, false, false, now
				in.Packages[c.Namespace] = p
				delete(upAt, c.Namespace)
				if p.Returned || !a.Fail[c.Cluster] {
					upAt[c.Namespace] = now.Add(took)
				}
			}
			continue
		}
		next, ok := earliest(upAt, plan.Again, now)
		if !ok {
			out.Duration, out.Finished, out.Rest = now.Sub(begin), true, rest(plan)
			for _, d := range out.Rest {
				out.Finished = out.Finished && d.Action == Skip && unready(in, d.Cluster)
			}
			return out
		}
		now = next
		for ns, t := range upAt {
			if !t.After(now) {
				p := in.Packages[ns]
				p.Available, p.Progressed, p.Unreported, p.SettledAt = true, true, false, now
				in.Packages[ns] = p
				delete(upAt, ns)
			}
		}
	}
	return out
}

// waves are the changes of a plan by group and version, in its order.
func waves(plan Plan, after time.Duration) []Wave {
	groups := map[types.NamespacedName]string{}
	for _, d := range plan.Decisions {
		groups[d.Cluster] = d.Group
	}
	var out []Wave
	for _, c := range slices.Concat(plan.Create, plan.Apply) {
		last := len(out) - 1
		if last < 0 || out[last].Group != groups[c.Cluster] || out[last].Returned != (c.Version == LastGood) {
			out = append(out, Wave{After: after, Group: groups[c.Cluster], Returned: c.Version == LastGood, Used: plan.After, Budget: plan.Budget})
			last++
		}
		out[last].Clusters = append(out[last].Clusters, c.Cluster)
	}
	return out
}

func rest(plan Plan) []Decision {
	return slices.DeleteFunc(slices.Clone(plan.Decisions), func(d Decision) bool { return d.Action == Done })
}

func unready(in Observed, name types.NamespacedName) bool {
	i := slices.IndexFunc(in.Clusters, func(c Cluster) bool { return c.Name == name })
	return i >= 0 && in.Clusters[i].Unready != ""
}

// earliest is when something happens next.
func earliest(upAt map[string]time.Time, again time.Duration, now time.Time) (time.Time, bool) {
	var next time.Time
	if again > 0 {
		next = now.Add(again)
	}
	for _, t := range upAt {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	return next, !next.IsZero()
}
