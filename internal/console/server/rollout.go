package server

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/packages/control/hostedclusterpackage"
	"hcp.internal/platform/internal/packages/control/rollout"
	"hcp.internal/platform/internal/why"
)

const (
	// perCluster is how long a forecast takes an update to be, unless told otherwise.
	perCluster = 2 * time.Minute
	// maxFail bounds a what-if, maxWaves what is shown of a forecast.
	maxFail  = 50
	maxWaves = 200
)

// rolloutPage is a rollout over hosted clusters.
type rolloutPage struct {
	Rollout *world.Rollout `json:"rollout"`
	Paused  bool           `json:"paused"`
	Groups  []group        `json:"groups"`
	// Used of Budget Packages are unavailable, in flight or missing now; a Budget of -1 has no limit. By are who they are.
	Used       int         `json:"used"`
	Budget     int         `json:"budget"`
	By         []string    `json:"by"`
	Current    string      `json:"current,omitempty"` // group
	Soaks      bool        `json:"soaks,omitempty"`
	Finished   bool        `json:"finished"`
	Said       string      `json:"said,omitempty"` // what the controller says about progress
	Forecast   forecast    `json:"forecast"`
	Conditions []condition `json:"conditions"`
	Timeline   timeline    `json:"timeline"`
	Warnings   []string    `json:"warnings,omitempty"`
	// Commands are what to type, by what it does.
	Commands map[string]string `json:"commands"`
}

// group is a column: clusters that are changed after those of the columns before.
type group struct {
	Name  string `json:"name"`
	Cells []cell `json:"cells"`
}

// cell is a cluster in a rollout.
type cell struct {
	Cluster string `json:"cluster"` // namespace/name
	// State is done, flight, down, waiting, skipped or next.
	State  string `json:"state"`
	Reason string `json:"reason"`
	Wave   int    `json:"wave,omitempty"` // of the forecast, from 1
	Fails  bool   `json:"fails,omitempty"`
}

// forecast is what would happen. Times are seconds from now.
type forecast struct {
	PerCluster int64  `json:"perCluster"`
	Waves      []wave `json:"waves"`
	Seconds    int64  `json:"seconds"`
	Finished   bool   `json:"finished"`
	Left       int    `json:"left"` // clusters that don't get there
	More       int    `json:"more,omitempty"`
}

type wave struct {
	After    int64    `json:"after"`
	Group    string   `json:"group,omitempty"`
	Clusters []string `json:"clusters"`
	Returned bool     `json:"returned,omitempty"`
	Used     int      `json:"used"`
	Budget   int      `json:"budget"`
}

func (s *Server) rollouts(r *request) (any, error) {
	ok, err := r.viewer.May(r.Context(), "list", rollouts, "")
	if err != nil {
		return nil, err
	}
	rows := []*world.Rollout{}
	if !ok {
		return map[string]any{"rows": rows, "trouble": "you may not list HostedClusterPackages: ask for a role with verb list on hostedclusterpackages.package-operator.run"}, nil
	}
	seq := s.World.EachRollout(func(row *world.Rollout) { rows = append(rows, row) })
	slices.SortFunc(rows, func(a, b *world.Rollout) int {
		if d := severity[a.Health] - severity[b.Health]; d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return map[string]any{"epoch": s.epoch, "seq": seq, "rows": rows[:min(len(rows), maxRows)], "trouble": s.World.Trouble(world.Rollouts)}, nil
}

func (s *Server) rollout(r *request) (any, error) {
	query := r.URL.Query()
	a := rollout.Assumptions{PerCluster: perCluster, Fail: map[types.NamespacedName]bool{}}
	if raw := query.Get("per"); raw != "" {
		d, err := time.ParseDuration(raw)
		if err != nil || d < time.Second || d > 24*time.Hour {
			return nil, badRequest("per: %q is no duration from 1s to 24h, such as 3m", raw)
		}
		a.PerCluster = d
	}
	if len(query["fail"]) > maxFail {
		return nil, badRequest("fail: at most %d clusters", maxFail)
	}
	ctx, done, err := s.detail(r)
	if err != nil {
		return nil, err
	}
	defer done()
	owner := &packagesv1.HostedClusterPackage{}
	if err := r.viewer.Client.Get(ctx, client.ObjectKey{Name: r.PathValue("name")}, owner); err != nil {
		return nil, err
	}
	in, err := hostedclusterpackage.Observe(ctx, r.viewer.Client, owner)
	if err != nil {
		return nil, err
	}
	clusters := map[types.NamespacedName]bool{}
	for _, c := range in.Clusters {
		clusters[c.Name] = true
	}
	for _, f := range query["fail"] {
		ns, name, _ := strings.Cut(f, "/")
		key := types.NamespacedName{Namespace: ns, Name: name}
		if !clusters[key] {
			return nil, badRequest("fail: the selector matches no hosted cluster %q: write it as namespace/name", f)
		}
		a.Fail[key] = true
	}
	now := s.Clock.Now()
	plan := rollout.Make(in, now)
	page := newRollout(owner, in, plan, rollout.Predict(in, a, now), a)
	page.Timeline = s.timeline(ctx, r.viewer.Client, "hostedclusterpackage", owner, owner.Status.Conditions)
	return page, nil
}

// newRollout puts a page together. It is pure.
func newRollout(owner *packagesv1.HostedClusterPackage, in rollout.Observed, plan rollout.Plan, f rollout.Forecast, a rollout.Assumptions) *rolloutPage {
	page := &rolloutPage{Rollout: world.RolloutOf(owner, time.Now()), Paused: in.Settings.Options.Paused, Used: plan.Used, Budget: plan.Budget, By: []string{},
		Current: clip.Line(plan.Group), Soaks: plan.Soaks, Finished: plan.Finished, Conditions: conditionsOf(owner.Status.Conditions),
		Commands: map[string]string{
			"pause":  "kubectl package rollout pause hostedclusterpackage/" + owner.Name,
			"resume": "kubectl package rollout resume hostedclusterpackage/" + owner.Name,
			"undo":   "kubectl package rollout undo hostedclusterpackage/" + owner.Name,
			"plan":   "kubectl package rollout plan hostedclusterpackage/" + owner.Name,
			"status": "kubectl package rollout status hostedclusterpackage/" + owner.Name,
		}}
	for _, c := range owner.Status.Conditions {
		if c.Type == packagesv1.ConditionProgressing {
			page.Said = why.Clean(c.Message)
		}
	}
	flying := map[string]bool{}
	for _, ref := range in.Processing {
		flying[ref.Namespace] = true
	}
	namespaces := map[types.NamespacedName]string{}
	for _, c := range in.Clusters {
		namespaces[c.Name] = c.Namespace
	}
	waveOf := map[types.NamespacedName]int{}
	for i, w := range f.Waves {
		for _, c := range w.Clusters {
			if waveOf[c] == 0 {
				waveOf[c] = i + 1
			}
		}
	}
	var names []string
	columns := map[string][]cell{}
	for _, d := range plan.Decisions {
		if _, ok := columns[d.Group]; !ok {
			names = append(names, d.Group)
		}
		ns := namespaces[d.Cluster]
		p, there := in.Packages[ns]
		c := cell{Cluster: d.Cluster.String(), Reason: clip.Line(d.Reason), State: stateOf(d, p, there, flying[ns]), Wave: waveOf[d.Cluster], Fails: a.Fail[d.Cluster]}
		if c.State == "flight" || c.State == "down" {
			page.By = append(page.By, c.Cluster)
		}
		columns[d.Group] = append(columns[d.Group], c)
	}
	page.Groups = []group{}
	for _, name := range names {
		page.Groups = append(page.Groups, group{Name: clip.Line(name), Cells: columns[name]})
	}
	page.Forecast = forecastOf(f, a)
	if _, err := rollout.ParseOptions(owner.Annotations); err != nil {
		page.Warnings = append(page.Warnings, clip.Line(err.Error()))
	}
	return page
}

// stateOf is a cluster's state in a word.
func stateOf(d rollout.Decision, p rollout.Package, there, flying bool) string {
	switch {
	case d.Action == rollout.Done:
		return "done"
	case flying:
		return "flight"
	case d.Action == rollout.Skip:
		return "skipped"
	case there && !p.Available && !p.Unreported:
		return "down"
	case d.Action == rollout.Wait:
		return "waiting"
	}
	return "next"
}

func forecastOf(f rollout.Forecast, a rollout.Assumptions) forecast {
	out := forecast{PerCluster: int64(a.PerCluster / time.Second), Waves: []wave{}, Seconds: int64(f.Duration.Round(time.Second) / time.Second), Finished: f.Finished, Left: len(f.Rest)}
	for i, w := range f.Waves {
		if i == maxWaves {
			out.More = len(f.Waves) - maxWaves
			break
		}
		entry := wave{After: int64(w.After.Round(time.Second) / time.Second), Group: clip.Line(w.Group), Clusters: []string{}, Returned: w.Returned, Used: w.Used, Budget: w.Budget}
		for _, c := range w.Clusters {
			entry.Clusters = append(entry.Clusters, c.String())
		}
		out.Waves = append(out.Waves, entry)
	}
	return out
}

// ofPool are conditions of a NodePool in the common type.
func ofPool(np *hyperv1.NodePool) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(np.Status.Conditions))
	for _, c := range np.Status.Conditions {
		out = append(out, metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime})
	}
	return out
}
