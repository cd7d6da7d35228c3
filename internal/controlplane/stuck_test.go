package controlplane

import (
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/testenv"
)

// at is the release of the tests as another version.
func at(version, digit string) *release.Release {
	r := testRelease()
	r.Version, r.Image = version, "10.244.0.1:5000/hypershift/release:"+version
	for tag := range r.Images {
		r.Images[tag] = "10.244.0.1:5000/hypershift/" + tag + "@sha256:" + strings.Repeat(digit, 64)
	}
	return r
}

func (w *world) upgrade(to *release.Release) {
	w.release, w.hcp.Spec.ReleaseImage = to, to.Image
}

// stuck plays a Deployment whose first new pod does not become ready, until its deadline and after it: the old ones go on.
func (w *world) stuck(name string) {
	w.t.Helper()
	d := &appsv1.Deployment{}
	w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: name}, d)
	n := ptr.Deref(d.Spec.Replicas, 1)
	unavailable := int32(0)
	if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil {
		unavailable = rolling.MaxUnavailable.IntVal
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n + 1 - unavailable, UpdatedReplicas: 1, ReadyReplicas: n - unavailable, AvailableReplicas: n - unavailable, UnavailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "ReplicaSet has timed out progressing."},
		},
	}
	w.status(d)
}

// images are those of all Deployments.
func (w *world) images() map[string]string {
	w.t.Helper()
	list := &appsv1.DeploymentList{}
	if err := w.c.List(w.t.Context(), list, client.InNamespace(w.hcp.Namespace)); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range list.Items {
		out[d.Name] = d.Spec.Template.Spec.Containers[0].Image
	}
	return out
}

// TestStuckRollout has a new kube-apiserver that never becomes ready, such as one that refuses its configuration.
func TestStuckRollout(t *testing.T) {
	for name, tc := range map[string]struct {
		mutate []func(*hyperv1.HostedControlPlane)
		then   func(t *testing.T, w *world, before map[string]string)
	}{
		"When the only one does not become ready it should hold everything back, and let the user go back":           {nil, goBack},
		"When the first of three does not become ready it should hold everything back, and go on to a newer release": {[]func(*hyperv1.HostedControlPlane){highlyAvailable}, goOn},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), newWorld(t, tc.mutate...)
			w.settle()
			before := w.images()
			w.upgrade(at("1.37.0", "d"))
			w.mustPass()
			w.rolledOut("etcd")
			w.mustPass()
			w.stuck("kube-apiserver")
			w.mustPass()

			d := &appsv1.Deployment{}
			w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: "kube-apiserver"}, d)
			g.Expect(d.Spec.Strategy.Type).NotTo(Equal(appsv1.RecreateDeploymentStrategyType))
			g.Expect(d.Spec.Strategy.RollingUpdate).NotTo(BeNil())
			g.Expect(ptr.Deref(d.Spec.Replicas, 1)-d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal).To(BeNumerically(">=", 1), "somebody has to serve")
			want := maps.Clone(before)
			want["kube-apiserver"] = w.release.Images["kube-apiserver"]
			want["ignition-server"] = w.release.Images["controlplane-operator"] // which asks the management cluster alone
			g.Expect(w.images()).To(Equal(want), "what depends on it stays as it is")
			kas := &hyperv1.ControlPlaneComponent{}
			w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: "kube-apiserver"}, kas)
			complete := conditions.Get(kas.Status.Conditions, component.RolloutComplete)
			g.Expect(complete).NotTo(BeNil())
			g.Expect(string(complete.Status)+" "+kas.Status.Version).To(Equal("False 1.36.3"), "%v", complete)
			g.Expect(conditions.IsTrue(kas.Status.Conditions, component.Available)).To(BeTrue(), "the old ones serve")
			testenv.ExpectQuiet(t, w.c, w.pass)
			tc.then(t, w, before)
		})
	}
}

// goBack expects the old version everywhere, and that nothing else was rolled for it.
func goBack(t *testing.T, w *world, before map[string]string) {
	g := NewWithT(t)
	generation := func(name string) int64 {
		d := &appsv1.Deployment{}
		w.get(client.ObjectKey{Namespace: w.hcp.Namespace, Name: name}, d)
		return d.Generation
	}
	scheduler := generation("kube-scheduler")
	w.upgrade(testRelease())
	w.settle()
	g.Expect(w.images()).To(Equal(before))
	g.Expect(generation("kube-scheduler")).To(Equal(scheduler))
	g.Expect(w.why()).To(Equal(everywhere(component.AsExpectedReason + " 1.36.3")))
	testenv.ExpectQuiet(t, w.c, w.pass)
}

// goOn expects that what is stuck keeps nobody from a release that mends it, etcd first as always.
func goOn(t *testing.T, w *world, _ map[string]string) {
	g := NewWithT(t)
	stuck := w.images()["kube-apiserver"]
	w.upgrade(at("1.37.1", "e"))
	w.mustPass()
	g.Expect(w.images()["kube-apiserver"]).To(Equal(stuck))
	w.settle()
	g.Expect(w.why()).To(Equal(everywhere(component.AsExpectedReason + " 1.37.1")))
}
