package nodepool

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/pause"
)

// asleep says whether the hosted cluster is to have no machines now, whatever spec.replicas and spec.autoScaling say.
func (p *pass) asleep() bool { return pause.WorkersOff(p.obs.hc, p.now) }

// reportHibernation says whether the pool's machines are gone. It is told only while the hosted cluster hibernates. Machines of a pool with closed gates stay: they
// could not be made again when it wakes up.
func (p *pass) reportHibernation(open, paused bool) {
	kind := hyperv1.HostedClusterHibernated
	if !p.asleep() {
		p.removed = append(p.removed, kind)
		return
	}
	unmanaged := p.obs.platform != nil && !p.obs.platform.Traits().Managed
	if n := len(p.obs.machines); n > 0 && !unmanaged {
		what := "are being drained and removed"
		switch {
		case paused:
			what = "stay while spec.pausedUntil pauses the pool"
		case !open:
			what = "stay until the pool is valid: see its other conditions"
		}
		p.set(condition(kind, corev1.ConditionFalse, hyperv1.WorkersStoppingReason, fmt.Sprintf("%d machines %s", n, what)))
		return
	}
	p.set(condition(kind, corev1.ConditionTrue, hyperv1.AsleepReason, "the pool has no machines while the hosted cluster hibernates; they are created again when it wakes up"))
}
