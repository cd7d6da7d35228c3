package server

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/why"
)

const (
	maxRevisions = 20
	maxObjects   = 500 // of a phase
	maxPaths     = 12  // of a difference
)

// pkgPage is a Package with its revisions.
type pkgPage struct {
	Package    *world.Package `json:"package"`
	Why        why.Answer     `json:"why"`
	Command    string         `json:"command"`
	Paused     bool           `json:"paused"`
	Conditions []condition    `json:"conditions"`
	Revisions  []revision     `json:"revisions"` // the newest first
	More       int            `json:"more,omitempty"`
	Timeline   timeline       `json:"timeline"`
	Notes      []string       `json:"notes,omitempty"`
}

// revision is an ObjectSet.
type revision struct {
	Name    string    `json:"name"`
	Number  int64     `json:"number"`
	State   string    `json:"state"` // active, archived or paused
	Health  string    `json:"health"`
	Cause   string    `json:"cause,omitempty"`
	Created time.Time `json:"created"`
	Why     string    `json:"why,omitempty"` // why it exists
	Phases  []phase   `json:"phases"`
	// Collisions are objects of others that are in the way.
	Collisions []collision  `json:"collisions,omitempty"`
	Probes     int          `json:"probes"`
	Changes    []difference `json:"changes"` // to the revision before
	Unchanged  bool         `json:"unchanged,omitempty"`
}

// phase is a step of a revision. State is done, failing or waiting.
type phase struct {
	Name    string   `json:"name"`
	Class   string   `json:"class,omitempty"`
	State   string   `json:"state"`
	Message string   `json:"message,omitempty"`
	Objects []object `json:"objects"`
	Slices  int      `json:"slices,omitempty"` // parts whose objects are kept elsewhere
	More    int      `json:"more,omitempty"`
}

// object is one that a phase holds. Held: the revision controls it.
type object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"name"`
	Held      bool   `json:"held"`
}

// difference is what became of an object between two revisions: added, removed, or changed at paths. Values are not told: those of Secrets would be among
// them.
type difference struct {
	Object string   `json:"object"`
	Change string   `json:"change"`
	Paths  []string `json:"paths,omitempty"`
}

// packages are those of namespaces in which somebody may list them; ns restricts them to one, and q to names and images that contain it.
func (s *Server) packages(r *request) (any, error) {
	scope, err := r.viewer.ScopeOf(r.Context(), packages, s.World.Namespaces(world.Packages))
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	words, ns, show := strings.Fields(strings.ToLower(query.Get("q"))), query.Get("ns"), query.Get("show")
	rows, total, bad := []*world.Package{}, 0, 0
	seq := s.World.EachPackage(func(p *world.Package) {
		if !scope.Has(p.Namespace) {
			return
		}
		if total++; !p.Health.Well() {
			bad++
		}
		text := strings.ToLower(p.Namespace + "/" + p.Name + " " + p.Image + " " + string(p.Health) + " " + p.Cause)
		if ns != "" && p.Namespace != ns || show == "notwell" && p.Health.Well() || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			return
		}
		rows = append(rows, p)
	})
	slices.SortFunc(rows, func(a, b *world.Package) int {
		return cmp.Or(severity[a.Health]-severity[b.Health], strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return map[string]any{"epoch": s.epoch, "seq": seq, "matching": len(rows), "total": total, "notWell": bad, "rows": rows[:min(len(rows), maxRows)], "trouble": s.World.Trouble(world.Packages)}, nil
}

func (s *Server) pkg(r *request) (any, error) {
	ctx, done, err := s.detail(r)
	if err != nil {
		return nil, err
	}
	defer done()
	of := why.Object{Kind: "Package", Namespace: r.PathValue("ns"), Name: r.PathValue("name")}
	snap, err := s.observer(r.viewer.Client).Snapshot(ctx, of)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(snap.Packages, func(p packagesv1.Package) bool { return p.Namespace == of.Namespace && p.Name == of.Name })
	if i < 0 {
		return nil, problem{404, "there is no such object"}
	}
	p := &snap.Packages[i]
	page := &pkgPage{Package: world.PackageOf(p, time.Now()), Why: cleaned(why.Explain(snap, of)), Command: fmt.Sprintf("hypershift why package/%s -n %s", p.Name, p.Namespace), Paused: p.Spec.Paused,
		Conditions: conditionsOf(p.Status.Conditions), Timeline: s.timeline(ctx, r.viewer.Client, "package", p, p.Status.Conditions)}
	sets := setsOf(snap, p)
	page.Revisions, page.More = revisionsOf(sets), max(0, len(sets)-maxRevisions)
	for i := range page.Revisions {
		page.Revisions[i].Collisions = collisionsOf(ctx, r.viewer.Client, sets[i])
	}
	for _, kind := range slices.Sorted(maps.Keys(snap.Unread)) {
		page.Notes = append(page.Notes, kind+": "+clip.Line(snap.Unread[kind]))
	}
	return page, nil
}

// setsOf are the ObjectSets of a Package, the newest first.
func setsOf(snap *why.Snapshot, p *packagesv1.Package) []*packagesv1.ObjectSet {
	var sets []*packagesv1.ObjectSet
	for i := range snap.ObjectSets {
		set := &snap.ObjectSets[i]
		if set.Namespace == p.Namespace && (set.Labels[packagesv1.InstanceLabel] == p.Name || set.Labels[packagesv1.ObjectDeploymentLabel] == p.Name) {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, func(a, b *packagesv1.ObjectSet) int {
		return cmp.Or(cmp.Compare(number(b), number(a)), b.CreationTimestamp.Compare(a.CreationTimestamp.Time))
	})
	return sets
}

func number(s *packagesv1.ObjectSet) int64 { return max(s.Spec.Revision, s.Status.Revision) }

// revisionsOf says of the newest ObjectSets what they are.
func revisionsOf(sets []*packagesv1.ObjectSet) []revision {
	out := []revision{}
	for i, set := range sets[:min(len(sets), maxRevisions)] {
		rev := revision{Name: set.Name, Number: number(set), State: "active", Created: set.CreationTimestamp.UTC(), Why: clip.Line(set.Annotations[packagesv1.ChangeCauseAnnotation]),
			Probes: len(set.Spec.AvailabilityProbes), Changes: []difference{}}
		if state := set.Spec.LifecycleState; state != "" {
			rev.State = strings.ToLower(string(state))
		}
		rev.Health, rev.Cause = healthOfSet(set)
		rev.Phases = phasesOf(set)
		if i+1 < len(sets) {
			rev.Changes = differences(sets[i+1], set)
			rev.Unchanged = len(rev.Changes) == 0
		}
		out = append(out, rev)
	}
	return out
}

func healthOfSet(set *packagesv1.ObjectSet) (string, string) {
	if set.Spec.LifecycleState == packagesv1.LifecycleStateArchived {
		return "Archived", ""
	}
	f := why.Of(set, time.Now())
	return string(f.Health), f.Cause
}

// phasesOf says of each phase how far it is. Phases are rolled out one after the other: those behind the first that isn't there wait.
func phasesOf(set *packagesv1.ObjectSet) []phase {
	held := map[object]bool{}
	for _, ref := range set.Status.ControllerOf {
		held[object{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}] = true
	}
	available := conditions.Get(set.Status.Conditions, packagesv1.ConditionAvailable)
	well := available != nil && available.Status == "True"
	archived := set.Spec.LifecycleState == packagesv1.LifecycleStateArchived
	out, stopped := []phase{}, false
	for i := range set.Spec.Phases {
		from := &set.Spec.Phases[i]
		ph := phase{Name: clip.Line(from.Name), Class: clip.Line(from.Class), State: "done", Objects: []object{}, Slices: len(from.Slices)}
		all := true
		for j := range from.Objects {
			if j == maxObjects {
				ph.More = len(from.Objects) - maxObjects
				break
			}
			o := nameOf(&from.Objects[j].Object, set.Namespace)
			o.Held = held[object{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}] || held[object{Kind: o.Kind, Name: o.Name}]
			all = all && o.Held
			ph.Objects = append(ph.Objects, o)
		}
		named := available != nil && !well && strings.Contains(available.Message, fmt.Sprintf("%q", from.Name))
		switch {
		case archived:
			ph.State = "archived"
		case well:
		case stopped:
			ph.State = "waiting"
		case named || !all && from.Class == "":
			ph.State, stopped = "failing", true
			if available != nil {
				ph.Message = why.Clean(available.Message)
			}
		}
		out = append(out, ph)
	}
	if available != nil && !well && !stopped && !archived && len(out) > 0 { // none is named: it is the last that was begun
		out[len(out)-1].State, out[len(out)-1].Message = "failing", why.Clean(available.Message)
	}
	return out
}

func nameOf(u *unstructured.Unstructured, namespace string) object {
	ns := u.GetNamespace()
	if ns == "" {
		ns = namespace
	}
	return object{Kind: clip.Line(u.GetKind()), Namespace: ns, Name: clip.Line(u.GetName())}
}

// differences are what changed between two revisions, by object.
func differences(before, after *packagesv1.ObjectSet) []difference {
	index := func(set *packagesv1.ObjectSet) map[string]map[string]any {
		out := map[string]map[string]any{}
		for i := range set.Spec.Phases {
			for j := range set.Spec.Phases[i].Objects {
				u := &set.Spec.Phases[i].Objects[j].Object
				o := nameOf(u, set.Namespace)
				out[o.Kind+" "+o.Namespace+"/"+o.Name] = u.Object
			}
		}
		return out
	}
	a, b := index(before), index(after)
	out := []difference{}
	for name, was := range a {
		is, ok := b[name]
		if !ok {
			out = append(out, difference{Object: name, Change: "removed"})
		} else if paths := changedPaths("", was, is, nil); len(paths) > 0 {
			out = append(out, difference{Object: name, Change: "changed", Paths: paths})
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			out = append(out, difference{Object: name, Change: "added"})
		}
	}
	slices.SortFunc(out, func(a, b difference) int { return strings.Compare(a.Object, b.Object) })
	return out[:min(len(out), maxObjects)]
}

// changedPaths are fields that differ, at most maxPaths, without their values.
func changedPaths(path string, a, b any, out []string) []string {
	if len(out) >= maxPaths || reflect.DeepEqual(a, b) {
		return out
	}
	x, isMap := a.(map[string]any)
	y, both := b.(map[string]any)
	if !isMap || !both {
		return append(out, clip.Line(path))
	}
	keys := map[string]bool{}
	for k := range x {
		keys[k] = true
	}
	for k := range y {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		next := k
		if path != "" {
			next = path + "." + k
		}
		out = changedPaths(next, x[k], y[k], out)
	}
	return out
}
