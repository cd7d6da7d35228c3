package nodepool

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/nodeconfig"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/platform"
	"hcp.internal/platform/internal/platform/machine"
)

// example is what a pool looks like to a pass when nothing was made yet.
func example(t testing.TB, mutate ...func(*observed)) *observed {
	t.Helper()
	obs := &observed{pool: examplePool("clusters"), hc: exampleHostedCluster("clusters"), namespace: "clusters-demo",
		release: exampleRelease("1.36.3"), ignitionCA: []byte("certificate"), pullSecret: []byte(`{}`)}
	for _, m := range mutate {
		m(obs)
	}
	var err error
	if obs.platform, err = platform.For(obs.pool.Spec.Platform.Type); err != nil {
		obs.platform, obs.platformErr = nil, err
		return obs
	}
	if obs.release != nil {
		obs.template, obs.templateErr = obs.platform.MachineTemplate(machine.Input{HostedCluster: obs.hc, NodePool: obs.pool, Release: obs.release})
	}
	return obs
}

// settled is obs after a pass was carried out and Cluster API has done its part; the ignition server has answered.
func settled(obs *observed, p plan) *observed {
	next := *obs
	if p.createToken != nil {
		secret := p.createToken.DeepCopy()
		secret.CreationTimestamp = metav1.NewTime(noon)
		secret.Data[token.ReasonKey] = []byte(hyperv1.AsExpectedReason)
		secret.Annotations[hyperv1.TokenSecretIgnitionReachedAnnotation] = token.ReachedValue
		next.secrets = append(slices.Clone(next.secrets), *secret)
	}
	for _, obj := range p.apply {
		secret := obj.(*corev1.Secret)
		next.secrets = slices.DeleteFunc(slices.Clone(next.secrets), func(s corev1.Secret) bool { return s.Name == secret.Name })
		next.secrets = append(next.secrets, *secret)
	}
	for _, obj := range p.delete {
		next.secrets = slices.DeleteFunc(slices.Clone(next.secrets), func(s corev1.Secret) bool { return s.Name == obj.GetName() })
	}
	for _, s := range p.patches {
		for i := range next.secrets {
			if next.secrets[i].Name == s.name {
				next.secrets[i] = *next.secrets[i].DeepCopy()
				for k, v := range s.annotations {
					if v == nil {
						delete(next.secrets[i].Annotations, k)
					} else {
						next.secrets[i].Annotations[k] = *v
					}
				}
			}
		}
	}
	if p.createTemplate != nil {
		next.templates = append(slices.Clone(next.templates), metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: p.createTemplate.GetName()}})
	}
	switch w := p.workload.(type) {
	case *clusterv1.MachineDeployment:
		next.deployment = w.DeepCopy()
		next.deployment.Generation, next.deployment.ResourceVersion = 7, "7"
		next.deployment.Status = completeStatus(next.deployment)
		// Cluster API makes a MachineSet of each template, and moves the machines to the last one.
		next.sets = slices.DeleteFunc(slices.Clone(next.sets), func(s clusterv1.MachineSet) bool { return s.Status.AvailableReplicas != nil })
		next.sets = append(next.sets, clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Template: w.Spec.Template}, Status: clusterv1.MachineSetStatus{AvailableReplicas: w.Spec.Replicas}})
	case *clusterv1.MachineSet:
		current := obs.set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation]
		next.set = w.DeepCopy()
		next.set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] = current
	}
	if p.createSet != nil {
		next.set = p.createSet.DeepCopy()
	}
	if p.markCurrent != "" {
		next.set = obs.set.DeepCopy()
		next.set.Annotations[hyperv1.NodePoolCurrentConfigVersionAnnotation] = p.markCurrent
	}
	next.pool = obs.pool.DeepCopy()
	next.pool.Status.Version = p.version
	for k, v := range p.annotations {
		metav1.SetMetaDataAnnotation(&next.pool.ObjectMeta, k, v)
	}
	for _, c := range p.conditions {
		setCondition(&next.pool.Status.Conditions, c, 1, noon)
	}
	return &next
}

// configured is obs with another configuration.
func configured(obs *observed, text string) *observed {
	next := *obs
	next.userConfig = []nodeconfig.Source{{Name: `ConfigMap "tuning"`, Data: machineConfig("/etc/motd", "data:,"+text)}}
	return &next
}

func of(p plan, conditionType string) string {
	if c := findCondition(p.conditions, conditionType); c != nil {
		return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
	}
	return ""
}

func writes(p plan) bool {
	return p.createToken != nil || len(p.apply) > 0 || p.workload != nil || p.createSet != nil || p.createTemplate != nil || len(p.patches) > 0 || len(p.delete) > 0
}

func TestGates(t *testing.T) {
	pool := func(change func(*hyperv1.NodePoolSpec)) func(*observed) {
		return func(o *observed) { change(&o.pool.Spec) }
	}
	for name, tc := range map[string]struct {
		change    func(*observed)
		condition string
		want      string
	}{
		"When surge and unavailable are both 0 it should refuse, because nothing could ever be replaced": {
			pool(func(s *hyperv1.NodePoolSpec) {
				zero := intstr.FromInt32(0)
				s.Management.Replace = &hyperv1.ReplaceUpgrade{Strategy: hyperv1.UpgradeStrategyRollingUpdate, RollingUpdate: &hyperv1.RollingUpdate{MaxSurge: &zero, MaxUnavailable: &zero}}
			}),
			hyperv1.NodePoolUpdateManagementEnabledConditionType, "False/ValidationFailed: spec.management.replace.rollingUpdate.maxSurge and maxUnavailable are both 0, so that no machine could ever be replaced: raise one of them"},
		"When a percentage is none it should name the field": {
			pool(func(s *hyperv1.NodePoolSpec) {
				s.Management = hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace, InPlace: &hyperv1.InPlaceUpgrade{MaxUnavailable: ptr.To(intstr.FromString("many"))}}
			}),
			hyperv1.NodePoolUpdateManagementEnabledConditionType, `False/ValidationFailed: spec.management.inPlace.maxUnavailable is "many": write a number from 0, or a percentage such as 25%`},
		"When the platform is not that of the HostedCluster it should name both": {
			pool(func(s *hyperv1.NodePoolSpec) { s.Platform.Type = hyperv1.NonePlatform }),
			hyperv1.NodePoolValidPlatformConfigConditionType, "False/ValidationFailed: spec.platform.type is None and that of HostedCluster demo is Local: they must be the same; the type can't be changed, so create another NodePool"},
		"When the release can't be read it should say why": {
			func(o *observed) { o.release, o.releaseErr = nil, fmt.Errorf("no such image") },
			hyperv1.NodePoolValidReleaseImageConditionType, "False/ValidationFailed: spec.release.image: no such image"},
		"When the release is newer than the control plane it should refuse": {
			func(o *observed) { o.release = exampleRelease("1.37.0") },
			hyperv1.NodePoolValidReleaseImageConditionType, "False/ValidationFailed: spec.release.image: release version 1.37.0 is newer than the control plane (1.36.3): upgrade the HostedCluster first, or use a 1.36 release"},
		"When the release is older than that of the machines it should refuse": {
			func(o *observed) { o.release, o.pool.Status.Version = exampleRelease("1.35.4"), "1.36.3" },
			hyperv1.NodePoolValidReleaseImageConditionType, "False/ValidationFailed: spec.release.image: downgrading from 1.36.3 to 1.35.4 is not supported: set spec.release.image back to a 1.36 release or a later one"},
		"When there is no endpoint yet it should wait for it": {
			func(o *observed) { o.hc.Status.IgnitionEndpoint = "" },
			hyperv1.IgnitionEndpointAvailable, "False/IgnitionEndpointMissing: the HostedCluster has no ignition endpoint yet; see its condition IgnitionEndpointAvailable"},
		"When the certificate is not there yet it should wait for it": {
			func(o *observed) { o.ignitionCA = nil },
			hyperv1.IgnitionEndpointAvailable, "False/IgnitionCACertMissing: Secret clusters-demo/ignition-server-ca-cert does not exist yet"},
		"When the namespace is another cluster's it should touch nothing": {
			func(o *observed) {
				o.namespaceErr = fmt.Errorf("namespace clusters-demo belongs to another hosted cluster")
			},
			hyperv1.IgnitionEndpointAvailable, "False/IgnitionEndpointMissing: namespace clusters-demo belongs to another hosted cluster"},
		"When the release is for another architecture it should refuse": {
			pool(func(s *hyperv1.NodePoolSpec) { s.Arch = hyperv1.ArchitectureARM64 }),
			hyperv1.NodePoolValidArchPlatform, "False/InvalidArchPlatform: spec.arch is arm64, and release 1.36.3 is for AMD64: use a release for several architectures, or one for ARM64"},
		"When a ConfigMap does not exist it should name it": {
			func(o *observed) {
				o.userConfigErr = fmt.Errorf(`ConfigMap "tuning", which spec.config names, does not exist`)
			},
			hyperv1.NodePoolValidMachineConfigConditionType, `False/ValidationFailed: ConfigMap "tuning", which spec.config names, does not exist`},
		"When a node label is none it should name it": {
			pool(func(s *hyperv1.NodePoolSpec) { s.NodeLabels = map[string]string{"zone": "not a value"} }),
			hyperv1.NodePoolValidMachineTemplateConditionType, `False/InvalidMachineTemplate: spec.nodeLabels[zone] is "not a value": `},
		"When the release has no image for machines it should name the tag": {
			func(o *observed) { o.release.Images = nil },
			hyperv1.NodePoolValidMachineTemplateConditionType, "False/InvalidMachineTemplate: release 1.36.3 (registry/release:1.36.3) has no image local-node"},
		"When the API server has not been up it should wait for it": {
			func(o *observed) { o.hc.Status.KubeConfig = nil },
			hyperv1.NodePoolValidMachineConfigConditionType, "False/WaitingForHostedCluster: the HostedCluster has no kubeconfig yet"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := planFor(example(t, tc.change), noon, "token")
			g.Expect(of(p, tc.condition)).To(HavePrefix(tc.want))
			g.Expect(writes(p)).To(BeFalse(), "nothing is written while a gate is closed")
		})
	}
	t.Run("When a document is wrong it should name it and leave the machines alone", func(t *testing.T) {
		g := NewWithT(t)
		obs := configured(example(t), "a")
		obs.userConfig[0].Data = "kind: Deployment"
		p := planFor(obs, noon, "token")
		g.Expect(of(p, hyperv1.NodePoolValidMachineConfigConditionType)).To(ContainSubstring(`ConfigMap "tuning"`))
		g.Expect(writes(p)).To(BeFalse())
	})
	t.Run("When a file that machines bring is appended to, and they are changed in place, it should name the file and the remedy", func(t *testing.T) {
		g := NewWithT(t)
		obs := configured(example(t, pool(func(s *hyperv1.NodePoolSpec) {
			s.Management = hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace}
		})), "a")
		obs.userConfig[0].Data = strings.Replace(strings.Replace(obs.userConfig[0].Data, "contents:", "append:", 1), "source:", "- source:", 1)
		p := planFor(obs, noon, "token")
		g.Expect(of(p, hyperv1.NodePoolValidMachineConfigConditionType)).To(And(
			HavePrefix("False/ValidationFailed"), ContainSubstring("file /etc/motd has append and no contents"), ContainSubstring("NodePool with upgradeType Replace")))
		g.Expect(writes(p)).To(BeFalse())
	})
	t.Run("When the trust bundle is missing it should look again, as one that is made again causes no event", func(t *testing.T) {
		g := NewWithT(t)
		p := planFor(example(t, func(o *observed) { o.trustBundleErr = fmt.Errorf("ConfigMap clusters/bundle does not exist") }), noon, "token")
		g.Expect(of(p, hyperv1.NodePoolValidMachineConfigConditionType)).To(Equal("False/WaitingForHostedCluster: ConfigMap clusters/bundle does not exist"))
		g.Expect(p.recheckAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)))
		g.Expect(writes(p)).To(BeFalse())
	})
	t.Run("When nodes are too far behind it should say so and go on", func(t *testing.T) {
		g := NewWithT(t)
		p := planFor(example(t, func(o *observed) {
			o.hc.Status.Version.History[0].Version = "1.39.0"
			o.release = exampleRelease("1.35.4")
		}), noon, "token")
		g.Expect(of(p, hyperv1.NodePoolSupportedVersionSkewConditionType)).To(HavePrefix("False/UnsupportedSkew: nodes of version 1.35.4 are 4 minor versions behind"))
		g.Expect(writes(p)).To(BeTrue())
	})
}

func TestRollout(t *testing.T) {
	template := func(p plan) clusterv1.MachineTemplateSpec {
		return p.workload.(*clusterv1.MachineDeployment).Spec.Template
	}
	// complete is a pool that has come to rest with configuration a.
	complete := func(t *testing.T) (*observed, plan) {
		obs := configured(example(t), "a")
		first := planFor(obs, noon, "token-a")
		obs = settled(obs, first)
		done := planFor(obs, noon, "unused")
		NewWithT(t).Expect(done.version).To(Equal("1.36.3"))
		return settled(obs, done), first
	}
	t.Run("When all machines are as they are to be it should say so", func(t *testing.T) {
		g := NewWithT(t)
		obs, _ := complete(t)
		p := planFor(obs, noon, "unused")
		for _, c := range []string{hyperv1.NodePoolUpdatingConfigConditionType, hyperv1.NodePoolUpdatingVersionConditionType, hyperv1.NodePoolUpdatingPlatformMachineTemplateConditionType} {
			g.Expect(of(p, c)).To(HavePrefix("False/AsExpected"), c)
		}
		g.Expect(of(p, hyperv1.NodePoolValidGeneratedPayloadConditionType)).To(HavePrefix("True/AsExpected"))
		g.Expect(of(p, hyperv1.NodePoolReachedIgnitionEndpoint)).To(HavePrefix("True/AsExpected"))
		g.Expect(p.createToken).To(BeNil())
	})
	t.Run("When the configuration changes it should wait for the ignition server before it replaces machines", func(t *testing.T) {
		g := NewWithT(t)
		obs, first := complete(t)
		p := planFor(configured(obs, "b"), noon, "token-b")
		g.Expect(p.createToken).NotTo(BeNil())
		g.Expect(template(p)).To(Equal(template(first)))
		g.Expect(of(p, hyperv1.NodePoolUpdatingConfigConditionType)).To(And(HavePrefix("True/AsExpected: Updating config to"), ContainSubstring("waiting for the ignition server")))
		next := settled(configured(obs, "b"), p)
		p = planFor(next, noon, "unused")
		g.Expect(template(p)).NotTo(Equal(template(first)))
	})
	t.Run("When the ignition server refuses the configuration it should leave the machines alone and repeat why", func(t *testing.T) {
		g := NewWithT(t)
		obs, first := complete(t)
		obs = settled(configured(obs, "b"), planFor(configured(obs, "b"), noon, "token-b"))
		for i := range obs.secrets {
			if string(obs.secrets[i].Data[token.TokenKey]) == "token-b" {
				obs.secrets[i].Data[token.ReasonKey], obs.secrets[i].Data[token.MessageKey] = []byte("InvalidConfig"), []byte("two files have one path")
			}
		}
		p := planFor(obs, noon, "unused")
		g.Expect(template(p)).To(Equal(template(first)))
		g.Expect(of(p, hyperv1.NodePoolUpdatingConfigConditionType)).To(ContainSubstring("not replacing machines, because the ignition server can't use the new configuration: InvalidConfig: two files have one path"))
		g.Expect(of(p, hyperv1.NodePoolValidGeneratedPayloadConditionType)).To(Equal("False/InvalidConfig: two files have one path"))
	})
	t.Run("When the ignition server says nothing it should go on after its time", func(t *testing.T) {
		g := NewWithT(t)
		obs, first := complete(t)
		obs = settled(configured(obs, "b"), planFor(configured(obs, "b"), noon, "token-b"))
		for i := range obs.secrets {
			if string(obs.secrets[i].Data[token.TokenKey]) == "token-b" {
				delete(obs.secrets[i].Data, token.ReasonKey)
			}
		}
		p := planFor(obs, noon.Add(10*time.Second), "unused")
		g.Expect(template(p)).To(Equal(template(first)))
		g.Expect(p.recheckAfter).To(Equal(20 * time.Second))
		g.Expect(template(planFor(obs, noon.Add(30*time.Second), "unused"))).NotTo(Equal(template(first)))
	})
	t.Run("When the configuration goes back it should be what it was, so that machines that fit stay", func(t *testing.T) {
		g := NewWithT(t)
		obs, first := complete(t)
		// The MachineSet of a stays while machines of b are made.
		obs.sets = []clusterv1.MachineSet{{Spec: clusterv1.MachineSetSpec{Template: template(first)}}}
		b := settled(configured(obs, "b"), planFor(configured(obs, "b"), noon, "token-b"))
		b = settled(b, planFor(b, noon, "unused"))
		p := planFor(b, noon, "unused")
		g.Expect(template(p)).NotTo(Equal(template(first)))
		g.Expect(p.delete).To(BeEmpty(), "the MachineSet of a still refers to its user data")
		back := planFor(configured(b, "a"), noon, "token-c")
		g.Expect(back.createToken).To(BeNil())
		g.Expect(template(back)).To(Equal(template(first)))
	})
	t.Run("When no machine can be made from a configuration any more it should end its token and delete its user data", func(t *testing.T) {
		g := NewWithT(t)
		obs, _ := complete(t)
		b := settled(configured(obs, "b"), planFor(configured(obs, "b"), noon, "token-b"))
		b = settled(b, planFor(b, noon, "unused"))
		p := planFor(b, noon, "unused")
		g.Expect(p.delete).To(HaveLen(1))
		g.Expect(p.delete[0].GetName()).To(HavePrefix("user-data-workers-"))
		g.Expect(p.patches).To(HaveLen(1))
		g.Expect(*p.patches[0].annotations[hyperv1.TokenSecretExpirationTimestampAnnotation]).To(Equal("2026-11-21T14:00:00Z"))
		back := planFor(configured(settled(b, p), "a"), noon, "token-c")
		g.Expect(back.createToken).To(BeNil(), "the token is still there")
		g.Expect(back.patches).To(ContainElement(WithTransform(func(s secretPatch) map[string]*string { return s.annotations }, HaveKeyWithValue(hyperv1.TokenSecretExpirationTimestampAnnotation, BeNil()))))
	})
	t.Run("When only labels, taints, replicas or timeouts change it should not be a rollout", func(t *testing.T) {
		g := NewWithT(t)
		obs, first := complete(t)
		obs.pool.Spec.NodeLabels = map[string]string{"example.com/zone": "a"}
		obs.pool.Spec.Taints = []hyperv1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
		obs.pool.Spec.Replicas = ptr.To[int32](5)
		obs.pool.Spec.NodeDrainTimeout = &metav1.Duration{Duration: 1500 * time.Millisecond}
		p := planFor(obs, noon, "unused")
		g.Expect(of(p, hyperv1.NodePoolUpdatingConfigConditionType)).To(HavePrefix("False"))
		md := p.workload.(*clusterv1.MachineDeployment)
		g.Expect(*md.Spec.Replicas).To(BeEquivalentTo(5))
		g.Expect(machines.GenerationOf(&md.Spec.Template)).To(Equal(machines.GenerationOf(ptr.To(template(first)))))
		g.Expect(md.Spec.Template.Labels).To(HaveKeyWithValue("managed.hypershift.openshift.io.example.com/zone", "a"))
		g.Expect(md.Spec.Template.Annotations).To(HaveKeyWithValue("hypershift.openshift.io/nodePoolTaints", `[{"key":"dedicated","value":"db","effect":"NoSchedule"}]`))
		g.Expect(*md.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds).To(BeEquivalentTo(2), "rounded up")
	})
	t.Run("When the control plane's own configuration changes it should reach new machines only", func(t *testing.T) {
		g := NewWithT(t)
		obs, first := complete(t)
		obs.coreConfig = []nodeconfig.Source{{Name: "core", Data: strings.ReplaceAll(machineConfig("/etc/issue", "data:,x"), "99-file", "20-core")}}
		p := planFor(obs, noon, "unused")
		g.Expect(template(p)).To(Equal(template(first)))
		g.Expect(of(p, hyperv1.NodePoolUpdatingConfigConditionType)).To(HavePrefix("False"))
		g.Expect(p.patches).To(ContainElement(WithTransform(func(s secretPatch) map[string][]byte { return s.data }, HaveKey("config"))))
	})
	t.Run("When the configuration goes back in the middle it should say so until no machine is of the other", func(t *testing.T) {
		g := NewWithT(t)
		obs, _ := complete(t)
		machine := func(userData string) clusterv1.Machine {
			return clusterv1.Machine{Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{DataSecretName: &userData}}}
		}
		mine := *obs.deployment.Spec.Template.Spec.Bootstrap.DataSecretName
		obs.machines = []clusterv1.Machine{machine(mine), machine("user-data-workers-0badcafe")}
		g.Expect(of(planFor(obs, noon, "unused"), hyperv1.NodePoolUpdatingConfigConditionType)).To(And(HavePrefix("True/AsExpected: Updating config to"), ContainSubstring("1 of 2 machines")))
		obs.machines[1] = machine(mine)
		g.Expect(of(planFor(obs, noon, "unused"), hyperv1.NodePoolUpdatingConfigConditionType)).To(HavePrefix("False"))
	})
	t.Run("When a rollout is under way it should count machines and name one that is stuck", func(t *testing.T) {
		g := NewWithT(t)
		obs, _ := complete(t)
		b := settled(configured(obs, "b"), planFor(configured(obs, "b"), noon, "token-b"))
		b = settled(b, planFor(b, noon, "unused"))
		b.sets[0].Status.Replicas = ptr.To[int32](2) // a machine of a before is still there
		b.sets[0].Spec.Template = clusterv1.MachineTemplateSpec{}
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "workers-x"}, Spec: b.deployment.Spec.Template.Spec}
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "PodPending", Message: "Insufficient memory"}}
		b.machines = []clusterv1.Machine{m}
		g.Expect(of(planFor(b, noon, "unused"), hyperv1.NodePoolUpdatingConfigConditionType)).To(ContainSubstring(
			"1 of 2 machines are made from it: 1 of 1 machines are not ready\nMachine workers-x: PodPending: Insufficient memory"))
	})
	t.Run("When a drain holds up a rollout it should name the machine and what the drain waits for", func(t *testing.T) {
		g := NewWithT(t)
		obs, _ := complete(t)
		old := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "workers-old", DeletionTimestamp: ptr.To(metav1.NewTime(noon))}}
		old.Spec.Bootstrap.DataSecretName = ptr.To("user-data-workers-0badcafe")
		old.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: "DrainingNode",
			Message: "Drain not completed yet:\n* Pod default/web: cannot evict pod as it would violate the pod's disruption budget"}}
		obs.machines = []clusterv1.Machine{old}
		g.Expect(of(planFor(obs, noon, "unused"), hyperv1.NodePoolUpdatingConfigConditionType)).To(And(HavePrefix("True"),
			ContainSubstring("waiting for the end of workers-old"), ContainSubstring("Pod default/web: cannot evict pod as it would violate")))
	})
}

func TestInPlace(t *testing.T) {
	inPlace := func(o *observed) {
		o.pool.Spec.Management = hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeInPlace, InPlace: &hyperv1.InPlaceUpgrade{MaxUnavailable: ptr.To(intstr.FromString("50%"))}}
		o.pool.Spec.Replicas = ptr.To[int32](4)
	}
	const current, target = hyperv1.NodePoolCurrentConfigVersionAnnotation, hyperv1.NodePoolTargetConfigVersionAnnotation
	start := func(t *testing.T) *observed {
		obs := configured(example(t, inPlace), "a")
		obs = settled(obs, planFor(obs, noon, "token-a"))
		return settled(obs, planFor(obs, noon, "unused"))
	}
	t.Run("When a pool is new its machines should count as what they are made from", func(t *testing.T) {
		g := NewWithT(t)
		obs := start(t)
		g.Expect(obs.set.Annotations[current]).To(And(Not(BeEmpty()), Equal(obs.set.Annotations[target])))
		g.Expect(obs.set.Annotations).To(HaveKeyWithValue(hyperv1.NodePoolMaxUnavailableAnnotation, "2"))
		g.Expect(obs.set.Spec.Template.Annotations).NotTo(HaveKey(hyperv1.NodePoolReleaseVersionAnnotation))
		g.Expect(obs.pool.Status.Version).To(Equal("1.36.3"))
	})
	t.Run("When the configuration changes it should name the target and leave the rest to who changes machines", func(t *testing.T) {
		g := NewWithT(t)
		obs := start(t)
		a := obs.set.Annotations[current]
		obs = settled(configured(obs, "b"), planFor(configured(obs, "b"), noon, "token-b"))
		obs = settled(obs, planFor(obs, noon, "unused"))
		g.Expect(obs.set.Annotations[current]).To(Equal(a))
		g.Expect(obs.set.Annotations[target]).NotTo(Equal(a))
		obs.set.Annotations[hyperv1.NodePoolUpgradeInProgressTrueAnnotation] = "Total Nodes: 4. Upgraded: 1"
		p := planFor(obs, noon, "unused")
		g.Expect(of(p, hyperv1.NodePoolUpdatingConfigConditionType)).To(HaveSuffix("Total Nodes: 4. Upgraded: 1"))
		obs.set.Annotations[hyperv1.NodePoolUpgradeInProgressFalseAnnotation] = "Node x in nodepool degraded: disk full"
		p = planFor(obs, noon, "unused")
		g.Expect(of(p, hyperv1.NodePoolUpdatingConfigConditionType)).To(Equal("False/InplaceUpgradeFailed: Node x in nodepool degraded: disk full"))
	})
	t.Run("When the configuration goes back in the middle it should let machines that have changed be changed back", func(t *testing.T) {
		g := NewWithT(t)
		obs := start(t)
		a := obs.set.Annotations[current]
		obs = settled(configured(obs, "b"), planFor(configured(obs, "b"), noon, "token-b"))
		obs = settled(obs, planFor(obs, noon, "unused"))
		b := obs.set.Annotations[target]
		p := planFor(configured(obs, "a"), noon, "unused")
		g.Expect(p.markCurrent).To(Equal(b))
		obs = settled(configured(obs, "a"), p)
		g.Expect(obs.set.Annotations[current]).To(Equal(b))
		p = planFor(obs, noon, "unused")
		g.Expect(p.markCurrent).To(BeEmpty())
		g.Expect(p.workload.GetAnnotations()[target]).To(Equal(a))
		g.Expect(of(p, hyperv1.NodePoolUpdatingConfigConditionType)).To(HavePrefix("True/AsExpected: Updating config to"), "though all that is noted on the pool is a")
		obs = settled(obs, p)
		obs.set.Annotations[current] = a // whoever changes machines is done
		g.Expect(of(planFor(obs, noon, "unused"), hyperv1.NodePoolUpdatingConfigConditionType)).To(HavePrefix("False"))
	})
}

func TestPauseAndRepair(t *testing.T) {
	healthCheck := func(o *observed) { o.healthCheck = &clusterv1.MachineHealthCheck{} }
	deployment := func(o *observed) { o.deployment = &clusterv1.MachineDeployment{} }
	t.Run("When a pool is paused it should stop machines and their repair, and come back in time", func(t *testing.T) {
		g := NewWithT(t)
		p := planFor(example(t, healthCheck, deployment, func(o *observed) { o.pool.Spec.PausedUntil = ptr.To("2026-11-21T12:10:00Z") }), noon, "token")
		g.Expect(p.pause).To(HaveLen(2))
		g.Expect(writes(p)).To(BeFalse())
		g.Expect(p.recheckAfter).To(Equal(10*time.Minute + time.Second))
		g.Expect(of(p, hyperv1.NodePoolReconciliationActiveConditionType)).To(Equal("False/ReconciliationPaused: spec.pausedUntil pauses the pool until 2026-11-21T12:10:00Z"))
	})
	t.Run("When the pause is over it should go on", func(t *testing.T) {
		p := planFor(example(t, deployment, func(o *observed) {
			o.deployment.Annotations = map[string]string{machines.PausedAnnotation: "true"}
			o.pool.Spec.PausedUntil = ptr.To("2026-11-21T11:00:00Z")
		}), noon, "token")
		NewWithT(t).Expect(p.unpause).To(HaveLen(1))
	})
	t.Run("When repair is wanted it should begin once a machine has booted", func(t *testing.T) {
		g := NewWithT(t)
		obs := example(t, func(o *observed) { o.pool.Spec.Management.AutoRepair = true })
		first := planFor(obs, noon, "token")
		g.Expect(first.after).To(BeEmpty())
		p := planFor(settled(obs, first), noon, "unused")
		g.Expect(p.after).To(HaveLen(1))
		mhc := p.after[0].(*clusterv1.MachineHealthCheck)
		unhealthy := map[corev1.NodeConditionType][]corev1.ConditionStatus{}
		for _, c := range mhc.Spec.Checks.UnhealthyNodeConditions {
			unhealthy[c.Type] = append(unhealthy[c.Type], c.Status)
			g.Expect(*c.TimeoutSeconds).To(BeEquivalentTo(480))
		}
		g.Expect(unhealthy).To(Equal(map[corev1.NodeConditionType][]corev1.ConditionStatus{
			corev1.NodeReady: {corev1.ConditionFalse, corev1.ConditionUnknown}, corev1.NodeDiskPressure: {corev1.ConditionTrue}}))
		g.Expect(*mhc.Spec.Checks.NodeStartupTimeoutSeconds).To(BeEquivalentTo(1200))
		g.Expect(mhc.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo).To(HaveValue(Equal(intstr.FromInt32(2))))
		g.Expect(of(p, hyperv1.NodePoolAutorepairEnabledConditionType)).To(HavePrefix("True/AsExpected"))
	})
	t.Run("When too many machines are unhealthy it should say that none is replaced", func(t *testing.T) {
		p := planFor(example(t, healthCheck, func(o *observed) {
			o.pool.Spec.Management.AutoRepair = true
			o.healthCheck.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, Status: metav1.ConditionFalse, Reason: "TooManyUnhealthy", Message: "3 of 4"}}
		}), noon, "token")
		NewWithT(t).Expect(of(p, hyperv1.NodePoolReadyConditionType)).To(Equal("False/TooManyUnhealthy: 3 of 4"))
	})
	t.Run("When others make the machines it should be done with the user data", func(t *testing.T) {
		g := NewWithT(t)
		none := func(o *observed) {
			o.pool.Spec.Platform.Type, o.hc.Spec.Platform.Type = hyperv1.NonePlatform, hyperv1.NonePlatform
		}
		p := planFor(example(t, none), noon, "token")
		g.Expect(p.version).To(Equal("1.36.3"))
		g.Expect(p.workload).To(BeNil())
		g.Expect(p.createToken).NotTo(BeNil())
		g.Expect(of(p, hyperv1.NodePoolUpdatingConfigConditionType)).To(HavePrefix("False"))
	})
}

func TestControlPlaneVersions(t *testing.T) {
	t.Run("When an upgrade of the control plane is under way nodes should keep to what it was", func(t *testing.T) {
		g := NewWithT(t)
		hc := exampleHostedCluster("clusters")
		hc.Status.Version.Desired.Version = "1.37.0"
		hc.Status.Version.History = append([]configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: "1.37.0"}}, hc.Status.Version.History...)
		completed, present := controlPlaneVersions(hc)
		g.Expect([]string{completed, present}).To(Equal([]string{"1.36.3", "1.36.3"}))
	})
	t.Run("When an upgrade of the control plane was given up for another nodes should keep to what was completed", func(t *testing.T) {
		g := NewWithT(t)
		obs := example(t, func(o *observed) {
			o.release = exampleRelease("1.37.0")
			superseded(o.hc)
		})
		completed, present := controlPlaneVersions(obs.hc)
		g.Expect([]string{completed, present}).To(Equal([]string{"1.36.3", "1.36.3"}))
		p := planFor(obs, noon, "token")
		g.Expect(of(p, hyperv1.NodePoolValidReleaseImageConditionType)).To(HavePrefix("False/ValidationFailed: spec.release.image: release version 1.37.0 is newer than the control plane (1.36.3)"))
		g.Expect(writes(p)).To(BeFalse())
	})
	t.Run("When no version was ever completed nodes should go by the one that is wanted", func(t *testing.T) {
		g := NewWithT(t)
		hc := exampleHostedCluster("clusters")
		hc.Status.Version.History = nil
		superseded(hc)
		completed, present := controlPlaneVersions(hc)
		g.Expect([]string{completed, present}).To(Equal([]string{"1.37.1", "1.37.1"}))
	})
}

// superseded puts an upgrade on top of the history that was given up, which closes its entry, and the one that it was given up for.
func superseded(hc *hyperv1.HostedCluster) {
	hc.Status.Version.Desired.Version = "1.37.1"
	hc.Status.Version.History = append([]configv1.UpdateHistory{
		{State: configv1.PartialUpdate, Version: "1.37.1"},
		{State: configv1.PartialUpdate, Version: "1.37.0", CompletionTime: ptr.To(metav1.NewTime(noon))},
	}, hc.Status.Version.History...)
}
