package machines_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/nodepool/machines"
	"hcp.internal/platform/internal/platform/machine"
)

func TestReplicas(t *testing.T) {
	scaled := func(least, most int32) *hyperv1.NodePoolSpec {
		return &hyperv1.NodePoolSpec{AutoScaling: &hyperv1.NodePoolAutoScaling{Min: &least, Max: most}}
	}
	for name, tc := range map[string]struct {
		spec  *hyperv1.NodePoolSpec
		live  *int32
		floor int32
		want  int32
	}{
		"When nothing is asked for it should be none":                                {spec: &hyperv1.NodePoolSpec{}, live: ptr.To[int32](3), want: 0},
		"When a number is asked for it should be that":                               {spec: &hyperv1.NodePoolSpec{Replicas: ptr.To[int32](4)}, live: ptr.To[int32](3), want: 4},
		"When a scaled pool is new it should begin with the least":                   {spec: scaled(2, 5), want: 2},
		"When the autoscaler keeps to the bounds it should be left alone":            {spec: scaled(2, 5), live: ptr.To[int32](4), want: 4},
		"When there are more than allowed it should be the most":                     {spec: scaled(2, 5), live: ptr.To[int32](9), want: 5},
		"When there are fewer than allowed it should be the least":                   {spec: scaled(2, 5), live: ptr.To[int32](0), want: 2},
		"When a pool may shrink to none and can start again it should be left alone": {spec: scaled(0, 5), live: ptr.To[int32](0), want: 0},
		"When a pool could not start again it should keep one":                       {spec: scaled(0, 5), live: ptr.To[int32](0), floor: 1, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(machines.Replicas(tc.spec, tc.live, tc.floor)).To(Equal(tc.want))
		})
	}
}

func TestNames(t *testing.T) {
	t.Run("When two long pools differ they should not share a selector, and it should be a label", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			prefix := rapid.StringMatching(`[a-z]{30,60}`).Draw(t, "prefix")
			a, b := machines.Selector("demo-abcde", "demo", prefix+"-a"), machines.Selector("demo-abcde", "demo", prefix+"-b")
			if a == b || len(a) > 43 || len(validation.IsQualifiedName(a)) > 0 || len(validation.IsValidLabelValue(a)) > 0 {
				t.Fatalf("%q %q", a, b)
			}
		})
	})
	t.Run("When a template has another content it should have another name", func(t *testing.T) {
		g := NewWithT(t)
		a, err := machines.TemplateName("workers", map[string]string{"a": "1"})
		g.Expect(err).NotTo(HaveOccurred())
		b, err := machines.TemplateName("workers", map[string]string{"a": "2"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a).To(And(HavePrefix("workers-"), Not(Equal(b))))
		long, err := machines.TemplateName(strings.Repeat("x", 253), 1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(long)).To(BeNumerically("<=", 253))
	})
}

func TestCapacity(t *testing.T) {
	t.Run("When an autoscaler is told what a machine offers it should be sorted and complete", func(t *testing.T) {
		spec := &hyperv1.NodePoolSpec{Arch: "amd64", NodeLabels: map[string]string{"zone": "a"}, Taints: []hyperv1.Taint{{Key: "b", Value: "v", Effect: "NoSchedule"}, {Key: "a", Effect: "NoExecute"}}}
		NewWithT(t).Expect(machines.CapacityAnnotations(spec, &machine.Capacity{CPU: resource.MustParse("4"), Memory: resource.MustParse("8Gi")})).To(Equal(map[string]string{
			"machine.openshift.io/vCPU": "4", "machine.openshift.io/memoryMb": "8192",
			"capacity.cluster-autoscaler.kubernetes.io/labels": "kubernetes.io/arch=amd64,zone=a",
			"capacity.cluster-autoscaler.kubernetes.io/taints": "a:NoExecute,b=v:NoSchedule",
		}))
	})
}

func TestHealthCheckSettings(t *testing.T) {
	const timeout, most = "hypershift.openshift.io/machine-health-check-timeout", "hypershift.openshift.io/machine-health-check-max-unhealthy"
	t.Run("When both override a time that of the pool should win", func(t *testing.T) {
		g := NewWithT(t)
		s, err := machines.HealthCheckSettingsFor(true, map[string]string{timeout: "1m"}, map[string]string{timeout: "2m", most: "40%"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Timeout.String()).To(Equal("1m0s"))
		g.Expect(s.MaxUnhealthy).To(Equal(intstr.FromString("40%")))
	})
	t.Run("When machines boot slowly they should have twice the time", func(t *testing.T) {
		s, err := machines.HealthCheckSettingsFor(true, nil, nil)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Timeout.String()).To(Equal("16m0s"))
	})
	t.Run("When an override is wrong it should be named", func(t *testing.T) {
		_, err := machines.HealthCheckSettingsFor(false, map[string]string{most: "lots"}, nil)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(most)))
	})
}

func TestAggregate(t *testing.T) {
	bad := func(name, reason, message string) clusterv1.Machine {
		return clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: clusterv1.MachineStatus{Conditions: []metav1.Condition{
			{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionFalse, Reason: "NotReady", Message: "x"},
			{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}}}}
	}
	t.Run("When many machines have one trouble it should name some and count the rest", func(t *testing.T) {
		g := NewWithT(t)
		var list []clusterv1.Machine
		for i := range 9 {
			list = append(list, bad(fmt.Sprintf("m%d", i), "PodPending", "Insufficient memory"))
		}
		f := machines.AllReady(list, 9, nil)
		g.Expect(f.Reason).To(Equal("PodPending"))
		g.Expect(f.Message).To(And(HavePrefix("9 of 9 machines are not ready\nMachine m0: PodPending: Insufficient memory"), HaveSuffix("and 4 more with reason PodPending")))
	})
	t.Run("When there is no machine it should depend on whether there is to be one", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(machines.AllReady(nil, 0, nil).Status).To(Equal(metav1.ConditionTrue))
		g.Expect(machines.AllReady(nil, 1, nil).Reason).To(Equal("NotFound"))
	})
	t.Run("When a node lies about its version it should not count", func(t *testing.T) {
		m := clusterv1.Machine{}
		NewWithT(t).Expect(machines.NodeVersions([]clusterv1.Machine{m}, "1.36.3")).To(BeEmpty())
	})
	t.Run("When all addresses of a machine lie in the pod network it should name it", func(t *testing.T) {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Status: clusterv1.MachineStatus{Addresses: clusterv1.MachineAddresses{{Address: "10.132.0.5"}, {Address: "fe80::1"}, {Address: "m"}}}}
		NewWithT(t).Expect(machines.NetworkConflict([]clusterv1.Machine{m}, []netip.Prefix{netip.MustParsePrefix("10.132.0.0/14")})).To(Equal("m"))
	})
}

func TestMaxUnavailable(t *testing.T) {
	for name, tc := range map[string]struct {
		limit    *intstr.IntOrString
		replicas int32
		want     int
	}{
		"When nothing is said it should be one":             {nil, 5, 1},
		"When a percentage rounds to none it should be one": {ptr.To(intstr.FromString("10%")), 5, 1},
		"When it is a percentage it should be rounded down": {ptr.To(intstr.FromString("50%")), 5, 2},
		"When it is a number it should be that":             {ptr.To(intstr.FromInt32(3)), 5, 3},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(machines.MaxUnavailable(&hyperv1.InPlaceUpgrade{MaxUnavailable: tc.limit}, tc.replicas)).To(Equal(tc.want))
		})
	}
}

func TestExplained(t *testing.T) {
	list := []clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: clusterv1.MachineStatus{Conditions: []metav1.Condition{
		{Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "InstanceProvisionFailed", Message: "0 of 2 completed"}}}}}
	t.Run("When the platform has words for a machine they should be told", func(t *testing.T) {
		f := machines.AllReady(list, 1, func(m *clusterv1.Machine) string { return m.Name + " is refused" })
		g := NewWithT(t)
		g.Expect(f.Reason).To(Equal("InstanceProvisionFailed"))
		g.Expect(f.Message).To(HaveSuffix("Machine a: InstanceProvisionFailed: a is refused"))
	})
	t.Run("When it has none the Machine's own should stay", func(t *testing.T) {
		f := machines.AllReady(list, 1, func(*clusterv1.Machine) string { return "" })
		NewWithT(t).Expect(f.Message).To(HaveSuffix("Machine a: InstanceProvisionFailed: "))
	})
}
