package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// Kind is what a step does.
type Kind string

// Faults. Each ends by itself after Step.For; those without a length are over at once.
const (
	// Kill ends processes with SIGKILL.
	Kill Kind = "kill"
	// Stop sends SIGSTOP, and SIGCONT at the end.
	Stop Kind = "stop"
	// Partition drops what a pod sends and gets, but for its own loopback.
	Partition Kind = "partition"
	// Registry drops what a pod sends to the registry: one that never answers.
	Registry Kind = "registry-hangs"
	// SlowRegistry lets a pod have a few kilobytes a second from the registry.
	SlowRegistry Kind = "registry-slow"
	// Loss drops Count of a hundred packets that a pod sends or gets, at random.
	Loss Kind = "packet-loss"
	// Apart drops everything between the pods of a hosted control plane and those of an operator's namespace.
	Apart Kind = "namespaces-apart"
	// Templates makes Count hostile ObjectTemplates in the tenant's namespace, and deletes them at the end.
	Templates Kind = "hostile-templates"
	// Packages does the same with Packages whose images are hostile.
	Packages Kind = "hostile-packages"
	// Requests has Count clients of a tenant's user ask a hosted API as fast as it lets them.
	Requests Kind = "request-flood"
	// Signing makes Count certificate signing requests in a hosted API, and deletes them at the end.
	Signing Kind = "csr-flood"
)

// Work is what users do.
const (
	// Create makes a hosted cluster.
	Create Kind = "create"
	// Destroy deletes one.
	Destroy Kind = "destroy"
	// Upgrade gives one another release image.
	Upgrade Kind = "upgrade"
	// Roll changes the configuration of the demo cluster's NodePool, which replaces its machines.
	Roll Kind = "roll"
	// Scale gives the demo cluster's NodePool Count replicas more than it has by itself.
	Scale Kind = "scale"
	// Fleet gives the HostedClusterPackage over all hosted clusters the version in Step.Version.
	Fleet Kind = "fleet"
	// Package gives the tenant's Package the version in Step.Version.
	Package Kind = "package"
	// ClusterPackage gives the ClusterPackage the version in Step.Version.
	ClusterPackage Kind = "cluster-package"
)

// Places of targets.
const (
	// Machine are processes of the management cluster's node, outside of pods.
	Machine = "machine"
	// Operators are those of the whole installation.
	Operators = "operators"
	// Workers are machines of the demo cluster.
	Workers = "workers"
)

// Versions of packages; Bad is one that never becomes available.
const (
	First  = "1.0.0"
	Second = "2.0.0"
	Bad    = "no-such-version"
)

// Demo is the number of the hosted cluster that was there before. Others are numbered from 1.
const Demo = 0

// Step is one thing that the adversary does.
type Step struct {
	Number int
	// At is when it begins, from the beginning of the storm. For is how long it lasts. Both are whole seconds.
	At, For time.Duration
	Kind    Kind
	// Place and Program are whom it meets: Machine, Operators, Workers, or the name of a hosted cluster.
	Place, Program string
	// Cluster is the number of the hosted cluster, where Place is one.
	Cluster int
	Count   int
	Version string
}

// End is when the step is over.
func (s Step) End() time.Duration { return s.At + s.For }

// Fault says that the step harms something.
func (s Step) Fault() bool {
	return slices.Contains([]Kind{Kill, Stop, Partition, Registry, SlowRegistry, Loss, Apart, Templates, Packages, Requests, Signing}, s.Kind)
}

// Heavy says that the fault meets what everything else needs; nothing else may go on meanwhile.
func (s Step) Heavy() bool { return s.Fault() && s.Place == Machine }

// Target is whom the step meets, for people and for bounds.
func (s Step) Target() string {
	if s.Program == "" {
		return s.Place
	}
	return s.Place + "/" + s.Program
}

// MarshalJSON writes times as people read them.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Number  int    `json:"step"`
		At      string `json:"at"`
		For     string `json:"for,omitempty"`
		Kind    Kind   `json:"kind"`
		Target  string `json:"target,omitempty"`
		Count   int    `json:"count,omitempty"`
		Version string `json:"version,omitempty"`
	}{s.Number, s.At.String(), length(s.For), s.Kind, s.Target(), s.Count, s.Version})
}

func length(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// Plan is what is done.
type Plan struct {
	Seed uint64
	// Length is how long all of it is to take when nothing is wrong; Storm is the part with faults, at its beginning.
	Length, Storm time.Duration
	// Clusters is how many hosted clusters are made.
	Clusters int
	// Steps are in order of time.
	Steps []Step
}

// Print writes a line about the plan and one for each step, as JSON.
func (p Plan) Print(w io.Writer) error {
	out := json.NewEncoder(w)
	head := map[string]any{"seed": p.Seed, "length": p.Length.String(), "storm": p.Storm.String(), "clusters": p.Clusters, "steps": len(p.Steps)}
	if err := out.Encode(head); err != nil {
		return err
	}
	for _, s := range p.Steps {
		if err := out.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

// ClusterName is the name of the hosted cluster with a number.
func ClusterName(number int) string {
	if number == Demo {
		return "demo"
	}
	return fmt.Sprintf("hosted%d", number)
}

// Harm is for how long faults go on between two moments of the storm. Whoever waits for something meanwhile gives it that much more time.
func (p Plan) Harm(from, to time.Duration) time.Duration {
	var sum, until time.Duration
	until = from
	for _, s := range p.Steps { // they are in order, so what overlaps counts once
		begin, end := max(s.At, until), min(s.End(), to)
		if s.Fault() && end > begin {
			sum, until = sum+end-begin, end
		}
	}
	return sum
}

// Deadline is until when something that begins at a moment and takes at most bound by itself is over: while faults go on its time stands still.
func (p Plan) Deadline(begin, bound time.Duration) time.Duration {
	at, left := begin, bound
	for _, s := range p.Steps { // in order of their beginning
		if !s.Fault() || s.End() <= at {
			continue
		}
		if free := max(s.At-at, 0); left > free {
			left -= free
			at = s.End()
			continue
		}
		break
	}
	return at + left
}
