package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/why"
)

// poolEntry is a NodePool with its machines.
type poolEntry struct {
	*world.Pool
	Why        why.Answer   `json:"why"`
	Conditions []condition  `json:"conditions"`
	Sets       []machineSet `json:"sets"`
	Machines   []machine    `json:"machines"`
	More       int          `json:"more,omitempty"` // machines that are not shown
	Command    string       `json:"command"`
}

// machineSet is a generation of machines; the newest is the one that is rolled out.
type machineSet struct {
	Name    string    `json:"name"`
	Newest  bool      `json:"newest"`
	Wanted  int32     `json:"wanted"`
	Ready   int32     `json:"ready"`
	Version string    `json:"version,omitempty"`
	Created time.Time `json:"created"`
}

// machine is a worker, or one in the making.
type machine struct {
	Name    string     `json:"name"`
	Set     string     `json:"set,omitempty"`
	Health  why.Health `json:"health"`
	Phase   string     `json:"phase"`
	Cause   string     `json:"cause,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Node    string     `json:"node,omitempty"`
	Version string     `json:"version,omitempty"`
	Address string     `json:"address,omitempty"`
	Created time.Time  `json:"created"`
	// Booted says how far it came: made, bootstrapped (its configuration was ready), provisioned, node.
	Booted string `json:"booted"`
	// Drain says what holds its drain; empty: nothing does.
	Drain string `json:"drain,omitempty"`
	// Unhealthy is what the health check found, and whether the machine is replaced because of it; empty: it is healthy, or nobody checks.
	Unhealthy string `json:"unhealthy,omitempty"`
}

// poolsOf are the NodePools of a snapshot with their machines.
func poolsOf(snap *why.Snapshot) []poolEntry {
	out := []poolEntry{}
	for i := range snap.NodePools {
		np := &snap.NodePools[i]
		p := poolEntry{Pool: world.PoolOf(np, time.Now()), Conditions: conditionsOf(ofPool(np)), Sets: []machineSet{}, Machines: []machine{},
			Why:     cleaned(why.Explain(snap, why.Object{Kind: "NodePool", Namespace: np.Namespace, Name: np.Name})),
			Command: fmt.Sprintf("hypershift why nodepool/%s -n %s", np.Name, np.Namespace)}
		for j := range snap.MachineSets {
			if ms := &snap.MachineSets[j]; belongs(ms.Annotations, ms.Labels, ms.Name, np) {
				p.Sets = append(p.Sets, setOf(ms))
			}
		}
		slices.SortFunc(p.Sets, func(a, b machineSet) int { return b.Created.Compare(a.Created) })
		for j := range p.Sets {
			p.Sets[j].Newest = j == 0
		}
		for j := range snap.Machines {
			if m := &snap.Machines[j]; belongs(m.Annotations, m.Labels, m.Name, np) {
				p.Machines = append(p.Machines, machineOf(m))
			}
		}
		slices.SortFunc(p.Machines, func(a, b machine) int {
			return cmp.Or(cmp.Compare(severity[a.Health], severity[b.Health]), strings.Compare(a.Name, b.Name))
		})
		if more := len(p.Machines) - maxMachines; more > 0 {
			p.Machines, p.More = p.Machines[:maxMachines], more
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b poolEntry) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// belongs tells whether something of Cluster API is of a NodePool: its annotation says so, or else its name.
func belongs(annotations, labels map[string]string, name string, np *hyperv1.NodePool) bool {
	if of := annotations[hyperv1.NodePoolAnnotation]; of != "" {
		return of == np.Namespace+"/"+np.Name
	}
	if of := labels[clusterv1.MachineDeploymentNameLabel]; of != "" {
		return of == np.Name
	}
	return strings.HasPrefix(name, np.Name+"-")
}

func setOf(ms *clusterv1.MachineSet) machineSet {
	out := machineSet{Name: ms.Name, Created: ms.CreationTimestamp.UTC(), Version: clip.Line(ms.Spec.Template.Spec.Version)}
	if n := ms.Spec.Replicas; n != nil {
		out.Wanted = *n
	}
	if n := ms.Status.ReadyReplicas; n != nil {
		out.Ready = *n
	}
	return out
}

func machineOf(m *clusterv1.Machine) machine {
	f := why.Of(m, time.Now())
	out := machine{Name: m.Name, Health: f.Health, Cause: f.Cause, Since: f.Since, Phase: clip.Line(m.Status.Phase), Node: clip.Line(m.Status.NodeRef.Name), Version: clip.Line(m.Spec.Version),
		Created: m.CreationTimestamp.UTC(), Booted: "made", Set: m.Labels[clusterv1.MachineSetNameLabel]}
	for _, a := range m.Status.Addresses {
		if a.Type == clusterv1.MachineInternalIP || out.Address == "" {
			out.Address = clip.Line(a.Address)
		}
	}
	is := func(t string) bool {
		for _, c := range m.Status.Conditions {
			if c.Type == t {
				return c.Status == "True"
			}
		}
		return false
	}
	switch {
	case m.Status.NodeRef.Name != "":
		out.Booted = "node"
	case is(clusterv1.InfrastructureReadyCondition):
		out.Booted = "provisioned"
	case is(clusterv1.BootstrapConfigReadyCondition):
		out.Booted = "bootstrapped"
	}
	for _, c := range m.Status.Conditions {
		if m.DeletionTimestamp != nil && c.Type == clusterv1.MachineDeletingCondition && c.Reason == clusterv1.MachineDeletingDrainingNodeReason {
			out.Drain = why.Clean(c.Message)
		}
	}
	out.Unhealthy = unhealthy(m.Status.Conditions)
	return out
}

// unhealthy says what a health check found of a machine, and what follows from it; empty: nothing.
func unhealthy(list []metav1.Condition) string {
	check := conditions.Get(list, clusterv1.MachineHealthCheckSucceededCondition)
	if check == nil || check.Status != metav1.ConditionFalse {
		return ""
	}
	found := strings.TrimSuffix(cmp.Or(why.Clean(check.Message), why.Clean(check.Reason)), ".")
	replaced := conditions.Get(list, clusterv1.MachineOwnerRemediatedCondition)
	switch {
	case replaced == nil:
		return found + ". Nobody was asked to replace it: a health check holds back while too many machines are unhealthy"
	case replaced.Status == metav1.ConditionTrue:
		return found + ". It is being replaced"
	}
	return found + ". It is to be replaced, and waits: " + cmp.Or(why.Clean(replaced.Message), why.Clean(replaced.Reason))
}
