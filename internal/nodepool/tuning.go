package nodepool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/nodeconfig"
	"hcp.internal/platform/internal/nodepool/machines"
)

// Node tuning is done by the cluster-node-tuning-operator of an OpenShift release. It gets the pool's Tuneds and PerformanceProfile in ConfigMaps of the control
// plane namespace, and leaves there what machines are to be configured with, and how a profile fares. Settings of kubelets and of the container runtime are
// copied for it, too, and from there into the hosted cluster.

const (
	tuningKey = "tuning"
	statusKey = "status"

	tunedAPI, tunedKind     = "tuned.openshift.io/v1", "Tuned"
	profileAPI, profileKind = "performance.openshift.io/v2", "PerformanceProfile"

	// profilePrefix is before the types of a PerformanceProfile's conditions.
	profilePrefix = "performance.operator.openshift.io/"
	// maxProfileMessage bounds what is repeated of them.
	maxProfileMessage = 1024
	// recheckTuning is how often is looked for what the operator has left: its ConfigMaps cause no events here.
	recheckTuning = time.Minute
	// maxConfigMapName is what a name in a label may have.
	maxConfigMapName = 63
)

// profileConditions are the ones that are repeated.
var profileConditions = []string{"Available", "Progressing", "Upgradeable", "Degraded"}

// tuned is what spec.tuningConfig comes to.
type tuned struct {
	tuneds  []string // manifests
	profile string   // manifest; empty: none
	from    string   // name of the profile's ConfigMap
}

// readTuning checks each ConfigMap of spec.tuningConfig.
func readTuning(sources []nodeconfig.Source) (tuned, error) {
	out := tuned{}
	var errs []error
	for _, s := range sources {
		kind, err := checkTuning(s.Data)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("ConfigMap %q, which spec.tuningConfig names: %w", s.Name, err))
		case kind == profileKind && out.profile != "":
			errs = append(errs, fmt.Errorf("ConfigMaps %q and %q, which spec.tuningConfig names, both hold a PerformanceProfile: a NodePool has one at most; remove one", out.from, s.Name))
		case kind == profileKind:
			out.profile, out.from = strings.TrimSpace(s.Data), s.Name
		default:
			out.tuneds = append(out.tuneds, strings.TrimSpace(s.Data))
		}
	}
	slices.Sort(out.tuneds)
	return out, errors.Join(errs...)
}

// checkTuning says what kind a manifest is of. What is in its spec is the operator's to judge.
func checkTuning(text string) (kind string, err error) {
	var m struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       map[string]any `json:"spec"`
		Status     map[string]any `json:"status"`
	}
	if len(text) > nodeconfig.MaxSize {
		return "", fmt.Errorf("key %s has more than %d MiB", tuningKey, nodeconfig.MaxSize>>20)
	}
	if err := yaml.UnmarshalStrict([]byte(text), &m); err != nil {
		return "", fmt.Errorf("key %s is not one manifest: %s", tuningKey, clip.Over(err.Error(), 200, "…"))
	}
	switch {
	case m.APIVersion == tunedAPI && m.Kind == tunedKind:
	case m.APIVersion == profileAPI && m.Kind == profileKind:
		cpu, _ := m.Spec["cpu"].(map[string]any)
		for _, field := range []string{"isolated", "reserved"} {
			if text, _ := cpu[field].(string); text == "" {
				return "", fmt.Errorf("spec.cpu.%s of the PerformanceProfile is missing: write the processors, such as 2-7", field)
			}
		}
	default:
		return "", fmt.Errorf("apiVersion %q and kind %q are not those of tuning: write %s %s, or %s %s",
			clip.Over(m.APIVersion, 100, "…"), clip.Over(m.Kind, 100, "…"), tunedAPI, tunedKind, profileAPI, profileKind)
	}
	if name, _ := m.Metadata["name"].(string); name == "" {
		return "", errors.New("metadata.name is missing")
	}
	return m.Kind, nil
}

// tuning decides what the tuning operator gets, and reports spec.tuningConfig.
func (p *pass) tuning() hyperv1.NodePoolCondition {
	const t = hyperv1.NodePoolValidTuningConfigConditionType
	obs := p.obs
	if !p.payloadRelease() {
		if len(p.spec().TuningConfig) > 0 {
			return bad(t, hyperv1.NodePoolValidationFailedReason, "spec.tuningConfig is a part of OpenShift, which a Kubernetes release does not have, and is ignored: set what you need with MachineConfigs in spec.config")
		}
		return good(t)
	}
	if c := obs.hc.Spec.Capabilities; c != nil && slices.Contains(c.Disabled, hyperv1.NodeTuningCapability) {
		if len(p.spec().TuningConfig) > 0 {
			return bad(t, hyperv1.NodePoolValidationFailedReason, "capability NodeTuning of the HostedCluster is disabled, so spec.tuningConfig is ignored: remove it, or create a HostedCluster with that capability")
		}
		return good(t)
	}
	if len(obs.tuningConfig) > 0 || obs.tunedMachines() {
		p.recheck(recheckTuning)
	}
	found, err := readTuning(obs.tuningConfig)
	if err = errors.Join(obs.tuningErr, err); err != nil {
		return bad(t, hyperv1.NodePoolValidationFailedReason, err.Error())
	}
	wanted := append(tuningObjects(obs, found), mirroredObjects(obs)...)
	names := map[string]bool{}
	for _, cm := range wanted {
		if names[cm.Name] {
			return bad(t, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf("two ConfigMaps of spec.config and spec.tuningConfig would be copied as %s: give one of them another name", cm.Name))
		}
		names[cm.Name] = true
		// The name of the user's and that of the pool, joined, may be that of another pool's copy, or of a component's.
		if whose, taken := obs.foreign[cm.Name]; taken {
			return bad(t, hyperv1.NodePoolValidationFailedReason, fmt.Sprintf("ConfigMap %s, by which the operator would know one of spec.config or spec.tuningConfig, is that of %s: "+
				"give the one that the NodePool names another name", cm.Name, whose))
		}
	}
	p.tuned = append(p.tuned, wanted...)
	for i := range obs.generated {
		cm := &obs.generated[i]
		if !names[cm.Name] && (isTrue(cm, hyperv1.TunedConfigMapLabel) || isTrue(cm, hyperv1.PerformanceProfileConfigMapLabel) || isTrue(cm, hyperv1.MirroredConfigLabel)) {
			p.untuned = append(p.untuned, cm)
		}
	}
	p.reportProfile(found.profile != "")
	return good(t)
}

// tunedMachines tells whether machines have what the operator has left. It takes that away some time after spec.tuningConfig is emptied.
func (o *observed) tunedMachines() bool {
	return slices.ContainsFunc(o.generated, func(cm corev1.ConfigMap) bool { return isTrue(&cm, hyperv1.NTOGeneratedMachineConfigLabel) })
}

func isTrue(cm *corev1.ConfigMap, label string) bool { return cm.Labels[label] == "true" }

// copyOf is a ConfigMap of the control plane namespace.
func copyOf(obs *observed, name, key, text string, labels ...string) *corev1.ConfigMap {
	all := map[string]string{hyperv1.NodePoolLabel: obs.pool.Name}
	for _, l := range labels {
		all[l] = "true"
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: obs.namespace, Name: name, Labels: all, Annotations: map[string]string{hyperv1.NodePoolAnnotation: keyOf(obs.pool)}},
		Data:       map[string]string{key: text},
	}
}

// tuningObjects are what the operator reads.
func tuningObjects(obs *observed, found tuned) []*corev1.ConfigMap {
	var list []*corev1.ConfigMap
	if len(found.tuneds) > 0 {
		list = append(list, copyOf(obs, machines.Shorten("tuned-"+obs.pool.Name, maxConfigMapName), tuningKey, strings.Join(found.tuneds, "\n---\n"), hyperv1.TunedConfigMapLabel))
	}
	if found.profile != "" {
		list = append(list, copyOf(obs, machines.Shorten(found.from+"-"+obs.pool.Name, maxConfigMapName), tuningKey, found.profile, hyperv1.PerformanceProfileConfigMapLabel))
	}
	return list
}

// mirroredObjects are the user's settings of kubelets and of the container runtime.
func mirroredObjects(obs *observed) []*corev1.ConfigMap {
	var list []*corev1.ConfigMap
	for _, s := range obs.userConfig {
		for kind, label := range map[string]string{
			nodeconfig.KindKubeletConfig: hyperv1.KubeletConfigConfigMapLabel, nodeconfig.KindContainerRuntimeConfig: hyperv1.ContainerRuntimeConfigConfigMapLabel,
		} {
			if holds(s.Data, kind) {
				list = append(list, copyOf(obs, machines.Shorten(configMapOf(s)+"-"+obs.pool.Name, maxConfigMapName), configKey, s.Data, hyperv1.MirroredConfigLabel, label))
				break
			}
		}
	}
	return list
}

// configMapOf is the name of the ConfigMap of spec.config that a source is of.
func configMapOf(s nodeconfig.Source) string {
	return strings.Trim(strings.TrimPrefix(s.Name, "ConfigMap "), `"`)
}

// holds tells whether a text has a document of a kind.
func holds(text, kind string) bool {
	for document := range strings.SplitSeq(text, "\n---") {
		var head struct{ Kind string }
		if yaml.Unmarshal([]byte(document), &head) == nil && head.Kind == kind {
			return true
		}
	}
	return false
}

// generatedConfig is what the operator has left for machines. Two KubeletConfigs would fight.
func generatedConfig(obs *observed) ([]nodeconfig.Source, error) {
	var list []nodeconfig.Source
	kubelet := ""
	for _, s := range obs.userConfig {
		if holds(s.Data, nodeconfig.KindKubeletConfig) {
			kubelet = s.Name
		}
	}
	for i := range obs.generated {
		cm := &obs.generated[i]
		if !isTrue(cm, hyperv1.NTOGeneratedMachineConfigLabel) {
			continue
		}
		s := nodeconfig.Source{Name: fmt.Sprintf("ConfigMap %s/%s", cm.Namespace, cm.Name), Data: cm.Data[configKey]}
		if kubelet != "" && holds(s.Data, nodeconfig.KindKubeletConfig) {
			return nil, fmt.Errorf("%s and %s, which the PerformanceProfile has made, both hold a KubeletConfig: a NodePool has one at most; put the settings into the profile", kubelet, s.Name)
		}
		list = append(list, s)
	}
	return list, nil
}

// reportProfile repeats how the PerformanceProfile fares. What it says comes from a program of the release.
func (p *pass) reportProfile(has bool) {
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	for i := range p.obs.generated {
		cm := &p.obs.generated[i]
		if isTrue(cm, hyperv1.NTOGeneratedPerformanceProfileStatusLabel) && yaml.Unmarshal([]byte(cm.Data[statusKey]), &status) != nil {
			status.Conditions = nil
		}
	}
	for _, name := range profileConditions {
		i := slices.IndexFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == name })
		if !has || i < 0 {
			p.removed = append(p.removed, profilePrefix+name)
			continue
		}
		c := status.Conditions[i]
		value := corev1.ConditionStatus(c.Status)
		if !slices.Contains([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}, value) {
			value = corev1.ConditionUnknown
		}
		p.set(condition(profilePrefix+name, value, clip.Over(cmp.Or(c.Reason, hyperv1.AsExpectedReason), 200, ""), clip.Over(c.Message, maxProfileMessage, "…")))
	}
}

// tune writes what the operator reads.
func (p *pass) tune() bool {
	for _, cm := range p.tuned {
		p.apply = append(p.apply, cm)
	}
	for _, cm := range p.untuned {
		p.delete = append(p.delete, cm)
	}
	return true
}
