package journal_test

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/journal"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// TestBook keeps journals on a real API server.
func TestBook(t *testing.T) {
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(hyperv1.AddToScheme(scheme))
	c := env.Client(t, scheme)
	ctx := t.Context()
	world := func(t *testing.T) (*journal.Book, client.Object, *clocktesting.FakePassiveClock) {
		hc := testenv.HostedCluster(env.Namespace(t), "demo")
		NewWithT(t).Expect(c.Create(ctx, hc)).To(Succeed())
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
		return &journal.Book{Client: c, Live: c, Clock: clock}, hc, clock
	}
	see := func(b *journal.Book, hc client.Object, clock *clocktesting.FakePassiveClock, status metav1.ConditionStatus) error {
		var list []metav1.Condition
		conditions.Set(&list, clock.Now(), conditions.New("Available", status, "Because", ""))
		return b.Record(ctx, hc, list)
	}
	stored := func(t *testing.T, hc client.Object) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{}
		NewWithT(t).Expect(c.Get(ctx, client.ObjectKey{Namespace: hc.GetNamespace(), Name: "hostedcluster-demo-journal"}, cm)).To(Succeed())
		return cm
	}
	t.Run("When conditions move it should write them down, and nothing when they stay", func(t *testing.T) {
		g := NewWithT(t)
		b, hc, clock := world(t)
		g.Expect(see(b, hc, clock, metav1.ConditionTrue)).To(Succeed())
		first := stored(t, hc)
		g.Expect(first.OwnerReferences).To(ConsistOf(HaveField("UID", hc.GetUID())))
		testenv.ExpectQuiet(t, c, func(quiet client.WithWatch) error {
			other := &journal.Book{Client: quiet, Live: quiet, Clock: clock}
			if err := see(other, hc, clock, metav1.ConditionTrue); err != nil {
				return err
			}
			return see(other, hc, clock, metav1.ConditionTrue)
		})
		clock.SetTime(clock.Now().Add(time.Minute))
		g.Expect(see(b, hc, clock, metav1.ConditionFalse)).To(Succeed())
		list, err := journal.Read(ctx, c, "hostedcluster", hc.GetNamespace(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(HaveLen(2))
		g.Expect(list[1]).To(And(HaveField("From", metav1.ConditionTrue), HaveField("To", metav1.ConditionFalse), HaveField("At", clock.Now())))
	})
	t.Run("When the process is another one it should go on where the last one ended", func(t *testing.T) {
		g := NewWithT(t)
		b, hc, clock := world(t)
		g.Expect(see(b, hc, clock, metav1.ConditionTrue)).To(Succeed())
		again := &journal.Book{Client: c, Live: c, Clock: clock}
		g.Expect(see(again, hc, clock, metav1.ConditionFalse)).To(Succeed())
		g.Expect(see(b, hc, clock, metav1.ConditionTrue)).To(Succeed(), "the first did not see what the second wrote")
		g.Expect(see(b, hc, clock, metav1.ConditionFalse)).To(Succeed())
		list, err := journal.Read(ctx, c, "hostedcluster", hc.GetNamespace(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list[len(list)-1].To).To(Equal(metav1.ConditionFalse))
	})
	t.Run("When an object of that name was there before it should begin anew", func(t *testing.T) {
		g := NewWithT(t)
		b, hc, clock := world(t)
		g.Expect(see(b, hc, clock, metav1.ConditionTrue)).To(Succeed())
		g.Expect(c.Delete(ctx, hc)).To(Succeed())
		next := testenv.HostedCluster(hc.GetNamespace(), "demo")
		g.Expect(c.Create(ctx, next)).To(Succeed())
		g.Expect(see(b, next, clock, metav1.ConditionFalse)).To(Succeed())
		list, err := journal.Read(ctx, c, "hostedcluster", hc.GetNamespace(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(HaveLen(1))
	})
	t.Run("When an object is being deleted it should write nothing", func(t *testing.T) {
		g := NewWithT(t)
		b, hc, clock := world(t)
		now := metav1.Now()
		hc.SetDeletionTimestamp(&now)
		g.Expect(see(b, hc, clock, metav1.ConditionTrue)).To(Succeed())
		list, err := journal.Read(ctx, c, "hostedcluster", hc.GetNamespace(), "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list).To(BeEmpty())
	})
}
