//go:build e2e && install

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
)

// operatorLease is the lease of the operator, in its namespace.
const operatorLease = "hypershift-operator-leader-elect"

// losesLeaders ends the leading Pod of the operator in two ways that give nothing back: its process is killed, then another one stands still, as with a
// machine that is gone. It prints how long nobody led, and judges nothing, because this machine is busy: TestTakeover of cmd/hcp-operators
// has the bound that follows from the lease.
func (r *reader) losesLeaders() {
	r.Helper()
	g := NewWithT(r.T)
	for _, end := range []struct {
		signal string
		over   func(holder, renewed, was, before string) bool // somebody leads again
	}{
		{"KILL", func(_, renewed, _, before string) bool { return renewed > before }}, // which may be the same Pod, whose container starts anew
		{"STOP", func(holder, _, was, _ string) bool { return holder != was && holder != "" }},
	} {
		hosted().run(r.T, "rollout", "status", "-n", "hypershift", "deployment/operator", "--timeout=3m")
		was, _ := r.lease()
		g.Expect(was).NotTo(BeEmpty())
		uid := strings.TrimSpace(hosted().run(r.T, "get", "pod", "-n", "hypershift", strings.SplitN(was, "_", 2)[0], "-o", "jsonpath={.metadata.uid}"))
		begin := time.Now()
		if !r.signal(uid, end.signal) {
			r.Fatalf("no node has processes of Pod %s, which leads", was)
		}
		_, before := r.lease()
		eventually(r.T, 3*time.Minute, "an operator that leads", func() error {
			if holder, renewed := r.lease(); !end.over(holder, renewed, was, before) {
				return fmt.Errorf("%s holds the lease, renewed %s", holder, renewed)
			}
			return nil
		})
		holder, _ := r.lease()
		r.Logf("leader %s got SIG%s: %s leads %s later", was, end.signal, holder, time.Since(begin).Round(time.Second/10))
		if end.signal == "STOP" {
			r.signal(uid, "KILL") // what stands still doesn't end otherwise, unless its probe has ended it
		}
	}
	hosted().run(r.T, "rollout", "status", "-n", "hypershift", "deployment/operator", "--timeout=3m")
}

// lease is who holds that of the operator, and when it was renewed.
func (r *reader) lease() (holder, renewed string) {
	r.Helper()
	out, _ := hosted().try(r.T, "get", "lease", "-n", "hypershift", operatorLease, "-o", "jsonpath={.spec.holderIdentity} {.spec.renewTime}")
	fields := strings.Fields(out)
	if len(fields) != 2 {
		return "", ""
	}
	return fields[0], fields[1]
}

// signal sends a signal to the processes of a Pod of the management cluster, on whichever node it is, and says whether there were any.
func (r *reader) signal(uid, signal string) (reached bool) {
	r.Helper()
	for worker := range strings.FieldsSeq(management().run(r.T, "get", "pods", "-n", demoNamespace, "-l", "infrastructure.cluster.x-k8s.io/local-machine", "-o", "name")) {
		// The kubelet writes identifiers with - or _, and pause stays, because without it all of the Pod would start anew.
		out := management().run(r.T, "exec", "-n", demoNamespace, worker, "--", "bash", "-c", fmt.Sprintf(
			`for c in /proc/[0-9]*/cgroup; do p=$(dirname $c); if grep -qs -e %s -e %s $c && ! grep -qs '^pause$' $p/comm; then kill -%s $(basename $p) && echo reached; fi; done; true`,
			uid, strings.ReplaceAll(uid, "-", "_"), signal))
		reached = reached || strings.Contains(out, "reached")
	}
	return reached
}
