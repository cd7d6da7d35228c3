package server

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/why"
)

// Resources that rows are of.
var (
	hostedClusters = access.Resource{Group: "hypershift.openshift.io", Name: "hostedclusters"}
	packages       = access.Resource{Group: "package-operator.run", Name: "packages"}
	rollouts       = access.Resource{Group: "package-operator.run", Name: "hostedclusterpackages"}
)

const (
	// maxRows bounds a list.
	maxRows = 2000
	// stuckAfter is how long a deletion may take before it counts as stuck.
	stuckAfter = 30 * time.Minute
	// maxFacets bounds what one can choose from.
	maxFacets = 50
)

// fleetQuery is what of the fleet somebody wants to see.
type fleetQuery struct {
	// show is "notwell", "all", or empty: what is not well if anything is.
	show                                 string
	words                                []string // in the name, namespace, version, cause or a label
	health, namespace, version, platform string
	labelKey, labelValue                 string
	sort                                 string // column, with "-" before it for the other way round
	limit                                int
}

func parseFleet(v url.Values) (fleetQuery, error) {
	q := fleetQuery{show: v.Get("show"), words: strings.Fields(strings.ToLower(v.Get("q"))), health: v.Get("health"), namespace: v.Get("ns"), version: v.Get("version"), platform: v.Get("platform"),
		sort: cmp.Or(v.Get("sort"), "health"), limit: maxRows}
	q.labelKey, q.labelValue, _ = strings.Cut(v.Get("label"), "=")
	if _, ok := orders[strings.TrimPrefix(q.sort, "-")]; !ok {
		return q, badRequest("sort: unknown column %q: use one of health, name, ns, version, nodes, age, platform", q.sort)
	}
	if q.show != "" && q.show != "all" && q.show != "notwell" {
		return q, badRequest("show: must be all or notwell")
	}
	if raw := v.Get("limit"); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil || n < 1 || n > maxRows {
			return q, badRequest("limit: must be a number from 1 to %d", maxRows)
		}
		q.limit = n
	}
	return q, nil
}

// matches tells whether a row is wanted.
func (q fleetQuery) matches(c *world.Cluster) bool {
	switch {
	case q.show == "notwell" && c.Health.Well(),
		q.health != "" && string(c.Health) != q.health,
		q.namespace != "" && c.Namespace != q.namespace,
		q.version != "" && versionOf(c) != q.version,
		q.platform != "" && c.Platform != q.platform,
		q.labelKey != "" && c.Labels[q.labelKey] != q.labelValue:
		return false
	}
	for _, word := range q.words {
		if !strings.Contains(strings.ToLower(c.Namespace+"/"+c.Name), word) && !strings.Contains(strings.ToLower(c.Cause), word) &&
			!strings.Contains(strings.ToLower(string(c.Health)), word) && !strings.Contains(c.Version, word) && !labelled(c, word) {
			return false
		}
	}
	return true
}

func labelled(c *world.Cluster, word string) bool {
	for k, v := range c.Labels {
		if strings.Contains(strings.ToLower(k+"="+v), word) {
			return true
		}
	}
	return false
}

func versionOf(c *world.Cluster) string { return cmp.Or(c.Version, "none yet") }

// severity orders health, the worst first.
var severity = map[why.Health]int{why.Blocked: 0, why.Degraded: 1, why.Unknown: 2, why.Deleting: 3, why.Progressing: 4, why.Paused: 5, why.Healthy: 6}

var orders = map[string]func(a, b *world.Cluster) int{
	"health":   func(a, b *world.Cluster) int { return cmp.Compare(severity[a.Health], severity[b.Health]) },
	"name":     func(a, b *world.Cluster) int { return strings.Compare(a.Name, b.Name) },
	"ns":       func(a, b *world.Cluster) int { return strings.Compare(a.Namespace, b.Namespace) },
	"version":  func(a, b *world.Cluster) int { return strings.Compare(a.Version, b.Version) },
	"platform": func(a, b *world.Cluster) int { return strings.Compare(a.Platform, b.Platform) },
	"nodes":    func(a, b *world.Cluster) int { return cmp.Compare(a.Ready-a.Wanted, b.Ready-b.Wanted) },
	"age":      func(a, b *world.Cluster) int { return b.Created.Compare(a.Created) },
}

func (q fleetQuery) order(a, b *world.Cluster) int {
	by, way := orders[strings.TrimPrefix(q.sort, "-")], 1
	if strings.HasPrefix(q.sort, "-") {
		way = -1
	}
	return cmp.Or(way*by(a, b), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// count is how many there are of something.
type count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// summary is of all hosted clusters that somebody may see, whatever they filter by.
type summary struct {
	Total          int     `json:"total"`
	NotWell        int     `json:"notWell"`
	Health         []count `json:"health"`
	Versions       []count `json:"versions"`
	Platforms      []count `json:"platforms"`
	Namespaces     []count `json:"namespaces"`
	Labels         []count `json:"labels"` // key=value
	Nodes          int32   `json:"nodes"`
	NodesWanted    int32   `json:"nodesWanted"`
	Upgrading      int     `json:"upgrading"`
	StuckDeletions int     `json:"stuckDeletions"`
	HeldRollouts   int     `json:"heldRollouts"`
	Rollouts       int     `json:"rollouts"`
	// GroupBy is the label by which most rollouts group hosted clusters; empty: none does.
	GroupBy string `json:"groupBy,omitempty"`
}

// fleetAnswer is a list with what stands above it.
type fleetAnswer struct {
	Epoch    string           `json:"epoch"`
	Seq      uint64           `json:"seq"`
	Show     string           `json:"show"`
	Rows     []*world.Cluster `json:"rows"`
	Matching int              `json:"matching"`
	Summary  summary          `json:"summary"`
	Trouble  string           `json:"trouble,omitempty"`
}

func (s *Server) fleet(r *request) (any, error) {
	q, err := parseFleet(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return s.readFleet(r.Context(), r.viewer, q)
}

// readFleet makes the list of somebody.
func (s *Server) readFleet(ctx context.Context, viewer *access.Viewer, q fleetQuery) (*fleetAnswer, error) {
	scope, err := viewer.ScopeOf(ctx, hostedClusters, s.World.Namespaces(world.Clusters))
	if err != nil {
		return nil, err
	}
	var all []*world.Cluster
	seq := s.World.EachCluster(func(c *world.Cluster) {
		if scope.Has(c.Namespace) {
			all = append(all, c)
		}
	})
	out := &fleetAnswer{Epoch: s.epoch, Seq: seq, Show: q.show, Rows: []*world.Cluster{}, Trouble: s.World.Trouble(world.Clusters)}
	if scope.Empty() && out.Trouble == "" {
		out.Trouble = "you may list HostedClusters in no namespace that has any: ask for a role with verb list on hostedclusters.hypershift.openshift.io"
	}
	out.Summary = s.summarize(all)
	if err := s.addRollouts(ctx, viewer, &out.Summary); err != nil {
		return nil, err
	}
	if out.Show == "" {
		out.Show = "all"
		if out.Summary.NotWell > 0 {
			out.Show = "notwell"
		}
		q.show = out.Show
	}
	for _, c := range all {
		if q.matches(c) {
			out.Rows = append(out.Rows, c)
		}
	}
	out.Matching = len(out.Rows)
	slices.SortFunc(out.Rows, q.order)
	out.Rows = out.Rows[:min(len(out.Rows), q.limit)]
	return out, nil
}

func (s *Server) addRollouts(ctx context.Context, viewer *access.Viewer, to *summary) error {
	if ok, err := viewer.May(ctx, "list", rollouts, ""); err != nil || !ok {
		return err
	}
	keys := map[string]int{}
	s.World.EachRollout(func(r *world.Rollout) {
		if r.GroupBy != "" {
			keys[r.GroupBy]++
		}
		if r.Health != why.Healthy {
			to.Rollouts++
		}
		if r.Health == why.Paused || r.Health == why.Degraded {
			to.HeldRollouts++
		}
	})
	if by := counts(keys); len(by) > 0 {
		to.GroupBy = by[0].Name
	}
	return nil
}

func (s *Server) summarize(all []*world.Cluster) summary {
	out, now := summary{Total: len(all)}, s.Clock.Now()
	healths, versions, platforms, namespaces, labels := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range all {
		healths[string(c.Health)]++
		versions[versionOf(c)]++
		platforms[c.Platform]++
		namespaces[c.Namespace]++
		for k, v := range c.Labels {
			labels[k+"="+v]++
		}
		out.Nodes, out.NodesWanted = out.Nodes+c.Ready, out.NodesWanted+c.Wanted
		if !c.Health.Well() {
			out.NotWell++
		}
		if c.Target != "" && c.Version != "" {
			out.Upgrading++
		}
		if c.Deleting != nil && now.Sub(*c.Deleting) > stuckAfter {
			out.StuckDeletions++
		}
	}
	out.Health = counts(healths)
	slices.SortFunc(out.Health, func(a, b count) int {
		return cmp.Compare(severity[why.Health(a.Name)], severity[why.Health(b.Name)])
	})
	out.Versions, out.Platforms, out.Namespaces, out.Labels = counts(versions), counts(platforms), counts(namespaces), counts(labels)
	return out
}

// counts are the most frequent first, at most maxFacets.
func counts(m map[string]int) []count {
	out := make([]count, 0, len(m))
	for k, n := range m {
		out = append(out, count{k, n})
	}
	slices.SortFunc(out, func(a, b count) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Name, b.Name)) })
	return out[:min(len(out), maxFacets)]
}
