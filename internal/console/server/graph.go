package server

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/why"
)

// maxNodes bounds a graph. The browser draws it; a list with the same content stands beside it.
const maxNodes = 60

// graph is the components of a control plane, and who waits for whom.
type graph struct {
	Nodes []node `json:"nodes"`
	Edges []edge `json:"edges"`
	// More components are there than are shown.
	More int `json:"more,omitempty"`
}

// node is a component. Layer 0 needs nobody; the others need components of the layers before theirs.
type node struct {
	Name    string     `json:"name"`
	Layer   int        `json:"layer"`
	Health  why.Health `json:"health"`
	Cause   string     `json:"cause,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Version string     `json:"version,omitempty"`
	Waits   []string   `json:"waits,omitempty"` // for these, now
}

// edge leads from a component to one that it needs.
type edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Waits bool   `json:"waits,omitempty"` // now
}

// waitsPrefix is how a component says what it waits for.
const waitsPrefix = "Waiting for Dependencies: "

// graphOf lays out the components of a snapshot. What waits is in the objects. That the API server needs etcd, and the others the API server, always is so.
func graphOf(snap *why.Snapshot) graph {
	out := graph{Nodes: []node{}, Edges: []edge{}}
	byName := map[string]*hyperv1.ControlPlaneComponent{}
	for i := range snap.Components {
		byName[snap.Components[i].Name] = &snap.Components[i]
	}
	depth := map[string]int{}
	for name, c := range byName {
		depth[name] = base(name, byName)
		_ = c
	}
	for range 4 { // who waits stands behind those that it waits for; a circle must not go on for ever
		for name, c := range byName {
			for _, other := range waitsFor(c) {
				if byName[other] != nil {
					depth[name] = max(depth[name], min(depth[other]+1, 4))
				}
			}
		}
	}
	for name, c := range byName {
		f := why.Of(c, time.Now())
		out.Nodes = append(out.Nodes, node{Name: clip.Line(name), Layer: depth[name], Health: f.Health, Cause: f.Cause, Since: f.Since, Version: clip.Line(c.Status.Version), Waits: waitsFor(c)})
	}
	slices.SortFunc(out.Nodes, func(a, b node) int {
		return cmp.Or(a.Layer-b.Layer, cmp.Compare(severity[a.Health], severity[b.Health]), strings.Compare(a.Name, b.Name))
	})
	if len(out.Nodes) > maxNodes {
		out.More = len(out.Nodes) - maxNodes
		out.Nodes = out.Nodes[:maxNodes]
	}
	for _, n := range out.Nodes {
		for _, to := range n.Waits {
			if byName[to] != nil {
				out.Edges = append(out.Edges, edge{n.Name, to, true})
			}
		}
		if to := needs(n.Name); to != "" && byName[to] != nil && !slices.Contains(n.Waits, to) {
			out.Edges = append(out.Edges, edge{n.Name, to, false})
		}
	}
	return out
}

func isEtcd(name string) bool { return name == "etcd" || strings.HasPrefix(name, "etcd-") }

// needs is the component that another one always needs.
func needs(name string) string {
	switch {
	case isEtcd(name):
		return ""
	case name == "kube-apiserver":
		return "etcd"
	}
	return "kube-apiserver"
}

func base(name string, all map[string]*hyperv1.ControlPlaneComponent) int {
	if isEtcd(name) {
		return 0
	}
	depth := 0
	if name != "kube-apiserver" && all["kube-apiserver"] != nil {
		depth = 1
	}
	if all["etcd"] != nil {
		depth++
	}
	return depth
}

func waitsFor(c *hyperv1.ControlPlaneComponent) []string {
	cond := conditions.Get(c.Status.Conditions, hyperv1.ControlPlaneComponentRolloutComplete)
	if cond == nil || cond.Status != metav1.ConditionFalse {
		return nil
	}
	rest, ok := strings.CutPrefix(cond.Message, waitsPrefix)
	if !ok {
		return nil
	}
	var out []string
	for _, name := range strings.Split(rest, ",") {
		if name = clip.Line(name); name != "" && len(out) < maxNodes {
			out = append(out, name)
		}
	}
	return out
}
