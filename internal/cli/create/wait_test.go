package create

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/why"
)

// settled is a cluster that can be used.
func settled(change func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	hc.Spec.Release.Image = "r:1"
	hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: "k"}
	hc.Status.Version = &hyperv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{State: configv1.CompletedUpdate}}}
	for _, name := range slices.Concat(gates, why.Stages) {
		set(hc, name, metav1.ConditionTrue, "AsExpected", "")
	}
	set(hc, hyperv1.HostedClusterProgressing, metav1.ConditionFalse, "AsExpected", "")
	if change != nil {
		change(hc)
	}
	return hc
}

func set(hc *hyperv1.HostedCluster, name string, status metav1.ConditionStatus, reason, message string) {
	cond := metav1.Condition{Type: name, Status: status, Reason: reason, Message: message, ObservedGeneration: 3}
	for i := range hc.Status.Conditions {
		if hc.Status.Conditions[i].Type == name {
			hc.Status.Conditions[i] = cond
			return
		}
	}
	hc.Status.Conditions = append(hc.Status.Conditions, cond)
}

func TestState(t *testing.T) {
	components := []hyperv1.ControlPlaneComponent{{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver"}}, {ObjectMeta: metav1.ObjectMeta{Name: "etcd"}}}
	for name, tc := range map[string]struct {
		hc   *hyperv1.HostedCluster
		want progress.State
	}{
		"When everything is there it should be done": {settled(nil), progress.Done()},
		"When the operator wasn't there yet it should say so": {
			&hyperv1.HostedCluster{}, progress.Waiting("the operator hasn't looked at it yet")},
		"When a gate is shut it should name it before what follows from it": {
			settled(func(hc *hyperv1.HostedCluster) {
				set(hc, hyperv1.ValidReleaseImage, metav1.ConditionFalse, "InvalidImage", "no such\nimage")
				set(hc, hyperv1.HostedClusterAvailable, metav1.ConditionFalse, "WaitingForAvailable", "")
			}), progress.Waiting("ValidReleaseImage=False (InvalidImage): no such image")},
		"When a stage isn't reached it should name it and the components": {
			settled(func(hc *hyperv1.HostedCluster) {
				set(hc, hyperv1.EtcdAvailable, metav1.ConditionFalse, "EtcdWaitingForQuorum", "0 of 1 members ready")
				set(hc, hyperv1.HostedClusterAvailable, metav1.ConditionFalse, "WaitingForAvailable", "")
			}), progress.Waiting("EtcdAvailable=False (EtcdWaitingForQuorum): 0 of 1 members ready; not ready: etcd, kube-apiserver")},
		"When the spec was changed since it should wait": {
			settled(func(hc *hyperv1.HostedCluster) { hc.Generation = 4 }), progress.Waiting("the operator hasn't seen the newest change of the spec yet")},
		"When the kubeconfig is missing it should say so": {
			settled(func(hc *hyperv1.HostedCluster) { hc.Status.KubeConfig = nil }), progress.Waiting("its kubeconfig isn't published yet")},
		"When the release rolls out it should name release and components": {
			settled(func(hc *hyperv1.HostedCluster) { hc.Status.Version.History[0].State = configv1.PartialUpdate }),
			progress.Waiting("release r:1 is rolling out; not ready: etcd, kube-apiserver")},
		"When an upgrade begins it should wait for it": {
			settled(func(hc *hyperv1.HostedCluster) {
				set(hc, hyperv1.HostedClusterProgressing, metav1.ConditionTrue, "Progressing", "")
			}),
			progress.Waiting("release r:1 is rolling out; not ready: etcd, kube-apiserver")},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(state(tc.hc, components)).To(Equal(tc.want))
		})
	}
}
