package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/supervisor"
)

// Report is what "status" prints.
type Report struct {
	State      string          `json:"state"` // Running, Degraded or Stopped
	StateDir   string          `json:"stateDir"`
	Kubeconfig string          `json:"kubeconfig,omitempty"`
	Supervisor int             `json:"supervisorPID,omitempty"`
	Processes  []ReportEntry   `json:"processes,omitempty"`
	Namespaces map[string]Pods `json:"namespaces,omitempty"`
	Message    string          `json:"message,omitempty"` // what to do when it is not Running
}

// ReportEntry is one process.
type ReportEntry struct {
	supervisor.ProcessStatus
	MemoryBytes uint64 `json:"memoryBytes"` // resident
}

// Pods counts the pods of a namespace.
type Pods struct {
	Ready int `json:"ready"`
	Total int `json:"total"`
}

// States of a Report.
const (
	StateRunning  = "Running"
	StateDegraded = "Degraded"
	StateStopped  = "Stopped"
)

// apiTimeout bounds what "status" asks the API server for.
const apiTimeout = 5 * time.Second

// ReadReport looks at processes and, when the API server answers, at pods.
func ReadReport(ctx context.Context, stateDir string) Report {
	p := components.Paths{State: stateDir}
	r := Report{State: StateStopped, StateDir: stateDir, Message: "start it with: hypershift local up"}
	st, err := supervisor.ReadStatus(p.Status())
	if err != nil || !st.Alive() {
		if other, err := CurrentInstance(); err == nil && other != nil && other.StateDir != stateDir {
			r.Message = "another instance uses the state folder " + other.StateDir
		}
		return r
	}
	r.State, r.Message, r.Supervisor, r.Kubeconfig = StateRunning, "", st.PID, p.Kubeconfig()
	r.Processes = append(r.Processes, ReportEntry{
		ProcessStatus: supervisor.ProcessStatus{Name: "supervisor", PID: st.PID, StartTime: st.StartTime, Ready: true}, MemoryBytes: resident(st.PID),
	})
	for _, proc := range st.Processes {
		r.Processes = append(r.Processes, ReportEntry{ProcessStatus: proc, MemoryBytes: resident(proc.PID)})
	}
	if bad := st.NotReady(); len(bad) > 0 {
		r.State, r.Message = StateDegraded, "not ready: "+strings.Join(bad, ", ")+"; see hypershift local logs NAME"
	}
	if pods, err := countPods(ctx, p); err == nil {
		r.Namespaces = pods
	}
	return r
}

func countPods(ctx context.Context, p components.Paths) (map[string]Pods, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	if err != nil {
		return nil, err
	}
	cfg.Timeout = apiTimeout
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	list, err := c.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1000}) // a node takes 240
	if err != nil {
		return nil, err
	}
	out := map[string]Pods{}
	for _, pod := range list.Items {
		n := out[pod.Namespace]
		n.Total++
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				n.Ready++
			}
		}
		out[pod.Namespace] = n
	}
	return out, nil
}

// resident reads the resident set of a process in bytes; 0 when it is gone.
func resident(pid int) uint64 {
	if pid == 0 {
		return 0
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// Print writes the report as tables.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%s (state folder %s)\n", r.State, r.StateDir)
	if r.Message != "" {
		fmt.Fprintln(w, r.Message)
	}
	if len(r.Processes) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nPROCESS\tPID\tREADY\tRESTARTS\tMEMORY\tNOTE")
	var sum uint64
	for _, p := range r.Processes {
		note := p.Waiting
		if note == "" && p.LastExit != "" {
			note = "last exit: " + p.LastExit
		}
		fmt.Fprintf(t, "%s\t%d\t%v\t%d\t%d MiB\t%s\n", p.Name, p.PID, p.Ready, p.Restarts, p.MemoryBytes>>20, note)
		sum += p.MemoryBytes
	}
	fmt.Fprintf(t, "(all)\t\t\t\t%d MiB\t\n", sum>>20)
	_ = t.Flush()
	if len(r.Namespaces) == 0 {
		return
	}
	fmt.Fprintln(t, "\nNAMESPACE\tPODS READY")
	for _, ns := range sortedKeys(r.Namespaces) {
		fmt.Fprintf(t, "%s\t%d of %d\n", ns, r.Namespaces[ns].Ready, r.Namespaces[ns].Total)
	}
	_ = t.Flush()
}

// summary ends "up" with what runs and the line that is needed next.
func (u *Up) summary(ctx context.Context) error {
	r := ReadReport(ctx, u.Settings.StateDir)
	fmt.Fprintln(u.Out)
	r.Print(u.Out)
	p := u.Settings.paths()
	fmt.Fprintf(u.Out, "\nThe management cluster:\n  export KUBECONFIG=%s\n", p.Kubeconfig())
	if _, err := os.Stat(p.DemoKubeconfig()); err == nil {
		fmt.Fprintf(u.Out, "The hosted cluster clusters/demo:\n  export KUBECONFIG=%s\n", p.DemoKubeconfig())
	}
	return nil
}
