package provider

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/platform/machine"
)

func localMachine(edit ...func(*infrav1.LocalMachine)) *infrav1.LocalMachine {
	m := &infrav1.LocalMachine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "workers-abc", UID: "lm-uid", Labels: map[string]string{clusterLabel: "demo-x"}},
		Spec:       infrav1.LocalMachineSpec{Image: "registry.example.com/node@sha256:0"},
	}
	for _, e := range edit {
		e(m)
	}
	return m
}

func podOf(m *infrav1.LocalMachine, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := machinePod(m, "user-data", placement{})
	p.UID = "pod-uid"
	for _, e := range edit {
		e(p)
	}
	return p
}

func running(p *corev1.Pod) {
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.244.0.7", PodIPs: []corev1.PodIP{{IP: "10.244.0.7"}},
		ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	}
}

func crashed(p *corev1.Pod) {
	running(p)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}},
	}}
}

func made(m *infrav1.LocalMachine) { m.Status.PodUID = "pod-uid" }

func deleted(m *infrav1.LocalMachine) {
	m.DeletionTimestamp = ptr.To(metav1.Now())
	m.Finalizers = []string{infrav1.MachineFinalizer}
}

// ready is a world in which nothing keeps the machine from being made.
func ready(edit ...func(*observed)) observed {
	obs := observed{local: localMachine(), machine: &clusterv1.Machine{}, cluster: &clusterv1.Cluster{}, bootstrap: bootstrapReady, secret: "user-data"}
	obs.cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	for _, e := range edit {
		e(&obs)
	}
	return obs
}

func TestPlan(t *testing.T) {
	type want struct {
		create, deletePod, release bool
		ready                      metav1.ConditionStatus
		reason                     string
		provisioned                bool
	}
	for name, tc := range map[string]struct {
		obs  observed
		want want
	}{
		"When all that a machine needs is there it should make its pod": {
			obs: ready(), want: want{create: true, ready: metav1.ConditionFalse, reason: infrav1.ReasonPodPending},
		},
		"When no Machine owns it it should wait": {
			obs:  ready(func(o *observed) { o.machine = nil }),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonWaitingForMachine},
		},
		"When the cluster is not provisioned it should wait": {
			obs:  ready(func(o *observed) { o.cluster = &clusterv1.Cluster{} }),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonWaitingForCluster},
		},
		"When there is no user data it should wait": {
			obs:  ready(func(o *observed) { o.bootstrap = bootstrapMissing }),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonWaitingForBootstrapData},
		},
		"When the Secret has no value it should say so": {
			obs:  ready(func(o *observed) { o.bootstrap = bootstrapInvalid }),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonInvalidBootstrapData},
		},
		"When its pod runs it should be ready": {
			obs:  ready(func(o *observed) { o.pod = podOf(o.local, running) }),
			want: want{ready: metav1.ConditionTrue, reason: infrav1.ReasonReady, provisioned: true},
		},
		"When it crashed it should be starting again, not another machine": {
			obs:  ready(func(o *observed) { made(o.local); o.pod = podOf(o.local, crashed) }),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonRebooting},
		},
		"When it was switched off it should stay off": {
			obs: ready(func(o *observed) {
				made(o.local)
				o.pod = podOf(o.local, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
			}),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonPoweredOff},
		},
		"When its pod failed it should be reported": {
			obs: ready(func(o *observed) {
				made(o.local)
				o.pod = podOf(o.local, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
			}),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonMachineFailed},
		},
		"When its pod is gone it should not make another one": {
			obs:  ready(func(o *observed) { made(o.local) }),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonMachineGone},
		},
		"When another pod has its name later it should still be gone": {
			obs: ready(func(o *observed) {
				made(o.local)
				o.pod = podOf(o.local, running, func(p *corev1.Pod) { p.UID = "another" })
			}),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonMachineGone},
		},
		"When somebody else's pod has its name it should leave that alone": {
			obs:  ready(func(o *observed) { o.pod = podOf(o.local, running, func(p *corev1.Pod) { p.OwnerReferences = nil }) }),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonInvalidSpec},
		},
		"When it is paused it should do nothing": {
			obs: ready(func(o *observed) { o.cluster.Spec.Paused = ptr.To(true) }), want: want{},
		},
		"When it is deleted it should end its pod first": {
			obs:  ready(func(o *observed) { deleted(o.local); made(o.local); o.pod = podOf(o.local, running) }),
			want: want{deletePod: true, ready: metav1.ConditionFalse, reason: infrav1.ReasonDeleting},
		},
		"When it is deleted and its pod is ending it should wait": {
			obs: ready(func(o *observed) {
				deleted(o.local)
				o.pod = podOf(o.local, running, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) })
			}),
			want: want{ready: metav1.ConditionFalse, reason: infrav1.ReasonDeleting},
		},
		"When it is deleted and has no pod it should let go": {
			obs: ready(func(o *observed) { deleted(o.local); o.machine, o.cluster = nil, nil }), want: want{release: true},
		},
		"When it is deleted and the pod of its name is another's it should let go and leave that": {
			obs: ready(func(o *observed) {
				deleted(o.local)
				o.pod = podOf(o.local, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another" })
			}),
			want: want{release: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			p := planFor(tc.obs)
			got := want{create: p.create != nil, deletePod: p.deletePod != nil, release: p.release, provisioned: ptr.Deref(p.status.Initialization.Provisioned, false)}
			if c := conditions.Get(p.status.Conditions, infrav1.MachineReady); c != nil {
				got.ready, got.reason = c.Status, c.Reason
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestPlanNeverMakesTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flip := func(name string) bool { return rapid.Bool().Draw(t, name) }
		obs := ready(func(o *observed) {
			if flip("made") {
				made(o.local)
			}
			if flip("deleted") {
				deleted(o.local)
			}
			if flip("pod") {
				o.pod = podOf(o.local, rapid.SampledFrom([]func(*corev1.Pod){running, crashed, func(*corev1.Pod) {}}).Draw(t, "state"))
				o.pod.UID = types.UID(rapid.SampledFrom([]string{"pod-uid", "another"}).Draw(t, "uid"))
				if flip("foreign") {
					o.pod.OwnerReferences = nil
				}
			}
			if flip("paused") {
				o.local.Annotations = map[string]string{pausedAnnotation: ""}
			}
			o.bootstrap = rapid.SampledFrom([]bootstrapState{bootstrapMissing, bootstrapReady, bootstrapInvalid, bootstrapUnnamed}).Draw(t, "bootstrap")
			if flip("provisioned") {
				o.local.Status.Initialization.Provisioned = ptr.To(true)
			}
		})
		p := planFor(obs)
		switch {
		case p.create != nil && (obs.pod != nil || obs.local.Status.PodUID != "" || obs.paused() || !obs.local.DeletionTimestamp.IsZero() || obs.bootstrap != bootstrapReady):
			t.Fatal("makes a pod that it must not make")
		case p.deletePod != nil && (obs.local.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(p.deletePod, obs.local)):
			t.Fatal("ends a pod that it must not end")
		case p.release && obs.pod != nil && metav1.IsControlledBy(obs.pod, obs.local):
			t.Fatal("lets go of a machine whose pod is there")
		case ptr.Deref(obs.local.Status.Initialization.Provisioned, false) && !ptr.Deref(p.status.Initialization.Provisioned, false):
			t.Fatal("takes provisioned back")
		}
	})
}

func TestPod(t *testing.T) {
	t.Run("When a pod is made it should have no way into the management cluster", func(t *testing.T) {
		g := NewWithT(t)
		p := machinePod(localMachine(), "user-data", placement{})
		g.Expect(*p.Spec.AutomountServiceAccountToken).To(BeFalse())
		g.Expect(p.Spec.HostNetwork || p.Spec.HostPID || p.Spec.HostIPC).To(BeFalse())
		for _, v := range p.Spec.Volumes {
			g.Expect(v.HostPath).To(BeNil())
		}
		g.Expect(p.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "MACHINE_PROVIDER_ID", Value: "local://clusters-demo/workers-abc"}))
	})
	t.Run("When pods of machines have a class of their own it should be that", func(t *testing.T) {
		g := NewWithT(t)
		for class, want := range map[string]string{infrav1.MachinePriorityClass: infrav1.MachinePriorityClass, "": ""} {
			place := placementFromEnv(func(name string) string { return map[string]string{machine.EnvPriorityClass: class}[name] })
			g.Expect(machinePod(localMachine(), "user-data", place).Spec.PriorityClassName).To(Equal(want))
		}
	})
	t.Run("When bounds are given they should be limits, and requests never above them", func(t *testing.T) {
		g := NewWithT(t)
		p := machinePod(localMachine(func(m *infrav1.LocalMachine) {
			m.Spec.CPU, m.Spec.Memory, m.Spec.RootVolumeSize = ptr.To(resource.MustParse("50m")), ptr.To(resource.MustParse("2Gi")), ptr.To(resource.MustParse("10Gi"))
		}), "user-data", placement{})
		r := p.Spec.Containers[0].Resources
		g.Expect(r.Limits.Cpu().String()).To(Equal("50m"))
		g.Expect(r.Requests.Cpu().String()).To(Equal("50m"))
		g.Expect(r.Requests.Memory().String()).To(Equal("256Mi"))
		g.Expect(p.Spec.Volumes[0].EmptyDir.SizeLimit.String()).To(Equal("10Gi"))
		g.Expect(p.Spec.Containers[0].Env).To(ContainElements(corev1.EnvVar{Name: "MACHINE_CPUS", Value: "1"}, corev1.EnvVar{Name: "MACHINE_MEMORY", Value: "2147483648"}), "what the kubelet is to report")
	})
	t.Run("When names are long they should be labels all the same, and differ", func(t *testing.T) {
		g := NewWithT(t)
		a, b := labelValue(strings.Repeat("a", 100)+"1"), labelValue(strings.Repeat("a", 100)+"2")
		g.Expect(len(a)).To(BeNumerically("<=", 63))
		g.Expect(a).NotTo(Equal(b))
		g.Expect(machinePod(localMachine(func(m *infrav1.LocalMachine) { m.Name = strings.Repeat("a", 100) }), "x", placement{}).Spec.Hostname).To(BeEmpty())
	})
}

func TestCapacity(t *testing.T) {
	g := NewWithT(t)
	host := Host{CPU: resource.MustParse("8"), Memory: resource.MustParse("16Gi")}
	c := capacity(infrav1.LocalMachineSpec{CPU: ptr.To(resource.MustParse("2"))}, host)
	g.Expect(c.Cpu().String()).To(Equal("2"), "When there is a bound it should be what the node offers")
	g.Expect(c.Memory().String()).To(Equal("16Gi"), "When there is none it should be what the host has")
	g.Expect(c.Pods().Value()).To(BeEquivalentTo(110))
	c = capacity(infrav1.LocalMachineSpec{CPU: ptr.To(resource.MustParse("1500m")), Memory: ptr.To(resource.MustParse("32Gi"))}, host)
	g.Expect(c.Cpu().String()).To(Equal("2"), "When a processor is a part it should count as the kubelet counts")
	g.Expect(c.Memory().String()).To(Equal("16Gi"), "When the bound is above what there is it should be none")
}
