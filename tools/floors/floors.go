package floors

import "strings"

// Floor is a set of rooms that do not know each other. Each may import rooms on the floors below.
type Floor struct {
	Name string
	// What is the purpose of its rooms, for docs/architecture.md.
	What string
	// Rooms are folders of internal, or of the repository when nothing of that name is in internal.
	Rooms []string
}

// Floors are all floors, from the ground up.
var Floors = []Floor{
	{"ground", "needs nothing of ours", []string{"atomicfile", "bounded", "clip", "gomemlimit", "oci", "pause", "sleep", "version"}},
	{"contract", "what two programs agree on: names, tokens, proxies, signers, releases", []string{"contract"}},
	{"API machinery", "thin helpers for any controller", []string{"kube"}},
	{"knowledge", "formats and decisions of one subject, no controllers", []string{
		"aws", "capiadmission", "encryption", "endpoints", "image", "konnectivity", "machine", "monitoring", "netpolicy", "pki", "placement", "sizing", "support"}},
	{"manifests", "CRDs and what an installation consists of", []string{"config"}},
	{"sources", "releases from registries, and Cluster API under other names", []string{"capigroup", "release"}},
	{"sidecars", "what runs beside others in a pod", []string{"sidecar"}},
	{"parts", "components of a control plane, platforms, and programs that stand alone", []string{
		"controlplane", "etcdrecovery", "ignition", "machineconfig", "pkioperator", "platform", "sharedingress"}},
	{"operators of control planes", "and what the hypershift-operator's controllers share", []string{"configoperator", "hostedcontrolplane", "operator", "packages"}},
	{"NodePools", "machines of a hosted cluster, backups of its etcd, sizes and places of its control plane", []string{"auditlogs", "etcdbackup", "fleet", "nodepool"}},
	{"autoscaler", "sizes of NodePools", []string{"autoscaler"}},
	{"capacity", "room on the management cluster", []string{"capacity"}},
	{"HostedClusters", "control planes as users want them", []string{"hostedcluster"}},
	{"explanations", "what is wrong with an object, and why", []string{"why"}},
	{"command line", "what people call", []string{"cli"}},
	{"web console", "what people look at", []string{"console"}},
	{"local mode", "all of it on one machine", []string{"local"}},
	{"programs", "tables of what a program answers to, and what tests the whole", []string{"cmd", "test"}},
}

// Wings are rooms with an order within, from the bottom up: each part may import those before it, and every other part only those.
var Wings = map[string][]string{
	"hostedcluster": {"management", "metrics", "versions", "sources", "validate", "capi", "admission", "recovery", "state", "status", "desired", "comeback", "elsewhere", "adoption", "step", "watches", "teardown", "migration", "cloud"},
	"packages":      {"engine", "author", "control"},
}

// Apart are rooms that must not import each other although their floors allow it: what they agree on is in contract, operator or the API.
var Apart = [][2]string{
	{"configoperator", "controlplane"},
	{"configoperator", "hostedcontrolplane"},
	{"hostedcluster", "configoperator"},
	{"hostedcluster", "hostedcontrolplane"},
	{"hostedcluster", "ignition"},
	{"hostedcluster", "nodepool"},
	{"hostedcluster", "pkioperator"},
	{"nodepool", "controlplane"},
	{"nodepool", "ignition"},
	{"cli/install", "controlplane"},
}

// helper tells a package that only tests import: it may know everything.
func helper(pkg string) bool {
	for _, part := range strings.Split(pkg, "/") {
		if part == "testenv" || part == "acceptance" || (part != "test" && strings.HasSuffix(part, "test")) {
			return true
		}
	}
	return false
}

// place finds the room and floor of a package, given by its path in the repository.
func place(pkg string) (room string, floor int, ok bool) {
	room, _, _ = strings.Cut(strings.TrimPrefix(pkg, "internal/"), "/")
	for i, f := range Floors {
		for _, r := range f.Rooms {
			if r == room {
				return room, i, true
			}
		}
	}
	return room, 0, false
}

// part is the place of a package within its wing; -1 for a room that is no wing, and for the wing's own folder.
func part(pkg, room string) int {
	rest := strings.TrimPrefix(strings.TrimPrefix(pkg, "internal/"), room)
	first, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	for i, p := range Wings[room] {
		if p == first {
			return i
		}
	}
	return -1
}

// Judge says why a package must not import another; empty: it may. Both are paths in the repository.
func Judge(from, to string) string {
	if helper(from) {
		return ""
	}
	if helper(to) {
		if strings.HasPrefix(from, "test/") {
			return ""
		}
		return "only tests may import it"
	}
	fromRoom, a, ok := place(from)
	if !ok {
		return "room " + fromRoom + " is on no floor: give it one in tools/floors/floors.go"
	}
	toRoom, b, ok := place(to)
	if !ok {
		return "room " + toRoom + " is on no floor: give it one in tools/floors/floors.go"
	}
	for _, pair := range Apart {
		if in(from, pair[0]) && in(to, pair[1]) || in(from, pair[1]) && in(to, pair[0]) {
			return "they are to be apart: what they agree on belongs into internal/contract"
		}
	}
	switch {
	case fromRoom == toRoom:
		x, y := part(from, fromRoom), part(to, toRoom)
		if x >= 0 && y > x {
			return "it leads up within the wing: " + strings.Join(Wings[fromRoom], ", ") + " is the order"
		}
		return ""
	case a == b:
		return "both are on floor " + Floors[a].Name + ", whose rooms don't know each other"
	case b > a:
		return "it leads up, from floor " + Floors[a].Name + " to floor " + Floors[b].Name
	}
	return ""
}

// in tells whether a package lies in a folder of internal.
func in(pkg, folder string) bool {
	return pkg == "internal/"+folder || strings.HasPrefix(pkg, "internal/"+folder+"/")
}
