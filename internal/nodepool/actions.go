package nodepool

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/nodepool/machines"
)

// ownLabels let what we make into our caches.
func ownLabels() map[string]string {
	return map[string]string{names.OwnedByLabel: names.HypershiftOperator}
}

// specOf is the spec of a machine template.
func specOf(template client.Object) (any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return nil, fmt.Errorf("reading the machine template: %w", err)
	}
	return content["spec"], nil
}

// unmanaged finishes pools whose machines others make: there is nothing to wait for.
func (p *pass) unmanaged() bool {
	if p.obs.platform.Traits().Managed {
		return true
	}
	p.complete()
	p.retire()
	return false
}

// complete notes that every machine is what it is to be.
func (p *pass) complete() {
	p.version = p.target.version
	notes := p.notes()
	notes[hyperv1.NodePoolCurrentConfigAnnotation] = p.target.configHash
	notes[hyperv1.NodePoolCurrentConfigVersionAnnotation] = p.target.hash
	if p.target.template != "" {
		notes[hyperv1.NodePoolPlatformMachineTemplateAnnotation] = p.target.template
	}
}

// notes are annotations that the NodePool is to have, never nil.
func (p *pass) notes() map[string]string {
	if p.annotations == nil {
		p.annotations = map[string]string{}
	}
	return p.annotations
}

// noted is an annotation of the NodePool as it is after this pass.
func (p *pass) noted(key string) string {
	if v, ok := p.annotations[key]; ok {
		return v
	}
	return p.obs.pool.Annotations[key]
}

// machineObjects decides about the template, the MachineDeployment or the MachineSet.
func (p *pass) machineObjects() bool {
	obs := p.obs
	pool := machines.Pool{
		NodePool: obs.pool, Namespace: obs.namespace, InfraID: obs.hc.Spec.InfraID, ClusterName: obs.hc.Name, Labels: ownLabels(),
		Replicas: p.replicasWanted(), Floor: p.floor(), Asleep: p.asleep(),
		ScaleFromZero: machines.CapacityAnnotations(p.spec(), obs.template.Capacity),
		FailureDomain: obs.template.FailureDomain, InUse: p.liveTemplates(), Interruptible: obs.template.Interruptible,
	}
	p.applyTemplate()
	p.keepImages()
	p.retagMachines()
	p.locked = p.spec().AutoScaling != nil && obs.liveReplicas() != nil
	p.readRolls()
	if p.inPlace() {
		p.planSet(pool)
	} else {
		p.planDeployment(pool)
	}
	p.noteRoll()
	return true
}

// retagMachines finds the infrastructure machines that are to be changed without being replaced.
func (p *pass) retagMachines() {
	if p.retagTo = p.obs.template.Retag; p.retagTo == nil {
		return // the machines were read for something else
	}
	for i := range p.obs.infraMachines {
		m := &p.obs.infraMachines[i]
		if have, _, _ := unstructured.NestedFieldNoCopy(m.Object, "spec", p.retagTo.Field); !equality.Semantic.DeepEqual(have, p.retagTo.Value) {
			p.retag = append(p.retag, m)
		}
	}
}

// retryKept is how often is asked again for kept boot images where that failed: no event tells that it would go now.
const retryKept = time.Minute

// keepImages has the boot image kept that machines are cloned from. Others go once machines are made from the one template that names it.
func (p *pass) keepImages() {
	p.kept = p.obs.kept
	if p.kept == nil || len(p.kept.Old) == 0 {
		return
	}
	current := func(t metav1.PartialObjectMetadata) bool { return t.Name == p.target.template }
	if p.createTemplate == nil && len(p.obs.templates) == 1 && current(p.obs.templates[0]) {
		p.unkept = p.kept.Old
		return
	}
	p.recheck(retryKept)
}

// applyTemplate makes the machine template. One that exists stays as it is, for its name stands for its content, but for what may change in place.
func (p *pass) applyTemplate() {
	exists := slices.ContainsFunc(p.obs.templates, func(t metav1.PartialObjectMetadata) bool { return t.Name == p.target.template })
	p.companions = p.obs.template.Companions
	maps.Copy(p.notes(), p.obs.template.PoolAnnotations)
	if exists && !p.obs.template.UpdateInPlace {
		return
	}
	template := p.obs.template.Object.DeepCopyObject().(client.Object)
	template.SetNamespace(p.obs.namespace)
	template.SetName(p.target.template)
	template.SetLabels(ownLabels())
	template.SetAnnotations(map[string]string{hyperv1.NodePoolAnnotation: keyOf(p.obs.pool)})
	if exists {
		p.apply = append(p.apply, template)
		return
	}
	p.createTemplate = template
}

func (p *pass) targetGeneration() machines.Generation {
	gvk := p.obs.template.Object.GetObjectKind().GroupVersionKind()
	return machines.Generation{
		UserData: token.UserDataName(p.obs.pool.Name, p.target.hash), Version: p.target.version,
		Template: clusterv1.ContractVersionedObjectReference{APIGroup: gvk.Group, Kind: gvk.Kind, Name: p.target.template},
	}
}

// nextGeneration is what machines are to be made from now: the target, unless that is known not to work.
func (p *pass) nextGeneration(live *clusterv1.MachineTemplateSpec) machines.Generation {
	want := p.targetGeneration()
	if live == nil {
		return want // machines that wait for their configuration are better than machines that wait to be made
	}
	have := machines.GenerationOf(live)
	if have != want && p.unrequested() {
		p.held = "held, see condition " + hyperv1.NodePoolUnrequestedRolloutConditionType
		p.rolls.holds = true
		return have
	}
	if have.UserData == want.UserData {
		return want
	}
	if p.held = p.reasonToHold(); p.held != "" {
		return have
	}
	return want
}

// payloadPatience is how long a rollout waits for the ignition server to judge a new configuration. Generating one takes seconds.
const payloadPatience = 30 * time.Second

// reasonToHold says why machines must not be replaced yet: the ignition server has refused the new configuration, or has not seen it.
func (p *pass) reasonToHold() string {
	secret := p.tokenSecret(p.target.hash)
	if secret == nil {
		p.recheck(payloadPatience)
		return "waiting for the ignition server to generate the new configuration"
	}
	switch reason := string(secret.Data[token.ReasonKey]); reason {
	case hyperv1.AsExpectedReason:
		return ""
	case "":
		left := secret.CreationTimestamp.Add(payloadPatience).Sub(p.now)
		if left <= 0 {
			return "" // an ignition server that does not say anything must not hold up everything
		}
		p.recheck(left)
		return "waiting for the ignition server to generate the new configuration"
	default:
		return fmt.Sprintf("not replacing machines, because the ignition server can't use the new configuration: %s: %s", reason, secret.Data[token.MessageKey])
	}
}

// recheck brings the next pass forward.
func (p *pass) recheck(after time.Duration) {
	if p.recheckAfter == 0 || after < p.recheckAfter {
		p.recheckAfter = after
	}
}

func (p *pass) planDeployment(pool machines.Pool) {
	live := p.obs.deployment
	var template *clusterv1.MachineTemplateSpec
	if live != nil {
		template = &live.Spec.Template
	}
	pool.Now = p.nextGeneration(template)
	md := pool.Deployment()
	if live != nil {
		md.ResourceVersion = live.ResourceVersion
	}
	p.workload = md
	if want := p.targetGeneration(); live != nil && machines.GenerationOf(template) == want && machines.DeploymentComplete(live, p.obs.sets, want) {
		p.complete()
	}
}

// planSet decides about the MachineSet of a pool whose machines are changed in place. Two annotations are the contract with who changes
// them: what they are to have is ours, what all of them have is theirs, except at the start, and when the target goes back to what machines
// had before a change that has begun. Without noting that change as what they have now, nobody would take it back.
func (p *pass) planSet(pool machines.Pool) {
	live := p.obs.set
	v := machines.Versions{Target: p.target.hash}
	if live == nil {
		pool.Now = p.targetGeneration()
		set := pool.Set(v)
		set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] = p.target.hash
		p.createSet = set
		return
	}
	pool.Now = p.nextGeneration(&live.Spec.Template)
	current, known := live.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
	before := live.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]
	if p.held != "" {
		v.Target = before
	}
	switch {
	case !known: // a crash right after its creation by somebody who knows less than we do
		p.markCurrent = before
	case before != "" && before != v.Target && v.Target == current:
		p.markCurrent = before
	}
	set := pool.Set(v)
	set.ResourceVersion = live.ResourceVersion
	p.workload = set
	if before == p.target.hash && current == p.target.hash {
		p.complete()
	}
}

// healthChecks decides about the MachineHealthCheck. Before a machine has fetched its configuration nothing is known to work, and replacing
// machines would not help; what there is stays as it is then.
func (p *pass) healthChecks() bool {
	const t = hyperv1.NodePoolAutorepairEnabledConditionType
	obs := p.obs
	p.spotHealthCheck()
	if !p.spec().Management.AutoRepair {
		if obs.healthCheck != nil {
			p.delete = append(p.delete, obs.healthCheck)
		}
		p.set(bad(t, hyperv1.AsExpectedReason, "spec.management.autoRepair is not set"))
		return true
	}
	settings, err := machines.HealthCheckSettingsFor(obs.platform.Traits().SlowBoot, obs.pool.Annotations, obs.hc.Annotations)
	if err != nil {
		p.set(bad(t, hyperv1.NodePoolValidationFailedReason, err.Error()))
		return true
	}
	if obs.healthCheck == nil && !p.reached() {
		if findCondition(obs.pool.Status.Conditions, t) == nil {
			p.set(bad(t, hyperv1.NodePoolIgnitionNotReachedReason, "machines are repaired once one of them has fetched its configuration"))
		}
		return true
	}
	pool := machines.Pool{NodePool: obs.pool, Namespace: obs.namespace, InfraID: obs.hc.Spec.InfraID, ClusterName: obs.hc.Name, Labels: ownLabels()}
	p.after = append(p.after, pool.HealthCheck(settings))
	p.set(good(t))
	return true
}

// spotHealthCheck decides about the MachineHealthCheck of machines that may be taken away at any time. It waits for nothing: that they go is no failure.
func (p *pass) spotHealthCheck() {
	obs := p.obs
	pool := machines.Pool{NodePool: obs.pool, Namespace: obs.namespace, InfraID: obs.hc.Spec.InfraID, ClusterName: obs.hc.Name, Labels: ownLabels()}
	if obs.template.Interruptible {
		p.after = append(p.after, pool.SpotHealthCheck(obs.spotName))
	}
	for _, check := range obs.spotChecks {
		if !obs.template.Interruptible || check.Name != obs.spotName {
			p.delete = append(p.delete, check)
		}
	}
}

// cleanUp removes what no machine can come from any more.
func (p *pass) cleanUp() bool {
	p.retire()
	used := map[string]bool{p.target.template: true}
	for _, t := range p.liveTemplates() {
		used[t.Spec.InfrastructureRef.Name] = true
	}
	for i := range p.obs.templates {
		if t := &p.obs.templates[i]; !used[t.Name] && t.DeletionTimestamp.IsZero() {
			p.delete = append(p.delete, t)
		}
	}
	return true
}

// liveTemplates are all from which a machine could be made, that of the object with the pool's name first.
func (p *pass) liveTemplates() []*clusterv1.MachineTemplateSpec {
	var list []*clusterv1.MachineTemplateSpec
	if p.obs.deployment != nil {
		list = append(list, &p.obs.deployment.Spec.Template)
	}
	if p.obs.set != nil {
		list = append(list, &p.obs.set.Spec.Template)
	}
	for i := range p.obs.sets {
		list = append(list, &p.obs.sets[i].Spec.Template)
	}
	return list
}

// updating reports what is being rolled out, and what keeps it from being finished.
func (p *pass) updating() {
	target := p.target
	if target.hash == "" {
		return // a gate is closed and says why; what was known before still holds
	}
	why, stuck := p.progress(), p.stuckInPlace()
	report := func(t string, changing bool, what string) {
		switch {
		case !changing:
			p.set(bad(t, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage))
		case stuck != nil && t != hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType: // machines keep their template
			p.set(stuck(t))
		default:
			p.set(condition(t, corev1.ConditionTrue, hyperv1.AsExpectedReason, what+why))
		}
	}
	report(hyperv1.NodePoolUpdatingVersionConditionType, target.version != p.version, "Updating version to "+target.version)
	report(hyperv1.NodePoolUpdatingConfigConditionType, p.noted(hyperv1.NodePoolCurrentConfigAnnotation) != target.configHash || p.goingBack(), "Updating config to "+target.configHash)
	if target.template != "" {
		report(hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType, p.noted(hyperv1.NodePoolPlatformMachineTemplateAnnotation) != target.template,
			"Updating machine template to "+target.template)
	}
}

// goingBack tells whether machines are still of a configuration that was given up before all had it: the pool was never done with
// it, and so seems to be where it is to go.
func (p *pass) goingBack() bool {
	if p.inPlace() {
		if p.obs.set == nil {
			return false
		}
		target := p.obs.set.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation]
		current, known := p.obs.set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
		return known && (current != p.target.hash || target != "" && target != current)
	}
	if p.obs.deployment == nil {
		return false
	}
	want := token.UserDataName(p.obs.pool.Name, p.target.hash)
	return slices.ContainsFunc(p.obs.machines, func(m clusterv1.Machine) bool {
		return m.Spec.Bootstrap.DataSecretName != nil && *m.Spec.Bootstrap.DataSecretName != want
	})
}

// stuckInPlace makes the condition about an upgrade in place that has stopped; nil: none has.
func (p *pass) stuckInPlace() func(t string) hyperv1.NodePoolCondition {
	if p.obs.set == nil || !p.inPlace() {
		return nil
	}
	message, stuck := p.obs.set.Annotations[hyperv1.NodePoolUpgradeInProgressFalseAnnotation]
	if !stuck {
		return nil
	}
	return func(t string) hyperv1.NodePoolCondition {
		c := bad(t, hyperv1.NodePoolInplaceUpgradeFailedReason, message)
		c.Severity = severityError
		return c
	}
}

// progress says how far a rollout is.
func (p *pass) progress() string {
	if p.held != "" {
		return "; " + p.held
	}
	if p.inPlace() {
		if p.obs.set != nil {
			if message := p.obs.set.Annotations[hyperv1.NodePoolUpgradeInProgressTrueAnnotation]; message != "" {
				return "; " + message
			}
		}
		return ""
	}
	md := p.obs.deployment
	if md == nil || md.Spec.Replicas == nil {
		return ""
	}
	userData := token.UserDataName(p.obs.pool.Name, p.target.hash)
	var updated, leaving []clusterv1.Machine
	for _, m := range p.obs.machines {
		if !m.DeletionTimestamp.IsZero() {
			leaving = append(leaving, m)
		}
		if m.Spec.Bootstrap.DataSecretName != nil && *m.Spec.Bootstrap.DataSecretName == userData {
			updated = append(updated, m)
		}
	}
	message := fmt.Sprintf("; %d of %d machines are made from it", len(updated), *md.Spec.Replicas)
	if f := machines.AllReady(updated, 0, p.obs.explain()); f.Status != metav1.ConditionTrue {
		message += ": " + f.Message
	}
	if len(leaving) > 0 { // a drain that a disruption budget forbids holds up a rollout without anything being wrong with new machines
		message += "; waiting for the end of " + describe(leaving)
	}
	return message
}
