package why_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/why"
)

func isNew(w *world) { w.HostedClusters[0].CreationTimestamp = ago(5 * time.Minute) }

func wasUp(w *world) {
	w.HostedClusters[0].Annotations[hyperv1.HasBeenAvailableAnnotation] = "true"
}

func all(edits ...func(*world)) func(*world) {
	return func(w *world) {
		for _, e := range edits {
			e(w)
		}
	}
}

func TestOf(t *testing.T) {
	hostedCluster := func(w *world) metav1.Object { return &w.HostedClusters[0] }
	pool := func(w *world) metav1.Object { return &w.NodePools[0] }
	aMachine := func(w *world) metav1.Object { return &w.Machines[0] }
	aPackage := func(w *world) metav1.Object { return &w.Packages[0] }
	rollout := func(w *world) metav1.Object { return &w.HostedClusterPackages[0] }
	revision := func(w *world) metav1.Object { return &w.ObjectSets[0] }
	aPod := func(w *world) metav1.Object { return &w.Pods[0] }
	waitsForEtcd := hc(hyperv1.HostedClusterAvailable, no, hyperv1.EtcdWaitingForQuorumReason, "0 of 1 members")
	for name, tc := range map[string]struct {
		of     func(*world) metav1.Object
		change func(*world)
		want   why.Health
		cause  string
	}{
		"When all is well it should be healthy": {hostedCluster, all(), why.Healthy, ""},
		"When nobody has looked it should be unknown": {hostedCluster, func(w *world) {
			w.HostedClusters[0].Status.Conditions = nil
			w.HostedClusters[0].CreationTimestamp = ago(time.Second)
		}, why.Unknown, "no operator has looked"},
		"When nobody has looked for long it should be degraded": {hostedCluster, func(w *world) { w.HostedClusters[0].Status.Conditions = nil }, why.Degraded, "though it had time"},
		"When it is paused it should say so":                    {hostedCluster, hc(hyperv1.ReconciliationActive, no, "Paused", "paused by spec"), why.Paused, "paused by spec"},
		"When it sleeps it should be paused": {hostedCluster, all(wasUp, hc(hyperv1.HostedClusterAvailable, no, hyperv1.HostedClusterHibernated, "it hibernates"),
			hc(hyperv1.HostedClusterHibernated, yes, hyperv1.AsleepReason, "nothing runs")), why.Paused, "nothing runs"},
		"When a gate is closed it should be blocked":          {hostedCluster, hc(hyperv1.ValidReleaseImage, no, "NotFound", "no such image"), why.Blocked, "no such image"},
		"When etcd isn't up at first it should be on its way": {hostedCluster, all(isNew, waitsForEtcd), why.Progressing, "0 of 1"},
		"When etcd never came up it should be degraded":       {hostedCluster, waitsForEtcd, why.Degraded, "0 of 1"},
		"When etcd is lost soon after it should be degraded":  {hostedCluster, all(isNew, wasUp, waitsForEtcd), why.Degraded, "0 of 1"},
		"When it rolls out it should be on its way":           {hostedCluster, hc(hyperv1.HostedClusterProgressing, yes, "R", "1.36"), why.Progressing, "1.36"},
		"When a field is not heeded it should be healthy":     {hostedCluster, hc(hyperv1.AllFieldsHeeded, no, hyperv1.FieldsNotHeededReason, "spec.fips"), why.Healthy, ""},
		"When it rolls out and a field is not heeded, too, it should be on its way": {hostedCluster, all(hc(hyperv1.AllFieldsHeeded, no, "R", "spec.fips"),
			hc(hyperv1.HostedClusterProgressing, yes, "R", "1.36")), why.Progressing, "1.36"},
		"When it is being deleted it should name what holds it": {hostedCluster, func(w *world) { deleted(&w.HostedClusters[0].ObjectMeta, time.Hour, "example.com/hold") }, why.Deleting, "example.com/hold"},

		"When a pool is ready it should be healthy":              {pool, all(), why.Healthy, ""},
		"When a pool rolls out it should be on its way":          {pool, np(hyperv1.NodePoolUpdatingConfigConditionType, yes, "R", "m"), why.Progressing, "m"},
		"When a pool's release is invalid it should be blocked":  {pool, np(hyperv1.NodePoolValidReleaseImageConditionType, no, "R", "m"), why.Blocked, "m"},
		"When a pool's nodes are just coming it should progress": {pool, np(hyperv1.NodePoolAllNodesHealthyConditionType, no, "R", "m"), why.Progressing, "m"},
		"When a pool's nodes are lost it should be degraded": {pool, func(w *world) {
			np(hyperv1.NodePoolAllNodesHealthyConditionType, no, "R", "m")(w)
			conds := w.NodePools[0].Status.Conditions
			conds[len(conds)-1].LastTransitionTime = ago(time.Hour)
		}, why.Degraded, "m"},

		"When a machine's node is lost it should be degraded": {aMachine, mc(clusterv1.MachineNodeHealthyCondition, no, "R", "m"), why.Degraded, "m"},
		"When a machine failed it should be degraded":         {aMachine, func(w *world) { w.Machines[0].Status.Phase = "Failed" }, why.Degraded, "has failed"},
		"When a machine boots it should be on its way": {aMachine, func(w *world) {
			w.Machines[0].Status.NodeRef.Name = ""
			w.Machines[0].Status.Conditions[0].LastTransitionTime = ago(time.Minute)
		}, why.Progressing, "is booting"},
		"When a machine runs it should be healthy": {aMachine, all(), why.Healthy, ""},

		"When a package is up it should be healthy":      {aPackage, all(), why.Healthy, ""},
		"When a package is invalid it should be blocked": {aPackage, pk(packagesv1.ConditionInvalid, yes, "R", "m"), why.Blocked, "m"},
		"When a package is down it should be degraded":   {aPackage, pk(packagesv1.ConditionAvailable, no, "R", "m"), why.Degraded, "m"},
		"When a package comes up it should be on its way": {aPackage, all(pk(packagesv1.ConditionAvailable, no, "R", "m"), func(w *world) {
			pk(packagesv1.ConditionProgressing, yes, "R", "p")(w)
			young(&w.Packages[0].Status.Conditions)
		}), why.Progressing, "m"},
		"When a package is paused it should be paused": {aPackage, pk(packagesv1.ConditionPaused, yes, "R", "m"), why.Paused, "m"},
		"When a revision is not available it should say so": {revision, func(w *world) {
			set(&w.ObjectSets[0].Status.Conditions, packagesv1.ConditionAvailable, no, "ProbeFailure", "m")
		}, why.Degraded, "m"},
		"When a rollout soaks it should be on its way": {rollout, fl(packagesv1.ConditionProgressing, yes, "1/2. It soaks until noon."), why.Progressing, "soaks"},
		"When a rollout is held it should say by whom": {rollout, func(w *world) { w.HostedClusterPackages[0].Annotations[packagesv1.RolloutPausedAnnotation] = "true" }, why.Paused, "the rollout is paused"},

		"When a pod runs it should be healthy":     {aPod, all(), why.Healthy, ""},
		"When a pod crashes it should be degraded": {aPod, func(w *world) { crash(1, "Error")(&w.Pods[0]) }, why.Degraded, "does not stay up"},
		"When a pod is starting it should be on its way": {aPod, func(w *world) {
			w.Pods[0].Status.Phase = corev1.PodPending
			w.Pods[0].CreationTimestamp = ago(time.Second)
		}, why.Progressing, "is starting"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld()
			if tc.of(w) == metav1.Object(&w.HostedClusterPackages[0]) {
				fl(packagesv1.ConditionAvailable, yes, "")(w)
			}
			tc.change(w)
			f := why.Of(tc.of(w), noon)
			g.Expect(f.Health).To(Equal(tc.want), f.Cause)
			g.Expect(f.Cause).To(ContainSubstring(tc.cause))
			g.Expect(f.Cause == "").To(Equal(f.Health.Well()))
		})
	}
}

// young has the last condition begin just now.
func young(conds *[]metav1.Condition) { (*conds)[len(*conds)-1].LastTransitionTime = ago(time.Second) }

func TestJudge(t *testing.T) {
	t.Run("When many objects of a snapshot are judged each should get the cause that Explain gives it", func(t *testing.T) {
		for _, f := range faults {
			g := NewWithT(t)
			w := newWorld()
			f.inject(w)
			judge := why.NewJudge(&w.Snapshot)
			for _, of := range []why.Object{demo, workers, machine, addon, fleet, demo} {
				a, found := why.Explain(&w.Snapshot, of), judge.Look(of)
				if found.Health == why.Unknown {
					continue // nobody has said anything about it yet
				}
				g.Expect(found.Health.Well()).To(Equal(a.State == why.Well), "%s %s: %s, %s", f.name, of, found.Health, a.Cause)
				if a.State != why.Well {
					g.Expect(found.Cause).To(Equal(a.Cause), "%s %s", f.name, of)
				}
			}
		}
	})
	t.Run("When an object is not there it should be unknown", func(t *testing.T) {
		NewWithT(t).Expect(why.NewJudge(&why.Snapshot{Now: noon}).Look(demo).Health).To(Equal(why.Unknown))
	})
}
