package plan

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Bounds of every plan; Check holds plans to them.
const (
	// MinLength is what the shortest plan takes, MaxLength the longest.
	MinLength, MaxLength = 3 * time.Minute, 2 * time.Hour
	// MaxClusters is how many hosted clusters are made at most.
	MaxClusters = 6
	// MaxAtOnce is how many faults go on at the same time at most.
	MaxAtOnce = 2
	// MaxFault is how long the longest fault lasts.
	MaxFault = 45 * time.Second
	// Recover is how long a target is left alone after a fault.
	Recover = 20 * time.Second
	// calmFirst is how long the first hosted clusters have to begin.
	calmFirst = 15 * time.Second
	// youth is when the first pods of a hosted cluster are there, farewell when the last are gone.
	youth, farewell = 10 * time.Second, 15 * time.Second
)

// stream is the second half of the generator's state. Another one makes other plans of the same seeds.
const stream = 0xad5e5a17

// target is a program that faults meet, weight how often among others.
type target struct {
	program string
	weight  int
}

var (
	machinePrograms  = []target{{"kubelet", 2}, {"containerd", 1}, {"kube-proxy", 1}, {"kube-scheduler", 1}, {"kube-controller-manager", 1}, {"kube-apiserver", 1}, {"etcd", 1}}
	operatorPrograms = []target{{"hypershift-operator", 1}, {"package-operator", 1}}
	workerPrograms   = []target{{"machine", 2}, {"kubelet", 2}, {"containerd", 1}}
	hostedPrograms   = []target{{"etcd", 3}, {"kube-apiserver", 3}, {"control-plane-operator", 3}, {"hosted-cluster-config-operator", 2}, {"kube-controller-manager", 1}}
	// demoPrograms are there where machines are.
	demoPrograms = []target{{"cluster-api", 2}, {"capi-provider", 2}, {"ignition-server", 1}}
	apartHosted  = []target{{"etcd", 2}, {"kube-apiserver", 2}, {"control-plane-operator", 2}, {"hosted-cluster-config-operator", 1}}
)

// faultKind is how often faults of a kind come among others, and how long they last: from least to most.
type faultKind struct {
	kind        Kind
	weight      int
	least, most time.Duration
}

var faultKinds = []faultKind{
	{Kill, 8, 0, 0},
	{Stop, 6, 5 * time.Second, MaxFault},
	{Partition, 4, 10 * time.Second, MaxFault},
	{Registry, 1, 10 * time.Second, MaxFault},
	{SlowRegistry, 2, 20 * time.Second, MaxFault},
	{Loss, 3, 20 * time.Second, MaxFault},
	{Apart, 3, 10 * time.Second, MaxFault},
	{Templates, 2, 20 * time.Second, MaxFault},
	{Packages, 2, 20 * time.Second, MaxFault},
	{Requests, 2, 10 * time.Second, 20 * time.Second},
	{Signing, 2, 15 * time.Second, 30 * time.Second},
}

// For makes the plan of a seed that takes about length, which is brought within MinLength and MaxLength.
func For(seed uint64, length time.Duration) Plan {
	length = min(max(length.Truncate(time.Second), MinLength), MaxLength)
	g := &generator{rng: rand.New(rand.NewPCG(seed, stream))} // it is to be the same each time
	g.plan = Plan{Seed: seed, Length: length, Storm: (length * 6 / 10).Truncate(time.Second)}
	g.plan.Clusters = min(2+int(g.plan.Storm/(3*time.Minute)), MaxClusters)
	g.clusters()
	g.work()
	g.faults()
	slices.SortStableFunc(g.plan.Steps, func(a, b Step) int { return int(a.At/time.Second) - int(b.At/time.Second) })
	for i := range g.plan.Steps {
		g.plan.Steps[i].Number = i + 1
	}
	return g.plan
}

type generator struct {
	rng  *rand.Rand
	plan Plan
}

func (g *generator) add(s Step) { g.plan.Steps = append(g.plan.Steps, s) }

// between is a whole number of seconds.
func (g *generator) between(from, to time.Duration) time.Duration {
	from = from.Truncate(time.Second)
	if to < from+time.Second {
		return from
	}
	return from + time.Duration(g.rng.Int64N(int64((to-from)/time.Second)+1))*time.Second
}

// clusters come and go. The first stays to the end, others may go in their youth; what is left at the end of the storm is destroyed then.
func (g *generator) clusters() {
	storm := g.plan.Storm
	for c := 1; c <= g.plan.Clusters; c++ {
		begin := time.Duration(0)
		if c > 1 {
			begin = g.between(10*time.Second, storm/2)
		}
		g.add(Step{At: begin, Kind: Create, Place: ClusterName(c), Cluster: c})
		if c > 1 && g.rng.IntN(3) > 0 {
			g.add(Step{At: g.between(begin+20*time.Second, storm), Kind: Destroy, Place: ClusterName(c), Cluster: c})
		}
	}
	g.add(Step{At: g.between(storm*4/10, storm*7/10), Kind: Upgrade, Place: ClusterName(1), Cluster: 1})
}

// work is what users do besides.
func (g *generator) work() {
	storm := g.plan.Storm
	versions := []string{First, Second, Bad}
	last := First
	for at := 20 * time.Second; at < storm; at += g.between(40*time.Second, 100*time.Second) {
		g.add(Step{At: at, Kind: Fleet, Version: last})
		others := slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return v == last })
		last = others[g.rng.IntN(len(others))]
	}
	for _, kind := range []Kind{Package, ClusterPackage} {
		version := g.rng.IntN(2)
		for at := g.between(10*time.Second, 40*time.Second); at < storm; at += g.between(30*time.Second, 120*time.Second) {
			g.add(Step{At: at, Kind: kind, Version: versions[version]})
			version = 1 - version
		}
	}
	// Both change the same machines, and each needs minutes.
	const long = 8 * time.Minute
	scale := g.rng.IntN(2) == 0
	if scale || storm >= long {
		begin := g.between(20*time.Second, storm/3)
		g.add(Step{At: begin, Kind: Scale, Place: ClusterName(Demo), Count: 1})
		g.add(Step{At: g.between(begin+60*time.Second, max(storm*2/3, begin+60*time.Second)), Kind: Scale, Place: ClusterName(Demo)})
	}
	if !scale || storm >= long {
		g.add(Step{At: g.between(30*time.Second, storm/2), Kind: Roll, Place: ClusterName(Demo)})
	}
}

// faults follow one another; one that would break a bound is left out.
func (g *generator) faults() {
	for at := calmFirst; at < g.plan.Storm; at += g.between(5*time.Second, 25*time.Second) {
		s := g.fault(at)
		if s.End() <= g.plan.Storm && fits(g.plan.Steps, s) {
			g.add(s)
		}
	}
}

func (g *generator) fault(at time.Duration) Step {
	weights := make([]int, len(faultKinds))
	for i, k := range faultKinds {
		weights[i] = k.weight
	}
	k := faultKinds[g.pick(weights)]
	s := Step{At: at, Kind: k.kind, For: g.between(k.least, k.most)}
	switch k.kind {
	case Kill, Stop:
		g.process(&s)
	case Partition, Loss:
		s.Count = 10 + g.rng.IntN(31)
		if s.Kind == Partition {
			s.Count = 0
		}
		if g.rng.IntN(3) == 0 {
			s.Place, s.Program = Operators, g.program(operatorPrograms)
		} else {
			g.hosted(&s, apartHosted)
		}
	case Apart:
		g.hosted(&s, operatorPrograms)
	case Registry, SlowRegistry:
		s.Place, s.Program = Operators, "package-operator"
	case Templates, Packages:
		s.Place, s.Count = "tenant", 2+g.rng.IntN(9)
	case Requests:
		g.cluster(&s)
		s.Count = 4 + g.rng.IntN(13)
	case Signing:
		g.cluster(&s)
		s.Count = 20 + g.rng.IntN(181)
	}
	return s
}

func (g *generator) process(s *Step) {
	switch g.pick([]int{2, 4, 6, 2}) {
	case 0:
		s.Place, s.Program = Machine, g.program(machinePrograms)
		s.For = min(s.For, 20*time.Second) // longer, and pods are told that their node is gone
	case 1:
		s.Place, s.Program = Operators, g.program(operatorPrograms)
	case 2:
		g.hosted(s, hostedPrograms)
	default:
		s.Place, s.Program, s.Count = Workers, g.program(workerPrograms), g.rng.IntN(2)
	}
}

// cluster chooses among those that are there: the demo cluster counts twice, as it has most to lose, and one that is being destroyed can be met, too.
func (g *generator) cluster(s *Step) {
	there := []int{Demo, Demo}
	for c := 1; c <= g.plan.Clusters; c++ {
		made, gone := g.plan.Storm, g.plan.Storm
		for _, o := range g.plan.Steps {
			switch {
			case o.Cluster == c && o.Kind == Create:
				made = o.At + youth
			case o.Cluster == c && o.Kind == Destroy:
				gone = o.At + farewell
			}
		}
		if made <= s.At && s.At < gone {
			there = append(there, c)
		}
	}
	s.Cluster = there[g.rng.IntN(len(there))]
	s.Place = ClusterName(s.Cluster)
}

func (g *generator) hosted(s *Step, from []target) {
	g.cluster(s)
	if s.Cluster == Demo && s.Kind != Apart {
		from = append(slices.Clone(from), demoPrograms...)
	}
	s.Program = g.program(from)
}

func (g *generator) program(from []target) string {
	weights := make([]int, len(from))
	for i, t := range from {
		weights[i] = t.weight
	}
	return from[g.pick(weights)].program
}

// pick returns an index, as often as its weight says.
func (g *generator) pick(weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := g.rng.IntN(sum)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	panic("plan: weights changed")
}
