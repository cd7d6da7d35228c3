package migration

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
)

// ended makes a Deployment that a move has scaled from one replica to none.
func (f *fleet) ended(t testing.TB, ns, name string) *appsv1.Deployment {
	t.Helper()
	d := f.program(t, ns, name, 0, 0)
	d.Annotations = map[string]string{beforeAnnotation: "1"}
	NewWithT(t).Expect(f.client.Update(t.Context(), d)).To(Succeed())
	d.Status.ObservedGeneration = d.Generation
	NewWithT(t).Expect(f.client.Status().Update(t.Context(), d)).To(Succeed())
	return d
}

// TestUndeployable is about programs that can't be deployed for the other storage before the commit.
func TestUndeployable(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	ctx, now := t.Context(), time.Now()
	clk := clocktesting.NewFakePassiveClock(now)
	req := f.middle(t, "a", Journal{Phase: Switch}, now, nil)
	var programs []*appsv1.Deployment
	for _, name := range []string{names.ControlPlaneOperator, names.ClusterAPI, "hosted-cluster-config-operator"} {
		programs = append(programs, f.ended(t, f.ns+"-a", name))
	}
	f.mu.Lock()
	f.broken = errors.New("reading the release: no such image")
	f.mu.Unlock()
	c := f.controller(t, f.client, clk)
	t.Run("When the release can't be read it should be said, and tried again for a while", func(t *testing.T) {
		g := NewWithT(t)
		for _, after := range []time.Duration{0, time.Minute} {
			clk.SetTime(now.Add(after))
			_, err := c.Reconcile(ctx, req)
			g.Expect(err).To(MatchError(ContainSubstring("no such image")))
			g.Expect(f.states(t)["a"]).To(HaveExactElements(Equal("Locked"), Equal(string(Switch)), ContainSubstring("no such image")))
		}
	})
	t.Run("When it can't be read for long the move should be taken back without it, and every program be as it was", func(t *testing.T) {
		g := NewWithT(t)
		clk.SetTime(now.Add(6 * time.Minute))
		_, err := c.Reconcile(ctx, req)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.states(t)["a"]).To(HaveExactElements(Equal("Standard"), Equal("RolledBack"), And(ContainSubstring(string(ReasonWorkload)), ContainSubstring("no such image"))))
		for _, d := range programs {
			g.Expect(f.client.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			g.Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)), d.Name)
			g.Expect(d.Annotations).NotTo(HaveKey(beforeAnnotation), d.Name)
		}
	})
	for name, tc := range map[string]struct {
		phase   Phase
		cluster string
		refuses func(client.Object) bool
	}{
		"When the API server refuses a pause the move should be taken back": {Pause, "paused", func(o client.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind == "Machine" }},
		"When the API server refuses the commit it should be taken back":    {Commit, "committed", func(o client.Object) bool { _, is := o.(*hyperv1.HostedCluster); return is }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			req := f.middle(t, tc.cluster, Journal{Phase: tc.phase}, now, nil)
			if tc.phase == Commit { // there is nothing to be compared
				for _, kind := range []string{"Machine", "Cluster"} {
					name := map[string]string{"Machine": "m-0", "Cluster": "c"}[kind]
					o := object(translate.Standard, "v1beta2", kind, f.ns+"-"+tc.cluster, name, nil)
					g.Expect(f.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
					g.Expect(f.client.Delete(ctx, o)).To(Succeed())
				}
			}
			refusals := 0
			refusing := interceptor.NewClient(f.client, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
				if tc.refuses(obj) && refusals == 0 {
					refusals++
					return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, obj.GetName(), errors.New("a policy says no"))
				}
				return c.Patch(ctx, obj, p, opts...)
			}})
			_, err := f.controller(t, refusing, clocktesting.NewFakePassiveClock(now)).Reconcile(ctx, req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.states(t)[tc.cluster]).To(HaveExactElements(Equal("Standard"), Equal("RolledBack"), ContainSubstring(string(ReasonInternal))))
		})
	}
}

// TestRestoredLock is about locks that come with a HostedCluster that was saved in the middle of a move.
func TestRestoredLock(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	ctx, yes, old := t.Context(), ptr.To("true"), ptr.To("lock-0")
	saved := func(more map[string]*string) map[string]*string {
		out := map[string]*string{hyperv1.PrivateCAPIMigrationInProgressAnnotation: yes, hyperv1.PrivateCAPIMigrationLockAnnotation: old, hyperv1.PrivateCAPIMigrationAckAnnotation: old}
		maps.Copy(out, more)
		return out
	}
	c := f.controller(t, f.client, clock.RealClock{})
	look := func(t *testing.T, name string) {
		t.Helper()
		for range 4 {
			_, err := c.Reconcile(ctx, f.request(name))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		}
	}
	annotations := func(t *testing.T, name string) map[string]string {
		t.Helper()
		hc := &hyperv1.HostedCluster{}
		NewWithT(t).Expect(f.client.Get(ctx, f.request(name).NamespacedName, hc)).To(Succeed())
		return hc.Annotations
	}
	for name, tc := range map[string]struct {
		cluster string
		more    map[string]*string
		prepare func(t *testing.T)
	}{
		"When nobody asks for a move its lock should go, and nothing else change": {cluster: "unasked"},
		"When a move can't begin its lock should go, and nothing else change": {cluster: "refused", more: map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: yes},
			prepare: func(t *testing.T) { t.Helper(); f.program(t, f.ns+"-refused", names.ClusterAPI, 1, 0) }},
		"When moves are paused its lock should go, and nothing else change": {cluster: "later", more: map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: yes},
			prepare: func(t *testing.T) { t.Helper(); f.annotate(t, map[string]*string{PausedAnnotation: yes}) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f.add(t, tc.cluster, 1)
			if tc.prepare != nil {
				tc.prepare(t)
			}
			f.ask(t, tc.cluster, tc.more)
			want := f.stored(t, tc.cluster)
			f.ask(t, tc.cluster, saved(nil))
			look(t, tc.cluster)
			g.Expect(f.stored(t, tc.cluster)).To(Equal(want))
			f.annotate(t, map[string]*string{PausedAnnotation: nil})
			f.ask(t, tc.cluster, map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: nil}) // or others would wait for it
		})
	}
	t.Run("When its namespace is missing its lock should go, or nobody would look after it", func(t *testing.T) {
		g := NewWithT(t)
		hc := testenv.HostedCluster(f.ns, "nowhere")
		hc.Annotations = map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope}
		g.Expect(f.client.Create(ctx, hc)).To(Succeed())
		f.ask(t, "nowhere", saved(map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: yes}))
		look(t, "nowhere")
		g.Expect(annotations(t, "nowhere")).NotTo(HaveKey(hyperv1.PrivateCAPIMigrationInProgressAnnotation))
		g.Expect(f.states(t)["nowhere"]).To(HaveExactElements(Equal("Standard"), Equal("Held"), ContainSubstring("does not exist")))
		f.ask(t, "nowhere", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: nil})
	})
	t.Run("When a move may begin it should, and wait until the operators acknowledge another lock", func(t *testing.T) {
		g := NewWithT(t)
		f.add(t, "wanted", 1)
		f.ask(t, "wanted", saved(map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: yes}))
		look(t, "wanted")
		g.Expect(annotations(t, "wanted")[hyperv1.PrivateCAPIMigrationLockAnnotation]).NotTo(BeElementOf("", "lock-0"))
		g.Expect(f.states(t)["wanted"]).To(HaveExactElements(Equal("Locked"), Equal(string(Quiesce)), ContainSubstring("has not let go")))
		f.ask(t, "wanted", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: nil})
	})
	t.Run("When an older lock is put back in the middle of a move it should be taken back under another", func(t *testing.T) {
		g := NewWithT(t)
		f.middle(t, "replaced", Journal{Phase: Verify}, time.Now(), saved(nil))
		look(t, "replaced")
		g.Expect(f.states(t)["replaced"]).To(HaveExactElements(Equal("Standard"), Equal("RolledBack"), ContainSubstring(string(ReasonConcurrent))))
	})
	t.Run("When the journal of a move is lost the move should go on, once the operators acknowledge another lock", func(t *testing.T) {
		g := NewWithT(t)
		f.add(t, "moving", 1)
		machine := object(translate.Standard, "v1beta2", "Machine", f.ns+"-moving", "m-0", nil)
		g.Expect(f.client.Patch(ctx, machine, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"cluster.x-k8s.io/paused":"`+pausedValue+`"}}}`)))).To(Succeed())
		f.ask(t, "moving", saved(nil))
		look(t, "moving")
		g.Expect(annotations(t, "moving")[hyperv1.PrivateCAPIMigrationLockAnnotation]).NotTo(BeElementOf("", "lock-0"))
		g.Expect(f.states(t)["moving"]).To(HaveExactElements(Equal("Locked"), Equal(string(Quiesce)), ContainSubstring("has not let go")))
	})
}

// TestPatience is about moves that wait for something that does not come soon.
func TestPatience(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	ctx, now := t.Context(), time.Now()
	t.Run("When a program does not come it should be looked at less and less often", func(t *testing.T) {
		g := NewWithT(t)
		clk := clocktesting.NewFakePassiveClock(now)
		req := f.middle(t, "late", Journal{Phase: Available}, now, map[string]*string{hyperv1.PrivateCAPITypesAnnotation: ptr.To("true"), hyperv1.HostedClusterScopeAnnotation: nil})
		d := f.program(t, f.ns+"-late", names.ControlPlaneOperator, 1, 0)
		d.Annotations = map[string]string{beforeAnnotation: "1"}
		g.Expect(f.client.Update(ctx, d)).To(Succeed())
		c := f.controller(t, f.client, clk)
		for after, want := range map[time.Duration]time.Duration{0: poll, time.Minute: poll, 90 * time.Second: 5 * time.Second, time.Hour: 10 * time.Second} {
			clk.SetTime(now.Add(after))
			result, err := c.Reconcile(ctx, req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter).To(BeNumerically("~", want, time.Second/4), after.String())
		}
	})
	for name, phase := range map[string]Phase{"verified": Verify, "back": RollBack} {
		t.Run("When the operator has not let go nothing should be listed that nobody decides by: "+string(phase), func(t *testing.T) {
			g := NewWithT(t)
			req := f.middle(t, name, Journal{Phase: phase, Failure: ReasonMismatch}, now, map[string]*string{hyperv1.PrivateCAPIMigrationAckAnnotation: ptr.To("older")})
			f.ended(t, f.ns+"-"+name, names.ClusterAPI)
			for _, kind := range []string{"ServiceAccount", "Machine"} {
				_, err := f.controller(t, f.unlisted(f.ns+"-"+name, kind), clock.RealClock{}).Reconcile(ctx, req)
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(f.states(t)[name]).To(HaveExactElements(Equal("Locked"), Equal(string(phase)), ContainSubstring("has not let go")))
		})
	}
}

// TestLooks is about hosted clusters whose look before a move takes long.
func TestLooks(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	g, ctx := NewWithT(t), t.Context()
	f.add(t, "slow", 0)
	f.add(t, "quick", 0)
	f.annotate(t, map[string]*string{LimitAnnotation: ptr.To("2")})
	for _, name := range []string{"slow", "quick"} {
		f.ask(t, name, map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: ptr.To("true")})
	}
	t.Run("When the look at one takes long another should begin meanwhile", func(t *testing.T) {
		g := NewWithT(t)
		begun, goOn := make(chan struct{}, 1), make(chan struct{})
		waiting := interceptor.NewClient(f.client, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if review, is := obj.(*authorizationv1.SelfSubjectAccessReview); is && review.Spec.ResourceAttributes.Namespace == f.ns+"-slow" {
				select {
				case begun <- struct{}{}:
				default:
				}
				<-goOn
			}
			return c.Create(ctx, obj, opts...)
		}})
		c, ended := f.controller(t, waiting, clock.RealClock{}), make(chan error, 2)
		reconcile := func(name string) { _, err := c.Reconcile(ctx, f.request(name)); ended <- err }
		go reconcile("slow")
		g.Eventually(begun, patience2).Should(Receive())
		go reconcile("quick")
		g.Eventually(ended, patience2/6).Should(Receive(BeNil()), "it waits for the other")
		g.Expect(f.states(t)["quick"][0]).To(Equal("Locked"))
		close(goOn)
		g.Eventually(ended, patience2).Should(Receive(BeNil()))
		g.Expect(f.states(t)["slow"][0]).To(Equal("Locked"))
	})
	f.add(t, "refused", 0)
	f.program(t, f.ns+"-refused", names.ClusterAPI, 1, 0)
	f.annotate(t, map[string]*string{LimitAnnotation: ptr.To("3")})
	f.ask(t, "refused", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: ptr.To("true")})
	c := f.controller(t, f.client, clock.RealClock{})
	var gaps []time.Duration
	for range 7 {
		result, err := c.Reconcile(ctx, f.request("refused"))
		g.Expect(err).NotTo(HaveOccurred())
		gaps = append(gaps, result.RequeueAfter)
	}
	t.Run("When one is refused again and again it should be looked at less and less often", func(t *testing.T) {
		NewWithT(t).Expect(gaps).To(Equal([]time.Duration{recheckStart, 2 * recheckStart, 4 * recheckStart, 8 * recheckStart, 16 * recheckStart, recheckLast, recheckLast}))
	})
	t.Run("When it is refused for another reason it should be looked at soon again", func(t *testing.T) {
		g := NewWithT(t)
		f.program(t, f.ns+"-refused", names.CAPIProvider, 1, 0)
		result, err := c.Reconcile(ctx, f.request("refused"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(Equal(recheckStart))
	})
}

// TestKarpenter is about the program that makes machines itself.
func TestKarpenter(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	ctx := t.Context()
	for name, tc := range map[string]struct {
		cluster string
		rules   []rbacv1.PolicyRule
		want    []Program
	}{
		"When it makes machines of Cluster API it should be among the programs of a move": {"local",
			[]rbacv1.PolicyRule{{APIGroups: []string{translate.Standard}, Resources: []string{"machines"}, Verbs: []string{"create"}}}, []Program{{Name: "karpenter"}}},
		"When it makes machines of a cloud, and has an operator that would start it again, it should be left alone": {"cloud",
			[]rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f.add(t, tc.cluster, -1)
			ns := f.ns + "-" + tc.cluster
			f.program(t, ns, "karpenter", 1, 1)
			g.Expect(f.client.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "karpenter"}, Rules: tc.rules})).To(Succeed())
			list, err := reader{Client: f.client}.programs(ctx, ns)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(list).To(HaveLen(len(tc.want)))
			for i := range tc.want {
				g.Expect(list[i].Name).To(Equal(tc.want[i].Name))
			}
		})
	}
}
