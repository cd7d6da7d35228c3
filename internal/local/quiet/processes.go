package quiet

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// tick is the unit of processor time in /proc; Linux tells user space 100 per second on all platforms that we build for.
const tick = 10 * time.Millisecond

// process is one at a moment.
type process struct {
	pid     int
	started uint64 // ticks since boot; with the pid it names a process for good
	program string // the file that it runs
	role    string // first argument of a program of many roles
	pod     string // UID, "" outside of pods
	cgroup  string // last element: a container's ID inside a pod
	cmdline string
	used    time.Duration
	// children have ended and were waited for: probes that are commands, for example.
	children time.Duration
}

// readProcesses looks at all processes of a machine. proc is /proc.
func readProcesses(proc string) (map[int]process, error) {
	dirs, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil || len(dirs) == 0 {
		return nil, fmt.Errorf("no processes in %s (%w)", proc, err)
	}
	found := map[int]process{}
	for _, dir := range dirs {
		p, err := readProcess(dir)
		if err == nil { // it may just have ended
			found[p.pid] = p
		}
	}
	return found, nil
}

var podUID = regexp.MustCompile(`/pod([0-9a-f]{8}[-_][0-9a-f_-]{27})/([0-9a-f]{64})`)

func readProcess(dir string) (process, error) {
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return process{}, err
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return process{}, err
	}
	p, err := parseStat(pid, string(stat))
	if err != nil {
		return process{}, err
	}
	if exe, err := os.Readlink(filepath.Join(dir, "exe")); err == nil {
		p.program = strings.TrimSuffix(filepath.Base(exe), " (deleted)")
	}
	if cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil {
		p.cmdline = string(cmdline)
		p.role = role(strings.Split(strings.TrimRight(p.cmdline, "\x00"), "\x00"), p.program)
	}
	if cgroup, err := os.ReadFile(filepath.Join(dir, "cgroup")); err == nil {
		if m := podUID.FindStringSubmatch(string(cgroup)); m != nil {
			p.pod, p.cgroup = strings.ReplaceAll(m[1], "_", "-"), m[2]
		}
	}
	return p, nil
}

// role is by which name a program of many roles was called, or its first argument.
func role(args []string, program string) string {
	if len(args) == 0 {
		return ""
	}
	if name := filepath.Base(args[0]); name != program {
		return name
	}
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		return filepath.Base(args[1])
	}
	return ""
}

func parseStat(pid int, stat string) (process, error) {
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, fmt.Errorf("no name of a process in %q", stat)
	}
	fields := strings.Fields(stat[end+1:]) // the first is number 3 of proc(5)
	if len(fields) < 20 {
		return process{}, fmt.Errorf("%d fields in %q", len(fields), stat)
	}
	number := func(n int) uint64 { v, _ := strconv.ParseUint(fields[n-3], 10, 64); return v }
	return process{
		pid: pid, program: stat[open+1 : end], started: number(22),
		used: time.Duration(number(14)+number(15)) * tick, children: time.Duration(number(16)+number(17)) * tick,
	}, nil
}

// Group says whose bound a process counts against.
type Group string

// Groups of processes.
const (
	// Operators are our programs in pods, Cluster API's and the providers'.
	Operators Group = "operators"
	// ManagementAPI is kube-apiserver and etcd of the management cluster.
	ManagementAPI Group = "management API"
	// Other is everything else that belongs to the cluster.
	Other Group = "other"
)

// onMachine is where a program runs that is not in a pod.
const onMachine = "machine"

// CPU is what a program used during an observation.
type CPU struct {
	// Where is namespace/pod/container, the pod without what differs from one to the next; "machine" outside of pods.
	Where   string        `json:"where"`
	Program string        `json:"program"`
	Group   Group         `json:"group"`
	Used    time.Duration `json:"used"`
	// Children is what commands used that it waited for, as probes are.
	Children time.Duration `json:"children"`
}

// Percent of a core.
func (c CPU) Percent(length time.Duration) float64 {
	return 100 * float64(c.Used+c.Children) / float64(length)
}

// pods are those of the management cluster by UID.
type pods map[string]corev1.Pod

// usage is what each program used between two looks. Processes that began in between count as a whole; what ended in between is seen in
// the children of who waited for it. Processes outside of pods count when they run from the state folder.
func usage(before, after map[int]process, known pods, ours func(process) bool) []CPU {
	sums := map[[2]string]*CPU{}
	for pid, p := range after {
		if p.pod == "" && !ours(p) {
			continue
		}
		used, children := p.used, p.children
		if was, ok := before[pid]; ok && was.started == p.started {
			used, children = used-was.used, children-was.children
		}
		where := onMachine
		var container string
		if pod, ok := known[p.pod]; ok {
			container = containerOf(pod, p.cgroup)
			where = pod.Namespace + "/" + stem(pod) + "/" + container
		} else if p.pod != "" {
			where = "pod " + p.pod
		}
		name := p.program
		if p.role != "" {
			name += " " + p.role
		}
		key := [2]string{where, name}
		if sums[key] == nil {
			sums[key] = &CPU{Where: where, Program: name, Group: groupOf(p, where)}
		}
		sums[key].Used += used
		sums[key].Children += children
	}
	var out []CPU
	for _, c := range sums {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b CPU) int {
		return cmp.Or(cmp.Compare(b.Used+b.Children, a.Used+a.Children), cmp.Compare(a.Where+a.Program, b.Where+b.Program))
	})
	return out
}

// groupOf goes by the program, so that a new operator counts without anybody adding it to a list.
func groupOf(p process, where string) Group {
	inPod := where != onMachine
	switch {
	case inPod && slices.Contains([]string{"hcp-operators", "hcp-sidecar", "manager"}, p.program): // the last is what Cluster API's are called
		return Operators
	case !inPod && (p.program == "etcd" || p.role == "etcd" || p.program == "kube-apiserver" || p.role == "kube-apiserver"):
		return ManagementAPI
	}
	return Other
}

func containerOf(pod corev1.Pod, id string) string {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if _, bare, ok := strings.Cut(s.ContainerID, "://"); ok && bare == id {
			return s.Name
		}
	}
	return "-" // the sandbox
}

// stem is the name of a pod without what differs from one to the next.
func stem(pod corev1.Pod) string {
	name := strings.TrimSuffix(pod.GenerateName, "-")
	if hash := pod.Labels["pod-template-hash"]; hash != "" {
		name = strings.TrimSuffix(name, "-"+hash)
	}
	return cmp.Or(name, pod.Name)
}
