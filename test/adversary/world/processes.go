package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/local/supervisor"
	"hcp.internal/platform/test/adversary/plan"
)

// ErrNobody says that whom a step meets isn't there: a hosted cluster that waits for room has no processes.
var ErrNobody = errors.New("there is nobody")

// Process is one for good: a number may be given to another.
type Process struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // clock ticks since boot
	Program string `json:"program"`
}

// Alive says that it still runs.
func (p Process) Alive() bool {
	started, err := supervisor.StartTime(p.PID)
	return err == nil && started == p.Started
}

var podUID = regexp.MustCompile(`/pod([0-9a-f]{8}[-_][0-9a-f_-]{27})/([0-9a-f]{64})`)

// Processes are those of a step's target.
func (w *World) Processes(ctx context.Context, s plan.Step) ([]Process, error) {
	if s.Place == plan.Machine {
		return w.machineProcesses(s.Program)
	}
	pod, err := w.Pod(ctx, s)
	if err != nil {
		return nil, err
	}
	all := InPod(string(pod.UID))
	return ofTarget(s, pod, all)
}

// ofTarget chooses: a component's pod has helpers beside it, which aren't meant; a worker has a machine full of processes.
func ofTarget(s plan.Step, pod *corev1.Pod, all map[string][]Process) ([]Process, error) {
	container := pod.Spec.Containers[0].Name
	for _, c := range pod.Spec.Containers {
		if c.Name == s.Program {
			container = c.Name
		}
	}
	for _, st := range pod.Status.ContainerStatuses {
		if st.Name != container {
			continue
		}
		_, id, _ := strings.Cut(st.ContainerID, "://")
		found := all[id]
		if s.Place == plan.Workers && s.Program != "machine" {
			found = slices.DeleteFunc(slices.Clone(found), func(p Process) bool { return p.Program != s.Program })
		}
		if s.Place == plan.Workers && s.Program == "machine" && len(found) > 1 {
			slices.SortFunc(found, func(a, b Process) int { return a.PID - b.PID })
			found = found[:1] // its init: the kernel ends the others with it
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	return nil, fmt.Errorf("pod %s/%s has no running container %s: %w", pod.Namespace, pod.Name, container, ErrNobody)
}

// Pod is the first running one of a step's target, by name; Count chooses among workers.
func (w *World) Pod(ctx context.Context, s plan.Step) (*corev1.Pod, error) {
	namespace, selector := ControlPlane(s.Cluster), labels.Set{"hypershift.openshift.io/control-plane-component": s.Program}
	switch {
	case s.Place == plan.Workers:
		selector = nil
	case s.Place == plan.Operators && s.Program == "package-operator":
		namespace, selector = "package-operator-system", labels.Set{"app.kubernetes.io/name": "package-operator"}
	case s.Place == plan.Operators:
		namespace, selector = "hypershift", labels.Set{"name": "operator"}
	}
	list := &corev1.PodList{}
	if err := w.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(selector)); err != nil {
		return nil, fmt.Errorf("listing pods in %s: %w", namespace, err)
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || isWorker(&p) != (s.Place == plan.Workers)
	})
	if len(pods) == 0 {
		return nil, fmt.Errorf("%s has no running pod in %s: %w", s.Target(), namespace, ErrNobody)
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return &pods[s.Count%len(pods)], nil
}

// Running are the running pods of a namespace that are no machines.
func (w *World) Running(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := w.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pods in %s: %w", namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning || isWorker(&p) }), nil
}

func isWorker(p *corev1.Pod) bool {
	_, worker := p.Labels["infrastructure.cluster.x-k8s.io/local-machine"]
	return worker
}

// machineProcesses are those of the management cluster's node, which mention its state folder. Workers have programs of the same names.
func (w *World) machineProcesses(program string) ([]Process, error) {
	var found []Process
	each(func(p Process, args []string, cgroup string) {
		name := ""
		if len(args) > 0 {
			name = filepath.Base(args[0])
		}
		if name == program && strings.Contains(strings.Join(args, " "), w.StateDir+"/") && !podUID.MatchString(cgroup) {
			p.Program = program
			found = append(found, p)
		}
	})
	if len(found) == 0 {
		return nil, fmt.Errorf("%s doesn't run on the machine: %w", program, ErrNobody)
	}
	return found, nil
}

// InPod are the processes of a pod by container ID.
func InPod(uid string) map[string][]Process {
	found := map[string][]Process{}
	each(func(p Process, _ []string, cgroup string) {
		if m := podUID.FindStringSubmatch(cgroup); m != nil && strings.ReplaceAll(m[1], "_", "-") == uid {
			found[m[2]] = append(found[m[2]], p)
		}
	})
	return found
}

// each visits the machine's processes that have not ended.
func each(visit func(p Process, args []string, cgroup string)) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		started, err := supervisor.StartTime(pid)
		if err != nil {
			continue // it has just ended
		}
		cgroup, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		raw, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		var args []string
		for arg := range bytes.SplitSeq(bytes.TrimRight(raw, "\x00"), []byte{0}) {
			args = append(args, string(arg))
		}
		program := ""
		if exe, err := os.Readlink(filepath.Join(dir, "exe")); err == nil {
			program = strings.TrimSuffix(filepath.Base(exe), " (deleted)")
		}
		visit(Process{PID: pid, Started: started, Program: program}, args, string(cgroup))
	}
}
