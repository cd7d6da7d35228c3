package migration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/testenv"
)

const atOnce, fleetSize = 3, 50

func TestFleet(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	g, ctx := NewWithT(t), t.Context()
	var order []string
	for i := range fleetSize - 1 {
		name := fmt.Sprintf("c%02d", i)
		f.add(t, name, (fleetSize-i)/20) // large ones have the first names
		order = append(order, name)
	}
	f.add(t, "none", -1) // without any object of Cluster API
	order = append(order, "none")
	slices.Reverse(order)
	slices.SortStableFunc(order, func(a, b string) int { return sizeOf(a) - sizeOf(b) })
	pods := f.pods(t, order)
	f.annotate(t, map[string]*string{ModeAnnotation: ptr.To(ModeAutomatic), LimitAnnotation: ptr.To(fmt.Sprint(atOnce))})
	seen := f.follow(t)
	f.run(t)
	t.Run("When all are to be moved each should be, a few at once, small ones first", func(t *testing.T) {
		g := NewWithT(t)
		unmoved := func() (left []string) {
			for name, s := range f.states(t) {
				if s[0] != "Private" || s[1] != hyperv1.MigrationCompletedReason {
					left = append(left, fmt.Sprint(name, s))
				}
			}
			return left
		}
		// Each is waited for, and not all together: that depends on how fast the machine is.
		for left := unmoved(); len(left) > 0; left = unmoved() {
			g.Eventually(unmoved, patience2, time.Second).ShouldNot(HaveLen(len(left)), "none was moved")
		}
		started := seen.begun()
		g.Expect(started).To(ConsistOf(order))
		g.Expect(seen.most).To(BeNumerically("<=", atOnce))
		for at := range started {
			g.Expect(sizeOf(started[at])).To(BeNumerically(">=", sizeOf(order[max(0, at-atOnce)])), "%s began as number %d: %v", started[at], at, started)
		}
	})
	t.Run("When all have been moved no machine should have noticed, and nothing should be left in the standard groups", func(t *testing.T) {
		g.Expect(f.pods(t, order)).To(Equal(pods))
		for group, want := range map[string]int{translate.Standard: 0, translate.Private: fleetSize - 1} {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1beta2", Kind: "ClusterList"})
			n := 0
			for _, name := range order {
				g.Expect(f.client.List(ctx, list, client.InNamespace(f.ns+"-"+name))).To(Succeed())
				n += len(list.Items)
			}
			g.Expect(n).To(Equal(want), group)
		}
	})
}

// sizeOf is how many machines TestFleet gave a hosted cluster.
func sizeOf(name string) (machines int) {
	i := 0
	if n, _ := fmt.Sscanf(name, "c%02d", &i); n == 0 {
		return 0
	}
	return (fleetSize - i) / 20
}

// pods are the machines of hosted clusters, with what a restart would change.
func (f *fleet) pods(t testing.TB, clusters []string) (all []string) {
	t.Helper()
	for _, name := range clusters {
		list := &corev1.PodList{}
		NewWithT(t).Expect(f.client.List(t.Context(), list, client.InNamespace(f.ns+"-"+name))).To(Succeed())
		for _, p := range list.Items {
			all = append(all, fmt.Sprint(p.Namespace, p.Name, p.UID, p.DeletionTimestamp))
		}
	}
	return all
}

func TestFleetStops(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	for i, name := range []string{"a", "b", "c"} {
		f.add(t, name, i)
	}
	f.refuse("b", apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "cluster-api", nil))
	f.annotate(t, map[string]*string{ModeAnnotation: ptr.To(ModeAutomatic)})
	seen := f.follow(t)
	f.run(t)
	t.Run("When a move fails those that would begin by themselves should not, and say why", func(t *testing.T) {
		g := NewWithT(t)
		// What stops c are annotations: the condition of the one that they are about is written after them.
		g.Eventually(func(g Gomega) {
			s := f.states(t)
			g.Expect(s["c"]).To(HaveExactElements(Equal("Standard"), Equal("Held"), ContainSubstring("stop the others: look at "+f.ns+"/b")))
			g.Expect(s["a"]).To(HaveExactElements(Equal("Private"), Equal("Completed"), ContainSubstring("cluster.hypershift.openshift.io")))
			g.Expect(s["b"]).To(HaveExactElements(Equal("Standard"), Equal("RolledBack"), ContainSubstring(string(ReasonWorkload))))
		}, patience2, time.Second).Should(Succeed())
		g.Expect(seen.begun()).To(Equal([]string{"a", "b"}))
	})
	t.Run("When its cause is gone and somebody asks again all should go on", func(t *testing.T) {
		f.refuse("b", nil)
		f.ask(t, "b", map[string]*string{hyperv1.PrivateCAPIMigrationFailedAnnotation: nil})
		NewWithT(t).Eventually(func() string { s := f.states(t); return s["b"][0] + s["c"][0] }, patience2, time.Second).Should(Equal("PrivatePrivate"))
	})
}

func TestSwitches(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	for i, name := range []string{"a", "b"} {
		f.add(t, name, i)
	}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	now := clocktesting.NewFakePassiveClock(noon)
	c := f.controller(t, f.client, now)
	look := func(t *testing.T, name string) [3]string {
		t.Helper()
		_, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: f.ns, Name: name}})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return f.states(t)[name]
	}
	t.Run("When nobody asks nothing should begin", func(t *testing.T) {
		NewWithT(t).Expect(look(t, "a")).To(Equal([3]string{"Standard", "", ""}))
	})
	t.Run("When the mode is unknown it should be told, and nothing should begin", func(t *testing.T) {
		f.annotate(t, map[string]*string{ModeAnnotation: ptr.To("Fast")})
		f.ask(t, "a", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: ptr.To("true")})
		NewWithT(t).Expect(look(t, "a")).To(HaveExactElements(Equal("Standard"), Equal("Held"), ContainSubstring("must be Automatic or Manual")))
		f.ask(t, "a", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: nil})
	})
	t.Run("When all moves are paused none should begin, whoever asks", func(t *testing.T) {
		f.annotate(t, map[string]*string{ModeAnnotation: ptr.To(ModeAutomatic), PausedAnnotation: ptr.To("true")})
		f.ask(t, "b", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: ptr.To("true")})
		for _, name := range []string{"a", "b"} {
			NewWithT(t).Expect(look(t, name)).To(HaveExactElements(Equal("Standard"), Equal("Held"), ContainSubstring(PausedAnnotation)), name)
		}
		f.annotate(t, map[string]*string{PausedAnnotation: nil})
	})
	t.Run("When it is another time of day only what a person asked for should begin, before the others", func(t *testing.T) {
		g := NewWithT(t)
		f.annotate(t, map[string]*string{WindowAnnotation: ptr.To("22:00-04:00")})
		g.Expect(look(t, "a")).To(HaveExactElements(Equal("Standard"), Equal("Held"), ContainSubstring(WindowAnnotation)))
		g.Expect(look(t, "b")[0]).To(Equal("Locked"))
	})
	t.Run("When one is being moved the next should wait, also at its time of day", func(t *testing.T) {
		now.SetTime(noon.Add(11 * time.Hour))
		NewWithT(t).Expect(look(t, "a")).To(HaveExactElements(Equal("Standard"), Equal("Held"), ContainSubstring("1 of at most 1")))
	})
	t.Run("When there is room for two it should begin", func(t *testing.T) {
		f.annotate(t, map[string]*string{LimitAnnotation: ptr.To("2")})
		NewWithT(t).Expect(look(t, "a")[0]).To(Equal("Locked"))
	})
}

func TestStrangeLock(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	f.add(t, "a", 0)
	now := clocktesting.NewFakePassiveClock(time.Now())
	c := f.controller(t, f.client, now)
	look := func(t *testing.T) ctrl.Result {
		t.Helper()
		result, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: f.ns, Name: "a"}})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return result
	}
	t.Run("When somebody sets the lock by hand it should say what that does, and change nothing", func(t *testing.T) {
		g := NewWithT(t)
		f.ask(t, "a", map[string]*string{hyperv1.PrivateCAPIMigrationInProgressAnnotation: ptr.To("true")})
		now.SetTime(time.Now()) // not before the annotation was written
		before := f.stored(t, "a")
		g.Expect(look(t).RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", lockFor)))
		g.Expect(f.states(t)["a"]).To(HaveExactElements(Equal("Locked"), Equal("Held"), ContainSubstring("by hand")))
		g.Expect(f.stored(t, "a")).To(Equal(before))
	})
	t.Run("When the operator's clock is behind the API server's it should look again no later", func(t *testing.T) {
		now.SetTime(time.Now().Add(-time.Hour))
		NewWithT(t).Expect(look(t).RequeueAfter).To(Equal(lockFor))
	})
	t.Run("When it stays it should be taken off, for nobody looks after the hosted cluster", func(t *testing.T) {
		g := NewWithT(t)
		now.SetTime(time.Now().Add(lockFor + time.Minute))
		look(t)
		g.Expect(f.states(t)["a"]).To(Equal([3]string{"Standard", "NotStarted", ""}))
	})
}

func TestJournalGoes(t *testing.T) {
	t.Run("When a move has been over for a week its journal should go, and before that stay", func(t *testing.T) {
		f := newFleet(t, testenv.Start(t))
		g, ctx := NewWithT(t), t.Context()
		f.add(t, "a", 0)
		f.follow(t)
		f.ask(t, "a", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: ptr.To("true")})
		now := clocktesting.NewFakePassiveClock(time.Now())
		c := f.controller(t, f.client, now)
		look := func() ctrl.Result {
			result, err := c.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: f.ns, Name: "a"}})
			g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			return result
		}
		g.Eventually(func() string { look(); return f.states(t)["a"][0] }, patience2, 50*time.Millisecond).Should(Equal("Private"))
		g.Expect(look().RequeueAfter).To(BeNumerically("~", journalFor, time.Hour))
		journal, _, err := readJournal(ctx, f.client, f.ns+"-a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(journal.Phase).To(Equal(Completed))
		now.SetTime(now.Now().Add(journalFor + time.Hour))
		look()
		journal, _, err = readJournal(ctx, f.client, f.ns+"-a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(journal).To(BeNil())
	})
}
