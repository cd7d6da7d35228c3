package nodepool

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/nodeconfig"
)

const (
	tunedManifest   = "apiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata: {name: hugepages}\nspec: {profile: []}"
	profileManifest = "apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\nmetadata: {name: perf}\nspec: {cpu: {isolated: 2-7, reserved: 0-1}}"
	kubeletManifest = "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata: {name: kc}\nspec: {kubeletConfig: {maxPods: 100}}"
)

func tuning(sources ...string) func(*observed) {
	return func(o *observed) {
		for i, text := range sources {
			o.tuningConfig = append(o.tuningConfig, nodeconfig.Source{Name: "cm-" + string(rune('a'+i)), Data: text})
			o.pool.Spec.TuningConfig = append(o.pool.Spec.TuningConfig, corev1.LocalObjectReference{Name: "cm-" + string(rune('a'+i))})
		}
	}
}

// configMapsOf are the ConfigMaps that a plan writes, as name: labels.
func configMapsOf(p plan) map[string]*corev1.ConfigMap {
	out := map[string]*corev1.ConfigMap{}
	for _, obj := range p.apply {
		if cm, ok := obj.(*corev1.ConfigMap); ok {
			out[cm.Name] = cm
		}
	}
	return out
}

func TestTuning(t *testing.T) {
	t.Run("When a pool has tuning the operator should get it", func(t *testing.T) {
		g := NewWithT(t)
		p := payloadPlan(t, tuning(tunedManifest, profileManifest, strings.Replace(tunedManifest, "hugepages", "another", 1)))
		got := configMapsOf(p)
		g.Expect(got).To(And(HaveLen(2), HaveKey("tuned-workers"), HaveKey("cm-b-workers")))
		g.Expect(got["tuned-workers"].Labels).To(And(HaveKeyWithValue(hyperv1.TunedConfigMapLabel, "true"), HaveKeyWithValue(hyperv1.NodePoolLabel, "workers")))
		g.Expect(strings.Count(got["tuned-workers"].Data["tuning"], "\n---\n")).To(Equal(1))
		g.Expect(got["cm-b-workers"].Labels).To(HaveKeyWithValue(hyperv1.PerformanceProfileConfigMapLabel, "true"))
		g.Expect(findCondition(p.conditions, hyperv1.NodePoolValidTuningConfigConditionType).Status).To(Equal(corev1.ConditionTrue))
		g.Expect(findCondition(p.conditions, hyperv1.AllFieldsHeeded).Message).NotTo(ContainSubstring("tuningConfig"))
	})
	t.Run("When tuning is taken away its copies should go, and nobody else's", func(t *testing.T) {
		g := NewWithT(t)
		p := payloadPlan(t, func(o *observed) {
			for name, label := range map[string]string{"tuned-workers": hyperv1.TunedConfigMapLabel, "nto-mc-workers": hyperv1.NTOGeneratedMachineConfigLabel} {
				o.generated = append(o.generated, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}}})
			}
		})
		g.Expect(p.delete).To(HaveLen(1))
		g.Expect(p.delete[0].GetName()).To(Equal("tuned-workers"))
	})
	t.Run("When the operator has made configuration it should go into machines, and its state into the NodePool", func(t *testing.T) {
		g := NewWithT(t)
		made := func(o *observed) {
			tuning(profileManifest)(o)
			o.generated = []corev1.ConfigMap{
				{ObjectMeta: metav1.ObjectMeta{Name: "nto-mc", Labels: map[string]string{hyperv1.NTOGeneratedMachineConfigLabel: "true"}},
					Data: map[string]string{"config": "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 50-nto}\nspec: {kernelArguments: [nosmt]}"}},
				{ObjectMeta: metav1.ObjectMeta{Name: "status", Labels: map[string]string{hyperv1.NTOGeneratedPerformanceProfileStatusLabel: "true"}},
					Data: map[string]string{"status": "conditions: [{type: Available, status: \"True\", reason: Fine, message: all good}]"}},
			}
		}
		without, with := payloadPlan(t, tuning(profileManifest)), payloadPlan(t, made)
		g.Expect(with.createToken.Name).NotTo(Equal(without.createToken.Name))
		g.Expect(findCondition(with.conditions, "performance.operator.openshift.io/Available")).To(And(HaveField("Status", corev1.ConditionTrue), HaveField("Message", "all good")))
		g.Expect(with.removed).To(ContainElement("performance.operator.openshift.io/Degraded"))
	})
	t.Run("When kubelets are configured the settings should be copied for the hosted cluster", func(t *testing.T) {
		g := NewWithT(t)
		p := payloadPlan(t, func(o *observed) {
			o.userConfig = []nodeconfig.Source{{Name: `ConfigMap "kubelet"`, Data: kubeletManifest}}
		})
		g.Expect(configMapsOf(p)).To(HaveKey("kubelet-workers"))
		g.Expect(configMapsOf(p)["kubelet-workers"].Labels).To(And(HaveKeyWithValue(hyperv1.MirroredConfigLabel, "true"), HaveKeyWithValue(hyperv1.KubeletConfigConfigMapLabel, "true")))
	})
	for name, tc := range map[string]struct {
		change func(*observed)
		want   string
	}{
		"When another pool's ConfigMap has the name of a copy it should leave that alone and say whose it is": {func(o *observed) {
			tuning(profileManifest)(o)
			o.foreign = map[string]string{"cm-a-workers": "NodePool a-workers"}
		}, "ConfigMap cm-a-workers, by which the operator would know one of spec.config or spec.tuningConfig, is that of NodePool a-workers: give the one that the NodePool names another name"},
		"When a component's ConfigMap has the name of a copy it should leave that alone": {func(o *observed) {
			o.userConfig = []nodeconfig.Source{{Name: `ConfigMap "kas"`, Data: kubeletManifest}}
			o.foreign = map[string]string{"kas-workers": "the control plane"}
		}, "is that of the control plane"},
		"When there are two profiles it should name both":               {tuning(profileManifest, profileManifest), `ConfigMaps "cm-a" and "cm-b"`},
		"When a kind is no tuning it should say what is":                {tuning(kubeletManifest), "write tuned.openshift.io/v1 Tuned"},
		"When a profile lacks processors it should name the field":      {tuning(strings.Replace(profileManifest, "reserved: 0-1", "", 1)), "spec.cpu.reserved"},
		"When a manifest has fields that nobody knows it should say so": {tuning(tunedManifest + "\nspce: {}"), "is not one manifest"},
		"When the capability is disabled it should say so": {func(o *observed) {
			tuning(tunedManifest)(o)
			o.hc.Spec.Capabilities = &hyperv1.Capabilities{Disabled: []hyperv1.OptionalCapability{hyperv1.NodeTuningCapability}}
		}, "capability NodeTuning"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := payloadPlan(t, tc.change)
			c := findCondition(p.conditions, hyperv1.NodePoolValidTuningConfigConditionType)
			g.Expect(c.Status).To(Equal(corev1.ConditionFalse))
			g.Expect(c.Message).To(ContainSubstring(tc.want))
			g.Expect(configMapsOf(p)).To(BeEmpty())
		})
	}
	t.Run("When a profile and the user both configure kubelets it should refuse", func(t *testing.T) {
		p := payloadPlan(t, func(o *observed) {
			o.userConfig = []nodeconfig.Source{{Name: `ConfigMap "kubelet"`, Data: kubeletManifest}}
			o.generated = []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "nto", Labels: map[string]string{hyperv1.NTOGeneratedMachineConfigLabel: "true"}},
				Data: map[string]string{"config": kubeletManifest}}}
		})
		NewWithT(t).Expect(findCondition(p.conditions, hyperv1.NodePoolValidMachineConfigConditionType).Message).To(ContainSubstring("both hold a KubeletConfig"))
	})
	made := func(o *observed) {
		o.generated = []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "nto-mc", Labels: map[string]string{hyperv1.NTOGeneratedMachineConfigLabel: "true"}},
			Data: map[string]string{"config": "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: 50-nto}\nspec: {kernelArguments: [nosmt]}"}}}
	}
	for name, tc := range map[string]struct {
		change func(*observed)
		want   bool
	}{
		"When all tuning was taken away it should look again until the operator has taken away what it made": {made, true},
		"When tuning becomes invalid it should look again, as machines still have what the operator made":    {func(o *observed) { made(o); tuning("kind: X")(o) }, true},
		"When there is tuning it should look again":                                                          {tuning(tunedManifest), true},
		"When the operator has left nothing it should wait for events":                                       {func(*observed) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := payloadPlan(t, tc.change)
			NewWithT(t).Expect(p.recheckAfter > 0 && p.recheckAfter <= recheckTuning).To(Equal(tc.want), "%s", p.recheckAfter)
		})
	}
}
