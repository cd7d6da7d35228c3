package acceptance

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/desk"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/kube/rollup"
	"hcp.internal/platform/internal/packages/author/gotemplate"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

// never is a Puller that has no image, for one reason.
type never struct{ err error }

func (n never) Ask(context.Context, client.ObjectKey, string) (images.Pulled, error) {
	return images.Pulled{}, n.err
}

// TestNotUnpackedYet changes a package whose revision is available. Until the change was unpacked and its deployment has said something about it, nobody may
// take what is said of the revision before for the new one: a rollout would go on to the next cluster.
func TestNotUnpackedYet(t *testing.T) {
	w := packagestest.Serve(t)
	httpClient, err := rest.HTTPClientFor(w.Env.Config)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := process.NewMapper(w.Env.Config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	shelf := shelf{"web:v1": files("one"), "web:v2": files("one", "two")}
	pass := func(t *testing.T, c client.WithWatch, from packagecontroller.Puller, p *v1alpha1.Package) error {
		failed := reconcile(t.Context(), c, kinds, from, client.ObjectKeyFromObject(p))
		NewWithT(t).Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)).To(Succeed())
		return failed
	}
	// rolledOut says about the deployment's present generation what its controller would in the end, and lets the package hear of it.
	rolledOut := func(t *testing.T, p *v1alpha1.Package) {
		g, od := NewWithT(t), &v1alpha1.ObjectDeployment{}
		g.Expect(w.Client.Get(t.Context(), client.ObjectKeyFromObject(p), od)).To(Succeed())
		for _, c := range []metav1.Condition{
			conditions.True(v1alpha1.ConditionAvailable, v1alpha1.ReasonAvailable, "Latest Revision is Available."),
			conditions.False(v1alpha1.ConditionProgressing, v1alpha1.ReasonIdle, "Update concluded."),
		} {
			c.ObservedGeneration = od.Generation
			conditions.Set(&od.Status.Conditions, time.Now(), c)
		}
		g.Expect(w.Client.Status().Update(t.Context(), od)).To(Succeed())
		g.Expect(pass(t, w.Client, shelf, p)).To(Succeed())
		g.Expect(says(p, v1alpha1.ConditionAvailable)).To(Equal("True: Latest Revision is Available."))
		g.Expect(says(p, v1alpha1.ConditionProgressing)).To(Equal("False: Update concluded."))
		g.Expect(says(p, v1alpha1.ConditionUnpacked)).To(HavePrefix("True: "))
		g.Expect(says(p, rollup.Reconciling)+says(p, rollup.Stalled)).To(BeEmpty(), "kstatus should find it Current")
	}
	installed := func(t *testing.T) *v1alpha1.Package {
		p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace(t), Name: "web"}, Spec: v1alpha1.PackageSpec{Image: "web:v1"}}
		g := NewWithT(t)
		g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		g.Expect(pass(t, w.Client, shelf, p)).To(Succeed())
		rolledOut(t, p)
		return p
	}
	change := func(t *testing.T, p *v1alpha1.Package) {
		NewWithT(t).Expect(w.Client.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"image":"web:v2"}}`)))).To(Succeed())
	}
	for name, tc := range map[string]struct {
		puller packagecontroller.Puller
		fails  bool // the first write
		status string
	}{
		"When the new image is still being pulled it should say that it progresses":       {never{desk.ErrPending}, false, rollup.Reconciling},
		"When rendering waits for its share of the time it should say that it progresses": {never{&gotemplate.BusyError{After: time.Second}}, false, rollup.Reconciling},
		"When the deployment can't be written it should say that it progresses":           {shelf, true, rollup.Reconciling},
		"When the new image can't be read it should not say that the update is concluded": {never{errors.New("no such image")}, false, rollup.Stalled},
	} {
		t.Run(name, func(t *testing.T) {
			g, p := NewWithT(t), installed(t)
			change(t, p)
			disturbed := w.Client
			if tc.fails {
				disturbed = testenv.NewFaultClient(w.Client, testenv.FailWrite, 1)
			}
			failed := pass(t, disturbed, tc.puller, p)
			g.Expect(failed != nil).To(Equal(tc.fails), "%v", failed)
			g.Expect(says(p, v1alpha1.ConditionProgressing)).To(Equal("True: What spec asks for is not unpacked yet. What is installed stays."))
			g.Expect(says(p, v1alpha1.ConditionAvailable)).To(Equal("True: Latest Revision is Available."), "what is installed still serves")
			g.Expect(says(p, tc.status)).To(HavePrefix("True: "), "kstatus should not find it Current")
			if !tc.fails {
				testenv.ExpectQuiet(t, w.Client, func(c client.WithWatch) error { return pass(t, c, tc.puller, p) })
			}

			g.Expect(pass(t, w.Client, shelf, p)).To(Succeed())
			g.Expect(says(p, v1alpha1.ConditionUnpacked)).To(Equal("True: Unpack job succeeded"))
			g.Expect(says(p, v1alpha1.ConditionProgressing)).To(Equal("True: Progressing to a new ObjectSet."))
			testenv.ExpectQuiet(t, w.Client, func(c client.WithWatch) error { return pass(t, c, shelf, p) })
			rolledOut(t, p)
		})
	}
	t.Run("When a change is unpacked at once it should progress until the deployment says otherwise", func(t *testing.T) {
		g, p := NewWithT(t), installed(t)
		change(t, p)
		g.Expect(pass(t, w.Client, shelf, p)).To(Succeed())
		g.Expect(says(p, v1alpha1.ConditionProgressing)).To(Equal("True: Progressing to a new ObjectSet."))
		rolledOut(t, p)
	})
	t.Run("When its deployment was deleted it should progress until the new one says otherwise", func(t *testing.T) {
		g, p := NewWithT(t), installed(t)
		od := &v1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
		g.Expect(w.Client.Delete(t.Context(), od)).To(Succeed())
		w.Gone(t, od)
		g.Expect(pass(t, w.Client, shelf, p)).To(Succeed())
		g.Expect(says(p, v1alpha1.ConditionProgressing)).To(Equal("True: Progressing to a new ObjectSet."))
		g.Expect(p.Status.UnpackedHash).NotTo(BeEmpty())
		rolledOut(t, p)
	})
}

// says is the status and the message of a condition of a Package's present generation, empty when there is none.
func says(p *v1alpha1.Package, conditionType string) string {
	c := conditions.Current(p.Status.Conditions, conditionType, p.Generation)
	if c == nil {
		return ""
	}
	return string(c.Status) + ": " + c.Message
}
