package component

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"hcp.internal/platform/internal/contract/names"
)

// processorsVariable is where Go's runtime reads how many threads may run Go code at a time; without it, one on each processor of the node.
const processorsVariable = "GOMAXPROCS"

// unbound containers get as many processors as there are: those that answer requests of the whole hosted cluster, and operators that others wait for
// when they start, which keep to one afterwards by themselves (process.SpareTime).
var unbound = []string{"etcd", names.KubeAPIServer, names.ControlPlaneOperator, "hosted-cluster-config-operator"}

// processors has programs of a control plane with single replicas use as many processors as they request, and one at least. Most of what they do is
// to wake up for a timer of a controller that finds nothing to do. With several processors each time wakes a second thread, which looks for work, too, and
// doubles what that costs. Whoever requests more, by annotation for example, gets more.
func processors(s *scope) error {
	if s.ctx.HighlyAvailable() {
		return nil
	}
	for i := range s.template.Spec.Containers {
		c := &s.template.Spec.Containers[i]
		set := slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == processorsVariable })
		if set || slices.Contains(unbound, c.Name) {
			continue
		}
		n := max(1, c.Resources.Requests.Cpu().Value()) // rounded up
		c.Env = append(c.Env, corev1.EnvVar{Name: processorsVariable, Value: strconv.FormatInt(n, 10)})
	}
	return nil
}
