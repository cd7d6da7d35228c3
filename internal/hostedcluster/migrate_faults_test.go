package hostedcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/hostedcluster/migration"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/testenv"
)

// before ends the process that writes through it before it notes that a phase begins.
func before(c client.WithWatch, phase migration.Phase) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if cm, ok := obj.(*corev1.ConfigMap); ok && strings.Contains(cm.Data["journal"], fmt.Sprintf("%q:%q", "phase", phase)) {
				return testenv.ErrFault
			}
			return c.Update(ctx, obj, opts...)
		},
	})
}

// watcher looks at every change of machines and their pods while a move goes on, from outside.
type watcher struct {
	mu     sync.Mutex
	broken []string
	seen   int
	stop   []func()
	ended  sync.WaitGroup
}

func (m *movable) watch(t testing.TB) *watcher {
	t.Helper()
	w := &watcher{}
	for _, kind := range [][3]string{{"", "v1", "Pod"}, {"hypershift.openshift.io", "v1beta1", "HostedControlPlane"},
		{translate.Standard, "v1beta2", "Machine"}, {translate.Private, "v1beta2", "Machine"},
		{"infrastructure." + translate.Standard, "v1beta1", "LocalMachine"}, {"infrastructure." + translate.Private, "v1beta1", "LocalMachine"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(unstructuredOf(kind[0], kind[1], kind[2]+"List").GroupVersionKind())
		events, err := m.client.Watch(t.Context(), list, client.InNamespace(m.hcp))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		w.stop = append(w.stop, events.Stop)
		w.ended.Go(func() {
			for e := range events.ResultChan() {
				w.judge(kind[0], kind[2], e)
			}
		})
	}
	return w
}

func (w *watcher) judge(group, kind string, e watch.Event) {
	obj, ok := e.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
	say := func(what string) {
		w.broken = append(w.broken, fmt.Sprintf("%s %s/%s %s: %s", e.Type, group, kind, obj.Name, what))
	}
	controllers := 0
	for _, r := range obj.OwnerReferences {
		if r.Controller != nil && *r.Controller {
			controllers++
		}
	}
	switch {
	case controllers != 1 && obj.Labels["name"] == "":
		say(fmt.Sprintf("it has %d controllers", controllers))
	case obj.DeletionTimestamp != nil && len(obj.Finalizers) > 0:
		say("it is being deleted and has finalizers")
	case e.Type == watch.Deleted && kind == "Pod":
		say("a machine is gone")
	case e.Type == watch.Deleted && len(obj.Finalizers) > 0:
		say("it went with finalizers")
	}
}

func (w *watcher) expectFine(t testing.TB) {
	t.Helper()
	for _, stop := range w.stop {
		stop()
	}
	w.ended.Wait()
	NewWithT(t).Expect(w.broken).To(BeEmpty())
	NewWithT(t).Expect(w.seen).NotTo(BeZero())
}

// expectWhole checks that a move is over and everything is where its end says.
func (m *movable) expectWhole(t testing.TB, group string, objects, pods []string, reason string) {
	t.Helper()
	g := NewWithT(t)
	other := translate.Group(group)
	g.Expect(m.condition(t.Context(), "demo", hyperv1.PrivateCAPIMigrationProgressing)()).To(Equal("False/"+reason), m.message(t.Context(), "demo", hyperv1.PrivateCAPIMigrationProgressing))
	g.Expect(m.condition(t.Context(), "demo", hyperv1.PrivateCAPIMigrationDegraded)()).To(HavePrefix("False/"))
	g.Expect(m.state(t, group)).To(Equal(objects))
	g.Expect(m.state(t, other)).To(BeEmpty())
	g.Expect(m.pods(t)).To(Equal(pods))
	list := &appsv1.DeploymentList{}
	g.Expect(m.client.List(t.Context(), list, client.InNamespace(m.hcp))).To(Succeed())
	for _, d := range list.Items {
		g.Expect(*d.Spec.Replicas).To(BeEquivalentTo(1), d.Name)
		g.Expect(d.Annotations).NotTo(HaveKey("hypershift.openshift.io/pre-migration-replicas"), d.Name)
	}
}

// dying lets the migration and both operators beside it live, and die, in one process that writes through c.
func (m *movable) dying(c client.WithWatch) {
	m.others, m.othersThrough = m.client, m.through
	if f, ok := c.(*testenv.FaultClient); ok {
		m.others, m.othersThrough = f, f.Beside(m.through)
	}
}

func TestMigrationCrash(t *testing.T) {
	// A move of one machine makes about 170 writes, those of the operators beside it among them, and a run takes seconds: CRASH_STEP=1 tries each.
	testenv.CrashAtEveryWrite(t, 60, func(t testing.TB) testenv.CrashCase {
		m := newMovable(t, 1)
		standard, pods := m.state(t, translate.Standard), m.pods(t)
		w := m.watch(t)
		return testenv.CrashCase{
			Client: m.client,
			Run: func(c client.WithWatch) error {
				m.dying(c)
				return m.migrate(t.Context(), m.mover(c), hyperv1.PrivateCAPIMigrateAnnotation)
			},
			Check: func(t testing.TB) {
				w.expectFine(t)
				m.expectWhole(t, translate.Private, standard, pods, "Completed")
			},
		}
	})
}

// TestMigrationDiesAlways tries each write of the migration, and of both operators beside it, in one move: no process gets further than one.
func TestMigrationDiesAlways(t *testing.T) {
	m := newMovable(t, 2)
	standard, pods := m.state(t, translate.Standard), m.pods(t)
	for _, life := range []struct {
		name  string
		fault testenv.Fault
		at    int
	}{
		{"every process dies with its first write", testenv.Crash, 1},
		{"every process loses the answer to its first write", testenv.DropAnswer, 1},
		{"every process ends when its second write is refused", testenv.FailWrite, 2},
	} {
		if life.fault != testenv.Crash && os.Getenv("CRASH_STEP") == "" {
			continue // a minute each
		}
		for _, way := range []struct{ ask, group string }{{hyperv1.PrivateCAPIMigrateAnnotation, translate.Private}, {hyperv1.PrivateCAPIRollbackAnnotation, translate.Standard}} {
			t.Run("When "+life.name+" it should end where a calm move does: "+way.group, func(t *testing.T) {
				g, w := NewWithT(t), m.watch(t)
				g.Expect(m.client.Patch(t.Context(), m.hostedCluster(), patch.Annotation(hyperv1.PrivateCAPIMigrationFailedAnnotation, nil))).To(Succeed())
				lives, err := m.live(t, life.fault, life.at, way.ask)
				g.Expect(err).NotTo(HaveOccurred())
				t.Logf("%d lives", lives)
				w.expectFine(t)
				m.expectWhole(t, way.group, standard, pods, "Completed")
			})
		}
	}
}

// live begins one process after the other, in each of which a fault happens, until a move is over, and says how many there were.
func (m *movable) live(t *testing.T, fault testenv.Fault, at int, ask string) (lives int, err error) {
	t.Helper()
	defer m.dying(m.client)
	for ; lives < 1000; lives++ {
		f := testenv.NewFaultClient(m.client, fault, at)
		m.dying(f)
		err := m.migrate(t.Context(), m.mover(f), ask)
		if err == nil || !errors.Is(err, testenv.ErrFault) {
			return lives, err
		}
		ask = ""
	}
	return lives, fmt.Errorf("it gets nowhere: %s", m.message(t.Context(), "demo", hyperv1.PrivateCAPIMigrationProgressing))
}

func TestMigrationTakenBack(t *testing.T) {
	edit := func(m *movable, t testing.TB) {
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: m.hcp, Name: "workers-x7-000"}}
		NewWithT(t).Expect(m.client.Patch(t.Context(), machine, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"edited":"yes"}}}`)))).To(Succeed())
	}
	unlock := func(m *movable, t testing.TB) {
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, lockKey)
		NewWithT(t).Expect(m.client.Patch(t.Context(), m.hostedCluster(), client.RawPatch("application/merge-patch+json", body))).To(Succeed())
	}
	rollback := func(m *movable, t testing.TB) {
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, hyperv1.PrivateCAPIRollbackAnnotation)
		NewWithT(t).Expect(m.client.Patch(t.Context(), m.hostedCluster(), client.RawPatch("application/merge-patch+json", body))).To(Succeed())
	}
	for name, tc := range map[string]struct {
		before  migration.Phase
		disturb func(m *movable, t testing.TB)
		reason  migration.Reason
	}{
		"When somebody edits an object after it was copied the move should be taken back": {migration.Verify, edit, migration.ReasonMismatch},
		"When somebody takes the lock off in the middle the move should be taken back":    {migration.Repoint, unlock, migration.ReasonConcurrent},
		"When a user asks for the way back before the commit it should be taken back":     {migration.Commit, rollback, migration.ReasonRequested},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMovable(t, 2)
			g := NewWithT(t)
			ctx := t.Context()
			standard, pods := m.state(t, translate.Standard), m.pods(t)
			w := m.watch(t)
			g.Expect(m.migrate(ctx, m.mover(before(m.client, tc.before)), hyperv1.PrivateCAPIMigrateAnnotation)).To(MatchError(testenv.ErrFault))
			tc.disturb(m, t)
			g.Expect(m.migrate(ctx, m.mover(m.client), "")).To(Succeed())
			w.expectFine(t)
			m.expectWhole(t, translate.Standard, standard, pods, "RolledBack")
			hc, err := m.get(ctx, "demo")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(hc.Annotations).To(And(HaveKeyWithValue(hyperv1.PrivateCAPIMigrationFailedAnnotation, string(tc.reason)), HaveKeyWithValue(scopeKey, "legacy"), Not(HaveKey(privateKey))))
			for range 3 {
				g.Expect(m.legacyPass(ctx)).To(Succeed())
			}
			testenv.ExpectQuiet(t, m.client, func(c client.WithWatch) error {
				_, err := m.mover(c).Reconcile(ctx, m.request("demo"))
				return err
			})
		})
	}
	t.Run("When it is deleted in the middle it should be taken back without a veto, so that its operator can end it", func(t *testing.T) {
		m := newMovable(t, 1)
		g := NewWithT(t)
		ctx := t.Context()
		standard, pods := m.state(t, translate.Standard), m.pods(t)
		g.Expect(m.migrate(ctx, m.mover(before(m.client, migration.Switch)), hyperv1.PrivateCAPIMigrateAnnotation)).To(MatchError(testenv.ErrFault))
		hc, err := m.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.client.Delete(ctx, hc)).To(Succeed())
		c := m.mover(m.client)
		g.Eventually(func(g Gomega) {
			_, err := c.Reconcile(ctx, m.request("demo"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.runDeployments(ctx)).To(Succeed())
			hc, err := m.get(ctx, "demo")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(hc.Annotations).To(And(Not(HaveKey(lockKey)), Not(HaveKey(hyperv1.PrivateCAPIMigrationFailedAnnotation))))
		}, patience, often).Should(Succeed())
		m.expectWhole(t, translate.Standard, standard, pods, "RolledBack")
	})
}

func TestMigrationRefused(t *testing.T) {
	t.Run("When an object of the other group is in the way it should be told, and nothing written but that", func(t *testing.T) {
		m := newMovable(t, 1)
		g := NewWithT(t)
		ctx := t.Context()
		foreign := unstructuredOf(translate.Private, "v1beta2", "MachineDeployment")
		foreign.SetNamespace(m.hcp)
		foreign.SetName("somebody-elses")
		foreign.Object["spec"] = map[string]any{"clusterName": "x", "selector": map[string]any{}, "template": map[string]any{"spec": map[string]any{
			"clusterName": "x", "bootstrap": map[string]any{"dataSecretName": "x"}, "infrastructureRef": map[string]any{"apiGroup": "example.com", "kind": "K", "name": "n"}}}}
		g.Expect(m.client.Create(ctx, foreign)).To(Succeed())
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: m.hcp, Name: "workers-x7-000"}}
		body := []byte(`{"metadata":{"finalizers":["machine.cluster.x-k8s.io","example.com/keep"]}}`)
		g.Expect(m.client.Patch(ctx, machine, client.RawPatch("application/merge-patch+json", body))).To(Succeed())
		hc, err := m.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		counting := testenv.NewFaultClient(m.client, testenv.FailWrite, 0)
		report, err := m.mover(counting).Preflight(ctx, hc, migration.Forward)
		g.Expect(err).NotTo(HaveOccurred())
		var reasons []string
		for _, r := range report.Refusals {
			g.Expect(r.Remedy).NotTo(BeEmpty())
			reasons = append(reasons, r.Reason)
		}
		slices.Sort(reasons)
		g.Expect(reasons).To(Equal([]string{"BothGroups", "ForeignFinalizer"}))
		_, err = m.mover(m.client).Reconcile(ctx, m.request("demo"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.condition(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing)()).To(BeEmpty(), "nobody asked")
		ask := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, hyperv1.PrivateCAPIMigrateAnnotation)
		g.Expect(m.client.Patch(ctx, hc, client.RawPatch("application/merge-patch+json", ask))).To(Succeed())
		_, err = m.mover(m.client).Reconcile(ctx, m.request("demo"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.condition(ctx, "demo", hyperv1.PrivateCAPIMigrationProgressing)()).To(Equal("False/Held"))
		hc, err = m.get(ctx, "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(hc.Annotations).NotTo(HaveKey(lockKey))
	})
}

// BenchmarkMigration prints how long a hosted cluster with 200 machines can't scale or heal, without the time that its programs take to end and to start.
func BenchmarkMigration(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		m := newMovable(b, 200)
		c := m.mover(m.client)
		b.StartTimer()
		started := time.Now()
		if err := m.migrate(b.Context(), c, hyperv1.PrivateCAPIMigrateAnnotation); err != nil {
			b.Fatal(err)
		}
		b.Logf("moved 200 machines in %s: %s", time.Since(started).Round(time.Millisecond), m.message(b.Context(), "demo", hyperv1.PrivateCAPIMigrationProgressing))
	}
}
