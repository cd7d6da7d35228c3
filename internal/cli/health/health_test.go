package health

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

func cond(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: message}
}

func TestOfHostedCluster(t *testing.T) {
	now := metav1.NewTime(time.Unix(0, 0))
	for name, tc := range map[string]struct {
		change func(*hyperv1.HostedCluster)
		want   Health
		cause  string
	}{
		"When nobody has looked it should be unknown": {func(hc *hyperv1.HostedCluster) { hc.Status.Conditions = nil }, Unknown, "hasn't looked"},
		"When all is well it should be healthy":       {func(*hyperv1.HostedCluster) {}, Healthy, ""},
		"When it is paused it should say so":          {with(hyperv1.ReconciliationActive, metav1.ConditionFalse, "paused by spec"), Paused, "paused by spec"},
		"When a gate is closed it should be blocked":  {with(hyperv1.ValidReleaseImage, metav1.ConditionFalse, "no such image"), Blocked, "no such image"},
		"When etcd isn't up at first it should be on its way": {
			with(hyperv1.EtcdAvailable, metav1.ConditionFalse, "0 of 1"), Progressing, "0 of 1",
		},
		"When etcd is lost it should be degraded": {func(hc *hyperv1.HostedCluster) {
			hc.Annotations = map[string]string{hyperv1.HasBeenAvailableAnnotation: "true"}
			with(hyperv1.EtcdAvailable, metav1.ConditionFalse, "1 of 3")(hc)
		}, Degraded, "1 of 3"},
		"When it rolls out it should be on its way": {with(hyperv1.HostedClusterProgressing, metav1.ConditionTrue, "1.36"), Progressing, "1.36"},
		"When it is being deleted it should name what holds it": {func(hc *hyperv1.HostedCluster) {
			hc.DeletionTimestamp, hc.Finalizers = &now, []string{"example.com/hold"}
		}, Deleting, "example.com/hold"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hc := &hyperv1.HostedCluster{}
			for _, c := range append(append([]string{}, Gates...), Stages...) {
				hc.Status.Conditions = append(hc.Status.Conditions, cond(c, metav1.ConditionTrue, ""))
			}
			tc.change(hc)
			f := OfHostedCluster(hc)
			g.Expect(f.Health).To(Equal(tc.want))
			g.Expect(f.Cause).To(ContainSubstring(tc.cause))
		})
	}
}

func with(kind string, status metav1.ConditionStatus, message string) func(*hyperv1.HostedCluster) {
	return func(hc *hyperv1.HostedCluster) {
		for i := range hc.Status.Conditions {
			if hc.Status.Conditions[i].Type == kind {
				hc.Status.Conditions[i] = cond(kind, status, message)
				return
			}
		}
		hc.Status.Conditions = append(hc.Status.Conditions, cond(kind, status, message))
	}
}

func TestOthers(t *testing.T) {
	pool := func(kind string, status corev1.ConditionStatus) *hyperv1.NodePool {
		return &hyperv1.NodePool{Status: hyperv1.NodePoolStatus{Conditions: []hyperv1.NodePoolCondition{{Type: kind, Status: status, Reason: "R", Message: "m"}}}}
	}
	machine := func(phase clusterv1.MachinePhase, node string, ready metav1.ConditionStatus) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		m.Status.Phase, m.Status.NodeRef.Name = string(phase), node
		m.Status.Conditions = []metav1.Condition{cond(clusterv1.MachineReadyCondition, ready, "m")}
		return m
	}
	pkg := func(conds ...metav1.Condition) *packagesv1.Package {
		return &packagesv1.Package{Status: packagesv1.PackageStatus{Conditions: conds}}
	}
	for name, tc := range map[string]struct{ got, want Health }{
		"When a pool rolls out it should be on its way":         {OfNodePool(pool(hyperv1.NodePoolUpdatingConfigConditionType, corev1.ConditionTrue)).Health, Progressing},
		"When a pool's release is invalid it should be blocked": {OfNodePool(pool(hyperv1.NodePoolValidReleaseImageConditionType, corev1.ConditionFalse)).Health, Blocked},
		"When a pool's nodes are lost it should be degraded":    {OfNodePool(pool(hyperv1.NodePoolAllNodesHealthyConditionType, corev1.ConditionFalse)).Health, Degraded},
		"When a pool is ready it should be healthy":             {OfNodePool(pool(hyperv1.NodePoolReadyConditionType, corev1.ConditionTrue)).Health, Healthy},
		"When a machine runs it should be healthy":              {OfMachine(machine(clusterv1.MachinePhaseRunning, "n", metav1.ConditionTrue)).Health, Healthy},
		"When a machine's node is lost it should be degraded":   {OfMachine(machine(clusterv1.MachinePhaseRunning, "n", metav1.ConditionFalse)).Health, Degraded},
		"When a machine boots it should be on its way":          {OfMachine(machine(clusterv1.MachinePhaseProvisioning, "", metav1.ConditionFalse)).Health, Progressing},
		"When a machine failed it should be degraded":           {OfMachine(machine(clusterv1.MachinePhaseFailed, "", metav1.ConditionFalse)).Health, Degraded},
		"When a package is invalid it should be blocked":        {OfPackage(pkg(cond(packagesv1.ConditionInvalid, metav1.ConditionTrue, "m"))).Health, Blocked},
		"When a package is up it should be healthy":             {OfPackage(pkg(cond(packagesv1.ConditionAvailable, metav1.ConditionTrue, "m"))).Health, Healthy},
		"When a package is down it should be degraded":          {OfPackage(pkg(cond(packagesv1.ConditionAvailable, metav1.ConditionFalse, "m"))).Health, Degraded},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(tc.got).To(Equal(tc.want)) })
	}
}

func TestLine(t *testing.T) {
	t.Run("When a message would steer a terminal it should be plain, on one line and short", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(Line("a\n\tb \x1b[31mred")).To(Equal("a b \uFFFD[31mred"))
		g.Expect(len(Line(strings.Repeat("ä", 10_000)))).To(BeNumerically("<", maxCause+10))
	})
}
