package nodepool

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/rolls"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/release"
)

// Forecast is what this version would do with the machines of a pool as it is.
type Forecast struct {
	// Machines is how many there are, and Rolls whether they would be made from something else.
	Machines int
	Rolls    bool
	// Changes are the inputs that differ; may be empty although Rolls, where this version makes other machines from the same.
	Changes []string
	// Held: nobody asked for it, so that the operator would hold it and say so in condition UnrequestedRollout.
	Held bool
	// Waits is why nothing can be told; empty: it can.
	Waits string
}

// Lookup reads releases.
type Lookup interface {
	Lookup(ctx context.Context, image string, pullSecret []byte) (*release.Release, error)
}

// Preview plays a pass about a pool without writing anything. c sees objects of Cluster API in their standard groups, wherever they are stored.
func Preview(ctx context.Context, c client.Client, releases Lookup, pool *hyperv1.NodePool, hc *hyperv1.HostedCluster, now time.Time) (Forecast, error) {
	r := &Reconciler{Client: c, Live: c, Clock: clock.RealClock{}, Releases: releases, ClusterAPI: true, Platforms: everyPlatform()}
	obs, err := r.observe(ctx, pool, hc)
	if err != nil {
		return Forecast{}, fmt.Errorf("observing NodePool %s: %w", keyOf(pool), err)
	}
	return forecast(obs, now), nil
}

func everyPlatform() (all platform.Enabled) {
	for _, name := range platform.Supported() {
		all = append(all, hyperv1.PlatformType(name))
	}
	return all
}

// forecast is the pure part of Preview.
func forecast(obs *observed, now time.Time) Forecast {
	p := &pass{obs: obs, now: now}
	out := Forecast{Machines: len(obs.machines)}
	if !run(p, gates) {
		out.Waits = p.closedGate()
		return out
	}
	if !obs.platform.Traits().Managed {
		return out
	}
	var live *clusterv1.MachineTemplateSpec
	switch {
	case p.inPlace() && obs.set != nil:
		live = &obs.set.Spec.Template
	case !p.inPlace() && obs.deployment != nil:
		live = &obs.deployment.Spec.Template
	}
	p.readRolls()
	if p.err != nil {
		out.Waits = p.err.Error()
		return out
	}
	if live == nil || machines.GenerationOf(live) == p.targetGeneration() {
		return out
	}
	out.Rolls, out.Held = true, p.unrequested()
	if p.rolls.known {
		out.Changes = rolls.Changes(p.rolls.before.Inputs, p.target.inputs)
	}
	return out
}

// closedGate says why nothing is decided.
func (p *pass) closedGate() string {
	if p.held != "" {
		return p.held
	}
	for i := len(p.conditions) - 1; i >= 0; i-- {
		if c := p.conditions[i]; c.Status != corev1.ConditionTrue && c.Message != "" {
			return c.Type + ": " + c.Message
		}
	}
	return "the NodePool can't be previewed yet"
}
