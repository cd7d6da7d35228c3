package nodepool

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/nodeconfig"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/nodepool/rollout"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/release"
)

// Reasons of conditions that are ours alone.
const (
	// ReasonWaitingForHostedCluster: the HostedCluster does not offer yet what machines need; nothing has to be done.
	ReasonWaitingForHostedCluster = "WaitingForHostedCluster"
	// ReasonInvalidMachineTemplate: the platform can't describe the machines; the message says what to change.
	ReasonInvalidMachineTemplate = "InvalidMachineTemplate"
	// ReasonHeld: machines are not replaced before somebody allows it; the message says how.
	ReasonHeld = "Held"
	// ReasonDeleting: the pool is being deleted; the message says what it waits for.
	ReasonDeleting = "Deleting"
)

// retryTemplate is when a template is asked for again that could not be described yet.
const retryTemplate = 5 * time.Second

// retryRelease is when a release that could not be read is looked at again: within the time that its answer is cached, so it costs nothing.
const retryRelease = 5 * time.Second

// retryTrustBundle is when is looked again for the ConfigMap of additionalTrustBundle: one that is made again causes no event here, and none of the
// HostedCluster unless something of it changes.
const retryTrustBundle = time.Minute

func (p *pass) autoscaling() bool {
	const t = hyperv1.NodePoolAutoscalingEnabledConditionType
	a := p.spec().AutoScaling
	switch {
	case a == nil:
		p.set(bad(t, hyperv1.AsExpectedReason, "spec.autoScaling is not set"))
	case p.unmanagedPlatform():
		p.set(bad(t, hyperv1.AsExpectedReason, fmt.Sprintf("spec.autoScaling has no effect on platform %s: you create the machines", p.spec().Platform.Type)))
	case ptr.Deref(a.Min, 0) > a.Max || a.Max < 1:
		p.set(bad(t, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf("spec.autoScaling.max is %d: it must be at least 1, and at least min, which is %d", a.Max, ptr.Deref(a.Min, 0))))
	case ptr.Deref(a.Min, 0) < p.floor():
		p.set(bad(t, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf("spec.autoScaling.min is 0, which platform %s does not support: the pool keeps one machine; set it to 1 or more", p.spec().Platform.Type)))
	default:
		p.set(condition(t, corev1.ConditionTrue, hyperv1.AsExpectedReason, fmt.Sprintf("the autoscaler chooses between %d and %d machines", ptr.Deref(a.Min, 0), a.Max)))
	}
	return true // Replicas keeps to the bounds in any case
}

// unmanagedPlatform tells whether users make the machines.
func (p *pass) unmanagedPlatform() bool {
	return p.obs.platform != nil && !p.obs.platform.Traits().Managed
}

func (p *pass) updateManagement() bool {
	if p.unmanagedPlatform() {
		p.set(good(hyperv1.NodePoolUpdateManagementEnabledConditionType)) // nobody acts on it, see AllFieldsHeeded
		return true
	}
	if err := validManagement(p.spec().Management); err != nil {
		p.set(bad(hyperv1.NodePoolUpdateManagementEnabledConditionType, hyperv1.NodePoolValidationFailedReason, err.Error()))
		return false
	}
	p.set(good(hyperv1.NodePoolUpdateManagementEnabledConditionType))
	return true
}

// validManagement checks what admission can't.
func validManagement(m hyperv1.NodePoolManagement) error {
	switch m.UpgradeType {
	case hyperv1.UpgradeTypeInPlace:
		if m.InPlace != nil && m.InPlace.MaxUnavailable != nil {
			return validBound("spec.management.inPlace.maxUnavailable", *m.InPlace.MaxUnavailable)
		}
		return nil
	case hyperv1.UpgradeTypeReplace:
	default:
		return fmt.Errorf("spec.management.upgradeType is %q: write Replace or InPlace", m.UpgradeType)
	}
	if m.Replace == nil {
		return nil
	}
	switch m.Replace.Strategy {
	case hyperv1.UpgradeStrategyOnDelete:
		return nil
	case hyperv1.UpgradeStrategyRollingUpdate, "":
	default:
		return fmt.Errorf("spec.management.replace.strategy is %q: write RollingUpdate or OnDelete", m.Replace.Strategy)
	}
	surge, unavailable := machines.RollingUpdate(m.Replace)
	if err := errors.Join(validBound("spec.management.replace.rollingUpdate.maxSurge", surge), validBound("spec.management.replace.rollingUpdate.maxUnavailable", unavailable)); err != nil {
		return err
	}
	if isZero(surge) && isZero(unavailable) {
		return errors.New("spec.management.replace.rollingUpdate.maxSurge and maxUnavailable are both 0, so that no machine could ever be replaced: raise one of them")
	}
	return nil
}

func isZero(v intstr.IntOrString) bool {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, 100, true)
	return err == nil && n == 0
}

func validBound(field string, v intstr.IntOrString) error {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, 100, true)
	if err != nil || n < 0 || (v.Type == intstr.String && n > 100) {
		return fmt.Errorf("%s is %q: write a number from 0, or a percentage such as 25%%", field, v.String())
	}
	return nil
}

func (p *pass) platformFits() bool {
	const t = hyperv1.NodePoolValidPlatformConfigConditionType
	pool, cluster := p.spec().Platform.Type, p.obs.hc.Spec.Platform.Type
	switch {
	case pool != cluster:
		p.set(bad(t, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf("spec.platform.type is %s and that of HostedCluster %s is %s: they must be the same; the type can't be changed, so create another NodePool", pool, p.obs.hc.Name, cluster)))
	case p.obs.platformErr != nil:
		p.set(bad(t, hyperv1.NodePoolValidationFailedReason, p.obs.platformErr.Error()))
	case len(p.obs.pool.Name) > token.MaxPoolName:
		p.set(bad(t, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf("the name has %d characters and may have %d: create a NodePool with a shorter name", len(p.obs.pool.Name), token.MaxPoolName)))
	default:
		p.set(good(t))
		return true
	}
	return false
}

// controlPlaneVersions are the newest version that the control plane has had completely, and the one that it has now. An upgrade that was given up for
// another has a time of its end, too, and was not completed.
func controlPlaneVersions(hc *hyperv1.HostedCluster) (completed, present string) {
	if hc.Status.Version == nil {
		return "", ""
	}
	for _, entry := range hc.Status.Version.History {
		if completed == "" && entry.CompletionTime != nil && entry.State == configv1.CompletedUpdate {
			completed = entry.Version
		}
		if present == "" && entry.State == configv1.CompletedUpdate {
			present = entry.Version
		}
	}
	if len(hc.Status.Version.History) > 0 && present == "" {
		present = hc.Status.Version.History[0].Version
	}
	if present == "" {
		present = hc.Status.Version.Desired.Version
	}
	if completed == "" {
		completed = hc.Status.Version.Desired.Version
	}
	return completed, present
}

func (p *pass) validRelease() bool {
	const t = hyperv1.NodePoolValidReleaseImageConditionType
	obs := p.obs
	if obs.releaseErr != nil {
		p.set(bad(t, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf("spec.release.image: %v", obs.releaseErr)))
		p.recheck(retryRelease)
		return false
	}
	completed, _ := controlPlaneVersions(obs.hc)
	if completed == "" {
		p.set(condition(t, corev1.ConditionUnknown, ReasonWaitingForHostedCluster, "the version of the HostedCluster is not known yet"))
		return false
	}
	_, skip := obs.hc.Annotations[hyperv1.SkipReleaseImageValidation]
	if err := release.CheckNodePoolVersion(release.NodePoolCheck{
		Target: obs.release.Version, Current: obs.pool.Status.Version, ControlPlane: completed, Platform: string(p.spec().Platform.Type), Skip: skip,
	}); err != nil {
		p.set(bad(t, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf("spec.release.image: %v", err)))
		return false
	}
	p.set(condition(t, corev1.ConditionTrue, hyperv1.AsExpectedReason, "Using release image: "+obs.release.Image))
	return true
}

func (p *pass) ignitionEndpoint() bool {
	const t = string(hyperv1.IgnitionEndpointAvailable)
	switch {
	case p.obs.namespaceErr != nil:
		p.set(bad(t, hyperv1.NodePoolIgnitionEndpointMissingReason, p.obs.namespaceErr.Error()))
	case p.obs.hc.Status.IgnitionEndpoint == "":
		p.set(bad(t, hyperv1.NodePoolIgnitionEndpointMissingReason, "the HostedCluster has no ignition endpoint yet; see its condition IgnitionEndpointAvailable"))
	case len(p.obs.ignitionCA) == 0:
		p.set(bad(t, hyperv1.NodePoolIgnitionCACertMissingReason, fmt.Sprintf("Secret %s/%s does not exist yet", p.obs.namespace, ignitionCASecret)))
		p.recheck(retryRelease)
	default:
		p.removed = append(p.removed, t)
		return true
	}
	return false
}

func (p *pass) architecture() bool {
	const t = hyperv1.NodePoolValidArchPlatform
	arch, allowed := p.spec().Arch, p.obs.platform.Traits().Architectures
	payload := p.obs.release.Arch
	switch {
	case !slices.Contains(allowed, arch):
		p.set(bad(t, hyperv1.NodePoolInvalidArchPlatformReason, fmt.Sprintf("spec.arch is %s, and machines of platform %s have %s", arch, p.spec().Platform.Type, strings.Join(allowed, " or "))))
		return true // as long as the payload has it, the machines that there are keep working
	case payload != "" && payload != release.ArchMulti && payload != strings.ToUpper(arch):
		p.set(bad(t, hyperv1.NodePoolInvalidArchPlatformReason, fmt.Sprintf("spec.arch is %s, and release %s is for %s: use a release for several architectures, or one for %s", arch, p.obs.release.Version, payload, strings.ToUpper(arch))))
		return false
	}
	p.set(good(t))
	return true
}

func (p *pass) versionSkew() bool {
	const t = hyperv1.NodePoolSupportedVersionSkewConditionType
	_, present := controlPlaneVersions(p.obs.hc)
	if present == "" {
		p.set(condition(t, corev1.ConditionUnknown, hyperv1.NodePoolValidationFailedReason, "the version of the HostedCluster is not known yet"))
		return true
	}
	if err := release.CheckSkew(p.obs.release.Version, present); err != nil {
		p.set(bad(t, hyperv1.NodePoolUnsupportedSkewReason, err.Error()))
		return true
	}
	p.set(good(t))
	return true
}

// machineConfig reads the configuration and finds out what machines are to have.
func (p *pass) machineConfig() bool {
	obs := p.obs
	core, err := p.coreConfig()
	if err != nil {
		p.set(bad(hyperv1.NodePoolValidMachineConfigConditionType, ReasonWaitingForHostedCluster, err.Error()))
		return false
	}
	if err = obs.userConfigErr; err == nil {
		err = nodeconfig.Validate(nodeconfig.Target{Kubernetes: obs.release.Kubernetes, InPlace: p.inPlace()}, slices.Concat(core, obs.userConfig)...)
	}
	if err == nil {
		err = p.computeTarget(core)
	}
	if err != nil {
		p.set(bad(hyperv1.NodePoolValidMachineConfigConditionType, hyperv1.NodePoolValidationFailedReason, err.Error()))
		return false
	}
	p.set(good(hyperv1.NodePoolValidMachineConfigConditionType))
	p.set(p.tuning())
	return true
}

func (p *pass) computeTarget(coreConfig []nodeconfig.Source) error {
	obs := p.obs
	user, err := nodeconfig.Canonical(obs.userConfig)
	if err != nil {
		return err
	}
	core, err := nodeconfig.Canonical(coreConfig)
	if err != nil {
		return err
	}
	all := nodeconfig.Join(core, user)
	in, old, err := p.inputs(user, all)
	if err != nil {
		return err
	}
	p.target = target{version: in.Version, config: all, inputs: p.namedInputs(in)}
	p.nameTarget(in, old)
	encoded, err := nodeconfig.Encode(p.target.config)
	p.target.encoded = string(encoded)
	return err
}

// inputs are what machines are made of, and what an older operator hashed of it. There was none that hosted OpenShift releases.
func (p *pass) inputs(user, all string) (in, old rollout.Inputs, err error) {
	if p.payloadRelease() {
		in, err = payloadInputs(p.obs, all)
		return in, in, err
	}
	if in, err = inputsOf(p.obs, user); err != nil {
		return in, old, err
	}
	old, err = formerInputs(p.obs, in)
	return in, old, err
}

// references checks what machines need of the HostedCluster.
func (p *pass) references() bool {
	obs := p.obs
	missing := errors.Join(obs.pullSecretErr, obs.trustBundleErr)
	switch {
	case obs.hc.Spec.InfraID == "":
		missing = errors.Join(missing, errors.New("the HostedCluster has no infraID yet"))
	case obs.hc.Status.KubeConfig == nil:
		missing = errors.Join(missing, errors.New("the HostedCluster has no kubeconfig yet: its API server has not been up"))
	}
	if missing == nil {
		return true
	}
	p.set(bad(hyperv1.NodePoolValidMachineConfigConditionType, ReasonWaitingForHostedCluster, missing.Error()))
	if obs.trustBundleErr != nil {
		p.recheck(retryTrustBundle)
	}
	return false
}

// machineTemplate checks what the platform needs to describe machines.
func (p *pass) machineTemplate() bool {
	const t = hyperv1.NodePoolValidMachineTemplateConditionType
	if waiting := (*machine.NotReadyError)(nil); errors.As(p.obs.templateErr, &waiting) {
		p.held = waiting.Error()
		p.recheck(retryTemplate)
		return false
	}
	err := errors.Join(p.obs.templateErr, validLabels(p.spec().NodeLabels))
	if err == nil && p.obs.template != nil {
		identity := p.obs.template.Identity
		if identity == nil {
			identity, err = specOf(p.obs.template.Object)
		}
		if err == nil {
			p.target.template, err = machines.TemplateName(p.obs.pool.Name, identity)
		}
	}
	if err != nil {
		p.set(bad(t, ReasonInvalidMachineTemplate, err.Error()))
		if p.obs.keptErr != nil {
			p.recheck(retryKept)
		}
		return false
	}
	p.removed = append(p.removed, t)
	return true
}

// validLabels refuses what would be no label on a Machine: the schema takes any text, and Cluster API would fail on it silently.
func validLabels(labels map[string]string) error {
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if problems := validation.IsQualifiedName(hyperv1.NodeLabelPrefix + k); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("spec.nodeLabels has the key %q: %s", k, strings.Join(problems, "; ")))
		}
		if problems := validation.IsValidLabelValue(labels[k]); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("spec.nodeLabels[%s] is %q: %s", k, labels[k], strings.Join(problems, "; ")))
		}
	}
	return errors.Join(errs...)
}

// podNetworks are the ranges of pods; what does not parse has been refused with the HostedCluster.
func podNetworks(hc *hyperv1.HostedCluster) []netip.Prefix {
	var list []netip.Prefix
	for _, n := range hc.Spec.Networking.ClusterNetwork {
		if prefix, err := netip.ParsePrefix(string(n.CIDR)); err == nil {
			list = append(list, prefix)
		}
	}
	return list
}
