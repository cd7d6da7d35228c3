package quiet

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"hcp.internal/platform/internal/kube/fieldpath"
)

// Bounds of a cluster that rests.
type Bounds struct {
	// Operators and ManagementAPI are percents of a core.
	Operators, ManagementAPI float64
	// OperatorsTimes and ManagementAPITimes are how many times as much as the yardstick they may use where that is more: see yardstick.
	OperatorsTimes, ManagementAPITimes float64
	// Requests is how many a client may make per minute, leases aside.
	Requests float64
	// Leases is how often a client may read and renew leases per minute.
	Leases float64
}

// DefaultBounds are what local mode promises for clusters that have settled.
func DefaultBounds() Bounds {
	return Bounds{Operators: 2, OperatorsTimes: 2, ManagementAPI: 8, ManagementAPITimes: 4, Requests: 60, Leases: 30}
}

// Report is what was seen.
type Report struct {
	Length   time.Duration `json:"length"`
	Objects  int           `json:"objects"`
	Written  []Written     `json:"written,omitempty"`
	Beats    []string      `json:"heartbeats,omitempty"`
	Clients  []Requests    `json:"clients"`
	CPU      []CPU         `json:"cpu"`
	Problems []string      `json:"problems,omitempty"`

	// ofProcessors is how many of Problems, the last ones, are of processor time. The first ones are those of Written.
	ofProcessors int
}

// Written is an object that was written, made or deleted.
type Written struct {
	Object   string   `json:"object"`
	What     string   `json:"what"`
	Managers []string `json:"managers,omitempty"`
	Changes  []string `json:"changes,omitempty"`
	// Asked says who asked for it how often.
	Asked []string `json:"asked,omitempty"`

	object object
}

// observation is what was read.
type observation struct {
	length        time.Duration
	before, after map[objectKey]object
	clients       []Requests
	cpu           []CPU
}

// judge compares what was read with the bounds.
func judge(o observation, b Bounds) Report {
	var beats []object
	r := Report{Length: o.length, Objects: len(o.after), Clients: o.clients, CPU: o.cpu}
	for _, key := range slices.SortedFunc(maps.Keys(o.after), func(a, b objectKey) int { return strings.Compare(o.after[a].String(), o.after[b].String()) }) {
		is, was := o.after[key], o.before[key]
		switch {
		case is.resourceVersion == was.resourceVersion:
		case was.resourceVersion == "":
			r.Written = append(r.Written, Written{Object: is.String(), What: "made", Managers: fieldpath.Writers(nil, is.managed), Changes: said(is), object: is})
		case heartbeat(was, is) || unlimited(was, is):
			r.Beats = append(r.Beats, is.String())
			beats = append(beats, is)
		default:
			r.Written = append(r.Written, changed(was, is))
		}
	}
	for key, was := range o.before {
		// Events end by themselves after a time.
		if _, ok := o.after[key]; !ok && was.kind != "Event" {
			r.Written = append(r.Written, Written{Object: was.String(), What: "deleted", object: was})
		}
	}
	for i := range r.Written {
		r.Written[i].Asked = asked(r.Written[i].object, o.clients)
	}
	for _, w := range r.Written {
		r.Problems = append(r.Problems, w.String())
	}
	r.Problems = append(r.Problems, askedTooMuch(o, beats, b)...)
	used := usedTooMuch(o, b)
	r.Problems, r.ofProcessors = append(r.Problems, used...), len(used)
	return r
}

// said shows of an event what it says: it is what a reader wants to know of a new one.
func said(o object) []string {
	var out []string
	for _, path := range []string{"reason", "note", "message"} {
		if f, ok := o.fields[path]; ok && o.kind == "Event" {
			out = append(out, path+": "+f.Value)
		}
	}
	return out
}

// maxChanges of one object are shown.
const maxChanges = 12

func changed(was, is object) Written {
	w := Written{Object: is.String(), What: "written", object: is}
	managers := map[string]bool{}
	for _, name := range fieldpath.Writers(was.managed, is.managed) {
		managers[name] = true
	}
	changes := fieldpath.Changes(was.fields, is.fields)
	for _, c := range changes {
		for _, name := range c.Managers(was.managed, is.managed) {
			managers[name] = true
		}
	}
	w.Managers = slices.Sorted(maps.Keys(managers))
	for _, c := range changes[:min(len(changes), maxChanges)] {
		w.Changes = append(w.Changes, c.String())
	}
	if len(changes) > maxChanges {
		w.Changes = append(w.Changes, fmt.Sprintf("and %d fields more", len(changes)-maxChanges))
	}
	if len(changes) == 0 {
		// There and back again within the observation: the requests tell more.
		w.Changes = []string{"no field differs at the end"}
	}
	return w
}

// heartbeat is what a kubelet does to its Node every five minutes (nodeStatusReportFrequency) when there is nothing to say: it is a sign of
// life like a lease, and only that when nothing but the times of it differ.
func heartbeat(was, is object) bool { return is.kind == "Node" && onlyChanged(was, is, beat) }

func beat(c fieldpath.Change) bool {
	return strings.HasPrefix(c.Path, "status.conditions[") && strings.HasSuffix(c.Path, ".lastHeartbeatTime")
}

// noLimit is how control groups of version 1 say that memory is not limited: the largest number of whole pages.
const noLimit = `"9007199254740988Ki"`

// unlimited is what a kubelet adds to the status of a Pod some minutes after it started, once, on a machine with control groups of version 1: it
// takes their word for no limit as a limit that was set. It follows from the start of the Pod, and can't come again.
func unlimited(was, is object) bool {
	return is.kind == "Pod" && onlyChanged(was, is, func(c fieldpath.Change) bool {
		return strings.HasPrefix(c.Path, "status.") && strings.HasSuffix(c.Path, "resources.limits.memory") && c.Before == "" && c.After == noLimit
	})
}

// onlyChanged says that something differs, and nothing but what may.
func onlyChanged(was, is object, may func(fieldpath.Change) bool) bool {
	changes := fieldpath.Changes(was.fields, is.fields)
	return len(changes) > 0 && !slices.ContainsFunc(changes, func(c fieldpath.Change) bool { return !may(c) })
}

// asked finds in what clients asked for the writes of an object.
func asked(o object, clients []Requests) []string {
	var out []string
	for _, c := range clients {
		whats, _ := writesOf(c, o)
		for _, what := range whats {
			out = append(out, what+" by "+c.User+" ("+c.Agent+")")
		}
	}
	return out
}

// writesOf are a client's writes of an object, and how many they are.
func writesOf(c Requests, o object) (whats []string, total int) {
	name := o.name
	if o.namespace != "" {
		name = o.namespace + "/" + name
	}
	for _, what := range c.What {
		words := strings.Fields(what) // 12×, patch, machinesets.cluster.x-k8s.io, clusters-demo/demo
		if c.Server != o.server || len(words) != 4 || words[3] != name || !slices.Contains(writeVerbs, words[1]) || !strings.HasPrefix(words[2], strings.ToLower(o.kind)) {
			continue
		}
		n, _ := strconv.Atoi(strings.TrimSuffix(words[0], "×"))
		whats, total = append(whats, words[0]+" "+words[1]), total+n
	}
	return whats, total
}

func askedTooMuch(o observation, beats []object, b Bounds) []string {
	var out []string
	for _, c := range o.clients {
		minutes := o.length.Minutes()
		asks, leases := float64(c.Count-c.Leases)/minutes, float64(c.Leases)/minutes
		writes := c.Writes
		for _, beat := range beats {
			_, n := writesOf(c, beat)
			writes -= n
		}
		if asks > b.Requests || leases > b.Leases || writes > 0 {
			out = append(out, fmt.Sprintf("%s asked %.0f times a minute (bound %.0f), %.0f times for leases (bound %.0f), wrote %d times: %s",
				c, asks, b.Requests, leases, b.Leases, writes, strings.Join(c.What[:min(len(c.What), 8)], ", ")))
		}
	}
	slices.Sort(out)
	return out
}

func usedTooMuch(o observation, b Bounds) []string {
	var out []string
	idle := yardstick(o.cpu, o.length)
	for group, bound := range map[Group]float64{
		Operators: max(b.Operators, b.OperatorsTimes*idle), ManagementAPI: max(b.ManagementAPI, b.ManagementAPITimes*idle),
	} {
		if sum := Sum(o.cpu, group, o.length); sum > bound {
			var who []string
			for _, c := range o.cpu {
				if c.Group == group && len(who) < 8 {
					who = append(who, fmt.Sprintf("%.2f %% %s %s", c.Percent(o.length), c.Where, c.Program))
				}
			}
			out = append(out, fmt.Sprintf("%s used %.2f %% of a core (bound %.1f %%): %s", group, sum, bound, strings.Join(who, ", ")))
		}
	}
	slices.Sort(out)
	return out
}

// yardstick is how many percent of a core the management cluster's kube-controller-manager and kube-scheduler used. Next to all that a program at rest
// does is to wake up for timers, and what that costs differs between machines: on some virtual ones it is five times as much as on others. What these
// two do at rest is the same everywhere, and not ours.
func yardstick(cpu []CPU, length time.Duration) float64 {
	sum := 0.0
	for _, c := range cpu {
		words := strings.Fields(c.Program)
		if c.Where == onMachine && len(words) > 0 && slices.Contains([]string{"kube-controller-manager", "kube-scheduler"}, words[len(words)-1]) {
			sum += c.Percent(length)
		}
	}
	return sum
}

// Sum is how many percent of a core a group used.
func Sum(cpu []CPU, group Group, length time.Duration) float64 {
	sum := 0.0
	for _, c := range cpu {
		if c.Group == group {
			sum += c.Percent(length)
		}
	}
	return sum
}

func (w Written) String() string {
	s := w.Object + " was " + w.What
	if len(w.Managers) > 0 {
		s += " by " + strings.Join(w.Managers, ", ")
	}
	if len(w.Asked) > 0 {
		s += " (" + strings.Join(w.Asked, ", ") + ")"
	}
	if len(w.Changes) > 0 {
		s += ": " + strings.Join(w.Changes, "; ")
	}
	return s
}

// MayBeTheMachine says that all that was found can be of a machine that others use, too: processor time, of which such a machine counts more for the same
// work, and what kubelets tell in events, and nobody else wrote, as that a probe timed out. Who wants to know looks again.
func (r Report) MayBeTheMachine() bool {
	for _, w := range r.Written {
		if w.object.kind != "Event" || !slices.Equal(w.Managers, []string{"kubelet"}) {
			return false
		}
	}
	asked := r.Problems[len(r.Written) : len(r.Problems)-r.ofProcessors]
	for _, problem := range asked {
		if !slices.ContainsFunc(r.Clients, func(c Requests) bool {
			return strings.HasPrefix(c.User, "system:node:") && strings.HasPrefix(problem, c.String()+" asked ")
		}) {
			return false
		}
	}
	return len(r.Written) > 0 || r.ofProcessors > 0 && len(asked) == 0
}

// worthShowing is the least, in percent of a core, of what is listed by name.
const worthShowing = 0.02

// Print writes the report for people.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%d objects were watched for %s. Of a core, operators used %.2f %%, the management API %.2f %%, its kube-controller-manager and kube-scheduler %.2f %%.\n",
		r.Objects, r.Length.Round(time.Second), Sum(r.CPU, Operators, r.Length), Sum(r.CPU, ManagementAPI, r.Length), yardstick(r.CPU, r.Length))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\n% OF A CORE\tOF IT COMMANDS\tGROUP\tWHERE\tPROGRAM")
	for _, c := range r.CPU {
		if c.Percent(r.Length) >= worthShowing {
			fmt.Fprintf(t, "%.2f\t%.2f\t%s\t%s\t%s\n", c.Percent(r.Length), 100*float64(c.Children)/float64(r.Length), c.Group, c.Where, c.Program)
		}
	}
	_ = t.Flush()
	fmt.Fprintln(t, "\nREQUESTS/MIN\tLEASES/MIN\tWRITES\tCLIENT\tMOSTLY")
	for _, c := range r.Clients {
		fmt.Fprintf(t, "%.0f\t%.0f\t%d\t%s\t%s\n", c.PerMinute(r.Length), float64(c.Leases)/r.Length.Minutes(), c.Writes, c.Client, strings.Join(c.What[:min(len(c.What), 3)], ", "))
	}
	_ = t.Flush()
	for _, b := range r.Beats {
		fmt.Fprintf(w, "Only what a kubelet has to say: %s\n", b)
	}
	if len(r.Problems) == 0 {
		fmt.Fprintln(w, "\nIt is quiet.")
		return
	}
	fmt.Fprintln(w, "\nIt is not quiet:")
	for _, p := range r.Problems {
		fmt.Fprintln(w, "- "+p)
	}
}
