package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Candidate is a control plane that wants to start.
type Candidate struct {
	// Name is namespace/name of the HostedCluster.
	Name    string
	Created time.Time
	// Groups are all its pods.
	Groups []Group
	// Spare is a pod that must find a place beside all others, once all are placed: rollouts make one before they end another. nil: none.
	Spare *Group
}

// World is what a decision looks at.
type World struct {
	Nodes []Node
	// Closed is how many more nodes there are, which take no pods: not ready, or cordoned.
	Closed int
	// Reserved are pods of admitted control planes that have no place yet.
	Reserved []Group
	// Others are pods of anybody else that wait for a place.
	Others []Group
	// Queue are those that want to start, in any order.
	Queue []Candidate
}

// Verdict is what became of a candidate.
type Verdict struct {
	Admitted bool
	// Place in the queue, counted from 1, and the length of the queue, among those that are not admitted.
	Place, Of int
	// Behind is who has to start first; empty: nobody.
	Behind string
	// Hopeless: it would not fit if no other hosted cluster were there.
	Hopeless bool
	// Lack says what there is no room for. It is empty for one that would fit and only waits for its turn.
	Lack string
	// Needed is what it asks for, Free what there is on the nodes that it may use, Reserved how much of it belongs to control planes and
	// pods that came before.
	Needed, Free, Reserved Amounts
	// Missing is how much less there is on the nodes that it may use, all together, than it and all that came before ask for. It is empty where
	// the room is only scattered, or no node suits, and for one that would fit and waits for its turn.
	Missing Amounts
	// Nodes are those that it may use, those with most room first; Unsuited is how many others there are.
	Nodes    []Node
	Unsuited int
}

// Decide gives a verdict for everybody in the queue, by name. Who is admitted counts as a reservation for those behind.
func Decide(w World) map[string]Verdict {
	queue := slices.Clone(w.Queue)
	slices.SortFunc(queue, func(a, b Candidate) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	f := newField(w.Nodes)
	waiting := load{}
	// What fits nowhere takes nothing from anybody.
	for _, p := range f.placeAll(w.Others) {
		if slices.ContainsFunc(p.nodes, func(i int) bool { return fits(p.Pod.Requests, f.nodes[i].Free) }) {
			waiting.add(p)
		}
	}
	reserved := f.placeAll(w.Reserved)
	for _, p := range reserved {
		waiting.add(p)
	}
	verdicts := map[string]Verdict{}
	var held []waiter
	for _, c := range queue {
		v := f.examine(c, reserved, waiting)
		mine := f.placeAll(c.Groups)
		for _, h := range held {
			if !h.hopeless && sharesNodes(h.groups, mine) {
				v.Admitted, v.Behind = false, h.name
				break
			}
		}
		if v.Admitted {
			for _, p := range mine {
				waiting.add(p)
			}
			reserved = append(reserved, mine...)
		} else {
			held = append(held, waiter{c.Name, mine, v.Hopeless})
			v.Place = len(held)
		}
		verdicts[c.Name] = v
	}
	for name, v := range verdicts {
		if !v.Admitted {
			v.Of = len(held)
			verdicts[name] = v
		}
	}
	return verdicts
}

// waiter is a candidate that was not admitted.
type waiter struct {
	name     string
	groups   []placed
	hopeless bool
}

func sharesNodes(a, b []placed) bool {
	return slices.ContainsFunc(a, func(x placed) bool {
		return slices.ContainsFunc(b, func(y placed) bool { return meet(x.nodes, y.nodes) })
	})
}

// examine looks whether a candidate fits, and describes the room.
func (f *field) examine(c Candidate, reserved []placed, waiting load) Verdict {
	mine := f.placeAll(c.Groups)
	all := mine
	if c.Spare != nil {
		all = append(slices.Clone(mine), f.place(*c.Spare))
	}
	v := Verdict{Needed: Need(c.Groups), Free: Amounts{}, Reserved: waiting.on(unionOf(mine))}
	for _, i := range unionOf(mine) {
		v.Nodes = append(v.Nodes, f.nodes[i])
		add(v.Free, f.nodes[i].Free, 1)
	}
	slices.SortStableFunc(v.Nodes, func(a, b Node) int { return cmp.Compare(b.Free[corev1.ResourceCPU], a.Free[corev1.ResourceCPU]) })
	v.Unsuited = len(f.nodes) - len(v.Nodes)
	v.Lack = f.lack(all, reserved, waiting, func(n *Node) Amounts { return n.Free })
	v.Admitted = v.Lack == ""
	v.Missing = v.missing()
	v.Hopeless = !v.Admitted && f.lack(all, nil, nil, func(n *Node) Amounts { return n.Base }) != ""
	return v
}

func (v Verdict) missing() Amounts {
	out := Amounts{}
	if v.Admitted || len(v.Nodes) == 0 {
		return out
	}
	for name, n := range v.Needed {
		if short := n + v.Reserved[name] - v.Free[name]; short > 0 {
			out[name] = short
		}
	}
	return out
}

// lack is the first of the pods that is not sure to find a place, in words; empty when all are. Those that have been promised a place before
// are asked, too.
func (f *field) lack(mine, reserved []placed, waiting load, room func(*Node) Amounts) string {
	for _, p := range mine {
		waiting = waiting.with(p)
	}
	for _, p := range mine {
		if !f.guaranteed(p, waiting.on(p.nodes), room) {
			return f.shortOf(p, waiting.on(p.nodes), room)
		}
	}
	places := unionOf(mine)
	for _, p := range reserved {
		if !meet(p.nodes, places) || !f.guaranteed(p, p.total(), func(n *Node) Amounts { return n.Base }) {
			continue // it competes for nothing, or waits for what is not to be
		}
		if !f.guaranteed(p, waiting.on(p.nodes), room) {
			return fmt.Sprintf("the room is kept for %s, which was admitted before", p.Component)
		}
	}
	return ""
}

// with is the load and one more group.
func (l load) with(p placed) load {
	out := load{}
	for key, e := range l {
		sum := Amounts{}
		add(sum, e.sum, 1)
		out[key] = &struct {
			nodes []int
			sum   Amounts
		}{e.nodes, sum}
	}
	out.add(p)
	return out
}

// shortOf says what is missing for a group, as far as it can be said in a word.
func (f *field) shortOf(p placed, all Amounts, room func(*Node) Amounts) string {
	if len(p.nodes) == 0 {
		return fmt.Sprintf("no node suits %s: its node selector, affinity or tolerations match none that is ready", p.Component)
	}
	free := Amounts{}
	single := false
	for _, i := range p.nodes {
		add(free, room(&f.nodes[i]), 1)
		single = single || fits(p.Pod.Requests, room(&f.nodes[i]))
	}
	for _, name := range sortedNames(all) {
		if all[name] > free[name] {
			return fmt.Sprintf("%s is missing", Format(name, all[name]-free[name]))
		}
	}
	if !single {
		return fmt.Sprintf("no node has room for %s, which needs %s on one node", p.Component, Text(p.Pod.Requests))
	}
	if p.Apart != "" && p.Count > 1 {
		return fmt.Sprintf("%s needs %d nodes apart (%s) with room", p.Component, p.Count+len(p.Places), p.Apart)
	}
	return fmt.Sprintf("the free room is scattered, so that %s, which needs %s on one node, is not sure to find a place", p.Component, Text(p.Pod.Requests))
}

func unionOf(groups []placed) []int {
	var all []int
	for _, p := range groups {
		all = append(all, p.nodes...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// HowMany tells how many control planes that are like one fit into a world beside what was admitted before, at most most, and the verdict on one
// more; that one is admitted when more would fit.
func HowMany(w World, like Candidate, most int) (int, Verdict) {
	for tried := 1; ; tried = min(2*tried, most+1) {
		w.Queue = nil
		for i := range tried {
			c := like
			c.Name = fmt.Sprintf("%06d", i)
			w.Queue = append(w.Queue, c)
		}
		verdicts := Decide(w)
		for i := range tried {
			if v := verdicts[fmt.Sprintf("%06d", i)]; !v.Admitted || i == most {
				return i, v
			}
		}
	}
}
