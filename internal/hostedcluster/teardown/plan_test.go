package teardown

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/hostedclustertest"

	. "github.com/onsi/gomega"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }

func controlPlane(deleted *metav1.Time) *hyperv1.HostedControlPlane {
	return &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo", DeletionTimestamp: deleted,
		Finalizers: []string{hyperv1.HostedControlPlaneFinalizer}}}
}

func operatorDeployment(available int32) *appsv1.Deployment {
	return &appsv1.Deployment{Status: appsv1.DeploymentStatus{AvailableReplicas: available}}
}

// endingIn is a pod with a grace period in seconds; nil is one that is not being deleted yet.
func endingIn(seconds *int64) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "p", DeletionGracePeriodSeconds: seconds}}
}

// toldToEnd is a pod that should have ended a second after that.
func toldToEnd(at time.Time) metav1.PartialObjectMetadata {
	pod := endingIn(ptr.To[int64](1))
	pod.DeletionTimestamp = &metav1.Time{Time: at.Add(time.Second)}
	return pod
}

func TestPlanTeardown(t *testing.T) {
	hc := hostedclustertest.Example("clusters", "x")
	ours := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}}
	terminating := ours.DeepCopy()
	terminating.DeletionTimestamp = ago(time.Minute)
	terminating.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Some resources are remaining: pods. has 1 resource instances"}}
	poked, fresh := terminating.DeepCopy(), terminating.DeepCopy()
	poked.Annotations[pokedAnnotation] = "true"
	fresh.DeletionTimestamp = ago(pokeAfter - time.Second)
	pool := hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "np"}}

	for name, tc := range map[string]struct {
		left    Observed
		deletes int
		strips  bool
		hurries int
		empties bool
		pokes   bool
		waits   string // empty: nothing is left
	}{
		"When nothing is left it should be done":                    {left: Observed{}},
		"When there are NodePools it should delete them first":      {left: Observed{pools: []hyperv1.NodePool{pool}, hcp: controlPlane(nil), namespace: ours}, deletes: 1, waits: "NodePool clusters/np"},
		"When the control plane lives it should delete it":          {left: Observed{hcp: controlPlane(nil), namespace: ours}, deletes: 1, waits: "HostedControlPlane clusters-demo/demo"},
		"When the operator works it should be given time":           {left: Observed{hcp: controlPlane(ago(10 * time.Second)), operator: operatorDeployment(1), contained: true}, waits: "being deleted since 2026-01-02T11:59:50Z (the control-plane-operator removes its finalizer"},
		"When the operator works but is stuck it should go on":      {left: Observed{hcp: controlPlane(ago(operatorStuck)), operator: operatorDeployment(1), contained: true}, strips: true, waits: "HostedControlPlane"},
		"When the operator does not run it should wait a moment":    {left: Observed{hcp: controlPlane(ago(3 * time.Second)), operator: operatorDeployment(0), contained: true}, waits: "does not run, so its finalizer is removed soon"},
		"When the operator does not run for long it should go on":   {left: Observed{hcp: controlPlane(ago(removerDown)), operator: operatorDeployment(0), contained: true}, strips: true, waits: "HostedControlPlane"},
		"When there is no operator it should go on soon":            {left: Observed{hcp: controlPlane(ago(removerGone)), contained: true}, strips: true, waits: "HostedControlPlane"},
		"When things lie outside the namespace it should only wait": {left: Observed{hcp: controlPlane(ago(time.Hour))}, waits: "HostedControlPlane"},
		"When only the namespace is left it should delete it":       {left: Observed{namespace: ours}, deletes: 1, empties: true, waits: "Namespace clusters-demo"},
		"When pods are left in it they should end while the controller of namespaces waits": {left: Observed{namespace: ours, contained: true,
			pods: []metav1.PartialObjectMetadata{endingIn(nil), endingIn(ptr.To[int64](1))}}, empties: true, hurries: 1, deletes: 1, waits: "Namespace clusters-demo"},
		"When pods may take their time they should end before the namespace is deleted": {left: Observed{namespace: ours,
			pods: []metav1.PartialObjectMetadata{endingIn(nil), endingIn(ptr.To[int64](1))}}, empties: true, waits: "pods p, p to end"},
		"When pods that were told to end do not it should delete the namespace all the same": {left: Observed{namespace: ours,
			pods: []metav1.PartialObjectMetadata{toldToEnd(noon.Add(-time.Minute))}}, empties: true, deletes: 1, waits: "Namespace clusters-demo"},
		"When pods ended too late for the controller of namespaces it should be called": {left: Observed{namespace: terminating, contained: true}, pokes: true, waits: "Namespace clusters-demo"},
		"When the controller was called it should not be called again":                  {left: Observed{namespace: poked, contained: true}, waits: "Namespace clusters-demo"},
		"When the controller has not looked yet it should be left alone":                {left: Observed{namespace: fresh, contained: true}, waits: "Namespace clusters-demo"},
		"When the namespace is going it should say what is left in it":                  {left: Observed{namespace: terminating}, waits: "Some resources are remaining: pods"},
		"When pods end slowly it should not give them that long": {left: Observed{namespace: terminating, contained: true,
			pods: []metav1.PartialObjectMetadata{endingIn(nil), endingIn(ptr.To[int64](135)), endingIn(ptr.To[int64](1))}}, hurries: 2, waits: "Namespace clusters-demo"},
		"When things lie outside the namespace its pods should have their time": {left: Observed{namespace: terminating,
			pods: []metav1.PartialObjectMetadata{endingIn(ptr.To[int64](135))}}, waits: "Namespace clusters-demo"},
		"When the namespace is not ours it should leave it alone": {left: Observed{namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo"}}}},
		"When the namespace shall stay it should leave it alone": {left: Observed{namespace: ours, hc: hostedclustertest.Example("clusters", "x", func(hc *hyperv1.HostedCluster) {
			hc.Annotations[hyperv1.SkipControlPlaneNamespaceDeletionAnnotation] = "true"
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.left.hc == nil {
				tc.left.hc = hc
			}
			got := PlanFor(tc.left, noon)
			g.Expect(got.delete).To(HaveLen(tc.deletes))
			g.Expect(got.hurry).To(HaveLen(tc.hurries))
			g.Expect(got.empty).To(Equal(tc.empties))
			g.Expect(got.poke).To(Equal(tc.pokes))
			g.Expect(got.stripFinalizers).To(Equal(tc.strips))
			g.Expect(got.Done()).To(Equal(tc.waits == ""))
			g.Expect(fmt.Sprint(got.Waiting)).To(ContainSubstring(tc.waits))
		})
	}
}

func TestRecheckOfNamespace(t *testing.T) {
	left := Observed{hc: hostedclustertest.Example("clusters", "x"), contained: true,
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}}}
	t.Run("When the namespace has just been deleted it should be looked at again soon", func(t *testing.T) {
		left.namespace.DeletionTimestamp = ago(3 * time.Second)
		NewWithT(t).Expect(PlanFor(left, noon).RecheckAfter).To(Equal(emptyPoll))
	})
	t.Run("When something holds the namespace it should not be looked at each second for ever", func(t *testing.T) {
		left.namespace.DeletionTimestamp = ago(emptyLongest)
		NewWithT(t).Expect(PlanFor(left, noon).RecheckAfter).To(Equal(deletionPoll))
	})
}

// A deletion on a contained platform ends for every history of its operator: whatever is left, some move follows that does not depend on it.
func TestTeardownEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := Observed{hc: hostedclustertest.Example("clusters", "x"), contained: true, hcp: controlPlane(nil),
			namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}}}
		now := noon
		for range 100 {
			switch rapid.IntRange(0, 2).Draw(t, "operator") {
			case 0:
				left.operator = nil
			case 1:
				left.operator = operatorDeployment(0)
			case 2:
				left.operator = operatorDeployment(1)
			}
			next := PlanFor(left, now)
			if next.Done() {
				if now.Sub(noon) > time.Minute {
					t.Fatalf("took %v", now.Sub(noon))
				}
				return
			}
			for _, obj := range next.delete {
				switch obj.(type) {
				case *hyperv1.HostedControlPlane:
					left.hcp.DeletionTimestamp = &metav1.Time{Time: now}
				case *corev1.Namespace:
					left.namespace = nil
				}
			}
			if next.stripFinalizers {
				left.hcp = nil
			}
			now = now.Add(next.RecheckAfter)
		}
		t.Fatal("the deletion does not end")
	})
}

func TestTeardownOfCluster(t *testing.T) {
	deleted := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	at := func(seconds int) time.Time { return deleted.Add(time.Duration(seconds) * time.Second) }
	left := func(change func(*Observed)) Observed {
		r := Observed{
			hc:        &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo"}},
			namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-demo", Annotations: map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo"}}},
			cluster:   &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo-abcde"}},
			manager:   &appsv1.Deployment{Status: appsv1.DeploymentStatus{AvailableReplicas: 1}},
			contained: true,
		}
		change(&r)
		return r
	}
	being := func(r *Observed) { r.cluster.DeletionTimestamp = &deleted }
	for name, tc := range map[string]struct {
		left  Observed
		after int
		check func(Gomega, Plan)
	}{
		"When the cluster is still there it should delete it and the control plane, and keep the namespace": {
			left: left(func(r *Observed) { r.hcp = &hyperv1.HostedControlPlane{} }),
			check: func(g Gomega, p Plan) {
				g.Expect(p.delete).To(HaveLen(2))
				g.Expect(p.Waiting).To(HaveLen(2))
			}},
		"When it is paused it should be let go on": {
			left:  left(func(r *Observed) { r.cluster.Spec.Paused = ptr.To(true) }),
			check: func(g Gomega, p Plan) { g.Expect(p.unpauseCluster).To(BeTrue()) }},
		"When the manager works it should have its time": {
			left: left(being), after: 60,
			check: func(g Gomega, p Plan) { g.Expect(p.stripCluster).To(BeFalse()) }},
		"When the manager works and does not remove the finalizer it should be removed": {
			left: left(being), after: 180,
			check: func(g Gomega, p Plan) { g.Expect(p.stripCluster).To(BeTrue()) }},
		"When the manager is gone it should not be waited for": {
			left: left(func(r *Observed) { being(r); r.manager = nil }), after: 2,
			check: func(g Gomega, p Plan) { g.Expect(p.stripCluster).To(BeTrue()) }},
		"When the control plane is still there the manager should be left alone": {
			left: left(func(r *Observed) { being(r); r.manager = nil; r.hcp = &hyperv1.HostedControlPlane{} }), after: 600,
			check: func(g Gomega, p Plan) { g.Expect(p.stripCluster).To(BeFalse()) }},
		"When the machines are outside of the namespace nothing should be forced": {
			left: left(func(r *Observed) { being(r); r.manager = nil; r.contained = false }), after: 600,
			check: func(g Gomega, p Plan) { g.Expect(p.stripCluster).To(BeFalse()) }},
		"When machines have to go with the cluster Cluster API should know, for it drains none then": {
			left: left(func(r *Observed) {
				r.hcp = &hyperv1.HostedControlPlane{}
				r.pools = []hyperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}}
			}),
			check: func(g Gomega, p Plan) {
				g.Expect(p.delete).To(ConsistOf(BeAssignableToTypeOf(&clusterv1.Cluster{})))
				g.Expect(p.Waiting).To(ConsistOf(ContainSubstring("NodePool")))
			}},
		"When machines wait for a manager that does not run they should not for ever": {
			left: left(func(r *Observed) {
				r.manager.Status.AvailableReplicas = 0
				r.pools = []hyperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}}
			}), after: 60,
			check: func(g Gomega, p Plan) { g.Expect(p.orphans).To(BeTrue()) }},
		"When all that remove machines work they should have all the time they need": {
			left: left(func(r *Observed) {
				r.provider = r.manager
				r.pools = []hyperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}}
			}), after: 3600,
			check: func(g Gomega, p Plan) { g.Expect(p.orphans).To(BeFalse()) }},
		"When the namespace ends with those who would remove machines they should not be waited for": {
			left:  left(func(r *Observed) { r.cluster = nil; r.namespace.DeletionTimestamp = &deleted }),
			check: func(g Gomega, p Plan) { g.Expect(p.orphans).To(BeTrue()) }},
		"When it is gone the namespace should go": {
			left: left(func(r *Observed) { r.cluster = nil }),
			check: func(g Gomega, p Plan) {
				g.Expect(p.delete).To(ConsistOf(BeAssignableToTypeOf(&corev1.Namespace{})))
			}},
	} {
		t.Run(name, func(t *testing.T) { tc.check(NewWithT(t), PlanFor(tc.left, at(tc.after))) })
	}
}
