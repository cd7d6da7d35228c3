package hostedclusterpackage

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
)

// relabel changes the group of a cluster; "" removes the label.
func (w *world) relabel(name, label string) {
	w.Helper()
	hc := &hyperv1.HostedCluster{}
	w.g.Expect(w.c.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, hc)).To(Succeed())
	before := hc.DeepCopy()
	hc.Labels["risk"] = label
	if label == "" {
		delete(hc.Labels, "risk")
	}
	w.g.Expect(w.c.Patch(w.Context(), hc, client.MergeFrom(before))).To(Succeed())
}

// pause is what a person does to one Package with kubectl, and what the package operator says to it.
func (w *world) pause(name string, is bool) {
	w.Helper()
	patch := `{"spec":{"paused":null}}`
	if is {
		patch = `{"spec":{"paused":true}}`
	}
	p := w.pkg(name)
	w.g.Expect(w.c.Patch(w.Context(), p, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-patch"))).To(Succeed())
	w.settle(name, true)
	p = w.pkg(name)
	before := p.DeepCopy()
	if conditions.Remove(&p.Status.Conditions, packagesv1.ConditionPaused); is {
		conditions.Set(&p.Status.Conditions, time.Now(), metav1.Condition{
			Type: packagesv1.ConditionPaused, Status: metav1.ConditionTrue, Reason: "Paused", ObservedGeneration: p.Generation,
		})
	}
	w.g.Expect(w.c.Status().Patch(w.Context(), p, client.MergeFrom(before))).To(Succeed())
}

// TestMotion is a fleet that does not hold still while a rollout goes through it.
func TestMotion(t *testing.T) {
	w := newWorld(t, func(p *packagesv1.HostedClusterPackage) {
		p.Spec.Partition = &packagesv1.HostedClusterPackagePartitionSpec{LabelKey: "risk",
			Order: &packagesv1.HostedClusterPackagePartitionOrderSpec{Static: []string{"low", "high"}}}
	}, "a=low", "b=low", "c=high", "d=high", "moves", "odd=lab")
	r := w.reconciler(w.c)
	const v2 = "registry.example/addon:v2"
	// next lets what is in flight come up, and expects that the clusters of want are changed then, and nobody else.
	updated := map[string]bool{}
	next := func(up string, want ...string) {
		t.Helper()
		if up != "" {
			w.settle(up, true)
		}
		w.pass(r)
		for _, name := range want {
			updated[name] = true
		}
		for _, name := range []string{"a", "b", "c", "d", "moves", "odd", "joins"} {
			if p := w.pkg(name); p != nil {
				w.g.Expect(p.Spec.Image == v2).To(Equal(updated[name]), "%s has %s", name, p.Spec.Image)
			}
		}
	}
	steps := []struct {
		name string
		run  func()
	}{
		{"When a cluster joins it should get its Package at once, and count as down until it is up", func() {
			w.pass(r)
			for _, name := range []string{"a", "b", "c", "d", "moves", "odd"} {
				w.settle(name, true)
			}
			w.template("v2")
			next("", "a")
			w.join("joins", "high")
			next("", "joins")
			next("a") // up again, but the one that has joined uses the budget
			w.g.Expect(w.condition("Progressing")).To(HaveSuffix("Unavailable, which uses up maxUnavailable 1: " + w.ns + "/joins."))
			next("joins", "b")
		}},
		{"When a cluster moves to a group that is done the rollout should return to that first", func() {
			next("b", "c")
			w.relabel("moves", "low")
			next("")
			w.g.Expect(w.condition("Progressing")).To(ContainSubstring(" Group low is current."))
			next("c", "moves")
		}},
		{"When somebody pauses a Package it should be left alone and named, and its group should wait", func() {
			w.pause("d", true)
			next("moves")
			w.g.Expect(w.condition("HasPausedPackage")).To(Equal("True AtLeastOnePackagePaused 1/7 packages paused."))
			w.g.Expect(w.condition("Progressing")).To(HavePrefix("True NotAllPackagesProgressed 7/7 packages progressed. "))
			w.g.Expect(w.condition("Progressing")).To(ContainSubstring("Paused by somebody, unpause to go on: " + w.ns + "/d."))
			w.g.Expect(w.pkg("d").Spec.Paused).To(BeTrue())
		}},
		{"When it is unpaused the rollout should go on, to the cluster of an unknown group last", func() {
			w.pause("d", false)
			next("", "d")
			next("d", "odd")
			w.settle("odd", true)
			w.pass(r)
			w.g.Expect(w.condition("Progressing")).To(Equal("False AllPackagesProgressed 7/7 packages progressed."))
			w.g.Expect(w.read().Status.Processing).To(BeEmpty())
		}},
		{"When a cluster is not Available it should come last in its group, be named, and count as long as its Package is not known to be up", func() {
			w.available("c", false)
			w.template("v3")
			w.pass(r)
			w.g.Expect(w.read().Status.TotalPackages).To(Equal(int32(7)))
			w.g.Expect(w.condition("Progressing")).To(HaveSuffix("Hosted clusters that are not Available, and come last in their group: " + w.ns + "/c."))
			w.g.Expect(w.image("a")).To(HaveSuffix("v3"))
			w.g.Expect(w.image("c")).To(Equal(v2))
			w.settle("a", true)
			w.settle("c", false)
			w.pass(r)
			w.g.Expect(w.read().Status.UnavailablePackages).To(Equal(int32(1)))
			w.g.Expect(w.image("b")).To(Equal(v2), "the budget is used up by a Package that nobody knows to be up")
		}},
	}
	for _, s := range steps {
		if !t.Run(s.name, func(*testing.T) { s.run() }) {
			return
		}
	}
}
