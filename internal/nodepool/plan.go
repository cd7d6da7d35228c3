package nodepool

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/machine"
)

// plan is what a pass does and reports, in the order of its fields. The zero plan does nothing.
type plan struct {
	// pause, unpause are the pool's objects of Cluster API to stop, or to let go on.
	pause, unpause []client.Object

	createToken *corev1.Secret
	patches     []secretPatch
	apply       []client.Object // user data
	// companions are what the machine template refers to. Each is made once: pools share them.
	companions []client.Object
	// createTemplate is a machine template that does not exist yet; its content never changes.
	createTemplate client.Object
	// kept is what the platform is to keep of boot images, and what of it is of no use any more; nil: nothing is known.
	kept   *machine.KeptImage
	unkept []string
	// retag are infrastructure machines that exist and are to have another field of their spec, see machine.Retag.
	retag []client.Object
	// retagTo is what they are to have.
	retagTo *machine.Retag
	// markCurrent is the version of machines to note on the MachineSet before its target changes; empty: none.
	markCurrent string
	createSet   *clusterv1.MachineSet
	// workload is the MachineDeployment or the MachineSet. With locked it is written only over the version that was read, because
	// somebody else sets the number of replicas, too.
	workload client.Object
	locked   bool
	after    []client.Object // MachineHealthCheck
	delete   []client.Object

	// annotations to set on the NodePool.
	annotations map[string]string

	conditions []hyperv1.NodePoolCondition
	removed    []string // types of conditions that have nothing to say
	version    string   // status.version
	replicas   int32    // status.replicas
	nodes      []hyperv1.NodeVersion

	// err is returned so that the pass is repeated, although nothing went wrong with a write.
	err error
	// recheckAfter is when something changes that no event tells of; 0: wait for an event.
	recheckAfter time.Duration
}

// pass is a plan in the making.
type pass struct {
	obs *observed
	now time.Time
	// token is a new one, for a Secret that has none yet.
	token string
	plan

	// tuned are ConfigMaps for the tuning operator, and untuned those that it is not to have any more.
	tuned, untuned []*corev1.ConfigMap

	target target
	rolls  rollState
	// held is why a rollout does not begin; empty: it may.
	held string
}

// target is what machines are to be.
type target struct {
	hash, configHash, version string
	// config is the text of all manifests, encoded.
	config, encoded string
	template        string // name of the machine template
	// inputs are what the hash was computed from, for people.
	inputs map[string]string
}

// stage is a part of the decision. It returns false to stop the pass: what comes later needs what it found missing.
type stage func(*pass) bool

// gates check the input, in the order in which a user has to repair it. Nothing is written unless all are open, but for a pause and its end.
var gates = []stage{
	(*pass).autoscaling,
	(*pass).updateManagement,
	(*pass).platformFits,
	(*pass).validRelease,
	(*pass).ignitionEndpoint,
	(*pass).architecture,
	(*pass).platformImage,
	(*pass).versionSkew,
	(*pass).machineConfig,
	(*pass).references,
	(*pass).machineTemplate,
}

// actions decide what is written. None is taken while the pool is paused.
var actions = []stage{
	(*pass).tune,
	(*pass).secrets,
	(*pass).unmanaged,
	(*pass).machineObjects,
	(*pass).healthChecks,
	(*pass).cleanUp,
}

// planFor decides what a pass does with a NodePool that is not being deleted.
//
// It never takes machines away: it says what machines are to be made from, and Cluster API replaces them within the bounds of
// spec.management. A rollout does not begin while the new configuration is known to be unusable.
func planFor(obs *observed, now time.Time, token string) plan {
	p := &pass{obs: obs, now: now, token: token}
	p.version = obs.pool.Status.Version
	p.reportMachines()
	p.heeded()
	paused := p.paused()
	open := run(p, gates)
	if open && !paused {
		run(p, actions)
	}
	p.reportHibernation(open, paused)
	p.updating()
	p.payload()
	return p.plan
}

func run(p *pass, stages []stage) bool {
	for _, s := range stages {
		if !s(p) {
			return false
		}
	}
	return true
}

// set reports a condition. A later stage that knows more replaces what an earlier one reported of the same type.
func (p *pass) set(c hyperv1.NodePoolCondition) {
	if known := findCondition(p.conditions, c.Type); known != nil {
		*known = c
		return
	}
	p.conditions = append(p.conditions, c)
}

func (p *pass) spec() *hyperv1.NodePoolSpec { return &p.obs.pool.Spec }

func (p *pass) inPlace() bool { return p.obs.inPlace() }

// reportMachines sums up what there is.
func (p *pass) reportMachines() {
	obs := p.obs
	ready := machines.DeploymentReady(obs.deployment)
	if p.inPlace() {
		ready = machines.SetReady(obs.set)
	}
	managed := obs.platform == nil || obs.platform.Traits().Managed
	if !managed {
		ready = machines.Finding{Status: "True", Reason: hyperv1.AsExpectedReason, Message: "machines of this platform are made by others"}
	}
	if blocked := machines.RemediationBlocked(obs.healthCheck); blocked != nil {
		ready = *blocked
	}
	p.set(fromFinding(hyperv1.NodePoolReadyConditionType, ready))
	p.replicas = obs.availableReplicas()
	p.nodes = machines.NodeVersions(obs.machines, p.version)
	if managed {
		want := p.replicasWanted()
		p.set(fromFinding(hyperv1.NodePoolAllMachinesReadyConditionType, machines.AllReady(obs.machines, want, obs.explain())))
		p.set(fromFinding(hyperv1.NodePoolAllNodesHealthyConditionType, machines.AllHealthy(obs.machines, want)))
		p.reportOfPlatform()
	}
	if names := machines.NetworkConflict(obs.machines, podNetworks(obs.hc)); names != "" {
		p.set(condition(hyperv1.NodePoolClusterNetworkCIDRConflictType, corev1.ConditionTrue, hyperv1.InvalidConfigurationReason,
			"addresses of machines lie in spec.networking.clusterNetwork of the HostedCluster, so that pods on them can't be reached: "+names))
	} else {
		p.removed = append(p.removed, hyperv1.NodePoolClusterNetworkCIDRConflictType)
	}
}

// reportAgain is how often machines of the infrastructure's provider are looked at that a condition depends on: their changes cause no events here.
const reportAgain = 5 * time.Minute

// reportOfPlatform has what the platform says of its machines.
func (p *pass) reportOfPlatform() {
	reporter, ok := p.obs.platform.(platform.MachineReporter)
	if !ok || p.obs.template == nil {
		return
	}
	for _, c := range reporter.MachineConditions(p.obs.infraMachines) {
		p.set(c)
	}
	if len(p.obs.machines) > 0 {
		p.recheck(reportAgain)
	}
}

// replicasWanted is how many machines there are to be.
func (p *pass) replicasWanted() int32 {
	if p.asleep() {
		return 0
	}
	return machines.Replicas(p.spec(), p.obs.liveReplicas(), p.floor())
}

// floor is the fewest machines that an autoscaler may leave: one that starts from none has to know what a machine would offer, from the platform or
// from us.
func (p *pass) floor() int32 {
	offered := p.obs.template != nil && p.obs.template.Capacity != nil
	if p.obs.platform != nil && !p.obs.platform.Traits().ScaleFromZero && !offered {
		return 1
	}
	return 0
}

func (o *observed) inPlace() bool {
	return o.pool.Spec.Management.UpgradeType == hyperv1.UpgradeTypeInPlace
}

// availableReplicas is how many machines work.
func (o *observed) availableReplicas() int32 {
	switch {
	case o.inPlace() && o.set != nil:
		return ptr.Deref(o.set.Status.AvailableReplicas, 0)
	case !o.inPlace() && o.deployment != nil:
		return ptr.Deref(o.deployment.Status.AvailableReplicas, 0)
	}
	return 0
}

// liveReplicas is what the MachineDeployment or MachineSet asks for; nil: there is none.
func (o *observed) liveReplicas() *int32 {
	switch {
	case o.inPlace() && o.set != nil:
		return o.set.Spec.Replicas
	case !o.inPlace() && o.deployment != nil:
		return o.deployment.Spec.Replicas
	}
	return nil
}
