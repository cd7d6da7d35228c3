package migration

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
)

// TestUnheeded is about requests that are not done, and must not be lost without a word.
func TestUnheeded(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	c := f.controller(t, f.client, clock.RealClock{})
	yes := ptr.To("true")
	for name, tc := range map[string]struct {
		cluster     string
		annotations map[string]*string
		says        string
	}{
		"When a hosted cluster is held back it should say so": {"held", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: yes, hyperv1.PrivateCAPIHoldAnnotation: yes}, hyperv1.PrivateCAPIHoldAnnotation},
		"When an earlier move failed it should say what to remove": {"failed", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: yes,
			hyperv1.PrivateCAPIMigrationFailedAnnotation: ptr.To(string(ReasonQuiesce))}, hyperv1.PrivateCAPIMigrationFailedAnnotation},
		"When the way back is asked for where there is none it should say what to remove": {"back", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: yes,
			hyperv1.PrivateCAPIRollbackAnnotation: yes}, "remove annotation " + hyperv1.PrivateCAPIRollbackAnnotation},
		"When only the way back is asked for where there is none it should say so, too": {"only", map[string]*string{hyperv1.PrivateCAPIRollbackAnnotation: yes}, hyperv1.PrivateCAPIRollbackAnnotation},
		"When an operator of another scope manages it it should say so": {"foreign", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: yes,
			hyperv1.HostedClusterScopeAnnotation: ptr.To("shard-7")}, "shard-7"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f.add(t, tc.cluster, -1)
			f.ask(t, tc.cluster, tc.annotations)
			before := f.stored(t, tc.cluster)
			result, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: f.ns, Name: tc.cluster}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter).NotTo(BeZero())
			g.Expect(f.states(t)[tc.cluster]).To(HaveExactElements(Equal("Standard"), Equal("Held"), ContainSubstring(tc.says)))
			g.Expect(f.stored(t, tc.cluster)).To(Equal(before), "something was written")
		})
	}
	t.Run("When nobody asked nothing should be said", func(t *testing.T) {
		g := NewWithT(t)
		f.add(t, "quiet", -1)
		f.ask(t, "quiet", map[string]*string{hyperv1.PrivateCAPIHoldAnnotation: yes})
		_, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: f.ns, Name: "quiet"}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.states(t)["quiet"]).To(Equal([3]string{"Standard", "", ""}))
	})
}

// unlisted is a client that can't list a kind in a namespace.
func (f *fleet) unlisted(ns, kind string) client.Client {
	return interceptor.NewClient(f.client, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		o := &client.ListOptions{}
		o.ApplyOptions(options)
		if o.Namespace == ns && list.GetObjectKind().GroupVersionKind().Kind == kind+"List" {
			return errors.New("the server is currently unable to handle the request")
		}
		return c.List(ctx, list, options...)
	}})
}

// TestUnseen is about kinds that can't be listed, as those of another API server that is down.
func TestUnseen(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	ctx := t.Context()
	t.Run("When a hosted cluster can't be looked at it should say why, and hold up no other", func(t *testing.T) {
		g := NewWithT(t)
		f.add(t, "a", 0)
		f.add(t, "b", 1)
		f.annotate(t, map[string]*string{ModeAnnotation: ptr.To(ModeAutomatic)})
		c, ears := f.controller(t, f.unlisted(f.ns+"-a", "ServiceAccount"), clock.RealClock{}), &heard{}
		c.Events = ears
		for range 2 {
			result, err := c.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: f.ns, Name: "a"}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter).NotTo(BeZero())
		}
		g.Expect(*ears).To(HaveExactElements(eventHeld), "it is told once")
		g.Expect(f.states(t)["a"]).To(HaveExactElements(Equal("Standard"), Equal("Held"), And(ContainSubstring("can't be looked at"), ContainSubstring("ServiceAccount"))))
		_, err := c.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: f.ns, Name: "b"}})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.states(t)["b"][0]).To(Equal("Locked"))
	})
	now := time.Now()
	middle := func(t *testing.T, name string, j Journal, annotations map[string]*string) ctrl.Request {
		t.Helper()
		return f.middle(t, name, j, now, annotations)
	}
	t.Run("When a kind can't be listed in the middle the condition should say so", func(t *testing.T) {
		g := NewWithT(t)
		req := middle(t, "verified", Journal{Phase: Verify}, nil)
		_, err := f.controller(t, f.unlisted(f.ns+"-verified", "ServiceAccount"), clock.RealClock{}).Reconcile(ctx, req)
		g.Expect(err).To(MatchError(ContainSubstring("ServiceAccount")))
		g.Expect(f.states(t)["verified"]).To(HaveExactElements(Equal("Locked"), Equal(string(Verify)), ContainSubstring("ServiceAccount")))
	})
	t.Run("When there are no copies a move should be taken back whatever else can't be listed", func(t *testing.T) {
		g := NewWithT(t)
		req := middle(t, "early", Journal{Phase: RollBack, Failure: ReasonScaleDown, Message: "too slow"}, nil)
		_, err := f.controller(t, f.unlisted(f.ns+"-early", "ServiceAccount"), clock.RealClock{}).Reconcile(ctx, req)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.states(t)["early"]).To(HaveExactElements(Equal("Standard"), Equal("RolledBack"), ContainSubstring("too slow")))
	})
	t.Run("When programs don't come after the commit they should be deployed again every now and then", func(t *testing.T) {
		g := NewWithT(t)
		clk := clocktesting.NewFakePassiveClock(now)
		req := middle(t, "late", Journal{Phase: Available}, map[string]*string{hyperv1.PrivateCAPITypesAnnotation: ptr.To("true"), hyperv1.HostedClusterScopeAnnotation: nil})
		d := f.program(t, f.ns+"-late", names.ControlPlaneOperator, 1, 0)
		d.Annotations = map[string]string{beforeAnnotation: "1"}
		g.Expect(f.client.Update(ctx, d)).To(Succeed())
		c := f.controller(t, f.client, clk)
		look := func(after time.Duration) int {
			f.mu.Lock()
			f.deploys = 0
			f.mu.Unlock()
			clk.SetTime(now.Add(after))
			_, err := c.Reconcile(ctx, req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.states(t)["late"][2]).To(ContainSubstring("waiting for " + names.ControlPlaneOperator))
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.deploys
		}
		look(0) // a process that has just begun may deploy at once
		g.Expect(look(10 * time.Second)).To(BeZero())
		g.Expect(look(31 * time.Second)).To(Equal(1))
		g.Expect(look(40 * time.Second)).To(BeZero())
		g.Expect(look(62 * time.Second)).To(Equal(1))
	})
}

func TestUnlock(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	const migrate, back, failed = hyperv1.PrivateCAPIMigrateAnnotation, hyperv1.PrivateCAPIRollbackAnnotation, hyperv1.PrivateCAPIMigrationFailedAnnotation
	yes := ptr.To("true")
	for name, tc := range map[string]struct {
		cluster     string
		direction   Direction
		reason      Reason
		private     bool // at the end
		asked       map[string]*string
		migrate     bool
		rollback    bool
		failedAfter string
	}{
		"When it is committed it should leave nothing behind":                                       {"a", Forward, "", true, map[string]*string{migrate: yes}, false, false, ""},
		"When the way back is asked for after the commit it should be done next":                    {"b", Forward, "", true, map[string]*string{migrate: yes, back: yes}, false, true, ""},
		"When the way back is asked for while it is taken back it should be forgotten with it":      {"c", Forward, ReasonScaleDown, false, map[string]*string{migrate: yes, back: yes}, false, false, string(ReasonScaleDown)},
		"When it was taken back since somebody asked for that it should say so":                     {"d", Forward, ReasonRequested, false, map[string]*string{migrate: yes, back: yes}, false, false, string(ReasonRequested)},
		"When it was moved back it should not be moved again by itself":                             {"e", Reverse, "", false, map[string]*string{back: yes}, false, false, string(ReasonRequested)},
		"When it is asked for while it is moved back it should be done next":                        {"f", Reverse, "", false, map[string]*string{back: yes, migrate: yes}, true, false, ""},
		"When a move back was taken back it should stay, and not be tried again before it is asked": {"g", Reverse, ReasonMismatch, true, map[string]*string{back: yes}, false, false, string(ReasonMismatch)},
	} {
		t.Run(name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			hc := f.add(t, tc.cluster, -1)
			if tc.private {
				f.ask(t, tc.cluster, map[string]*string{hyperv1.PrivateCAPITypesAnnotation: yes, hyperv1.HostedClusterScopeAnnotation: nil})
			}
			tc.asked[hyperv1.PrivateCAPIMigrationInProgressAnnotation] = yes
			f.ask(t, tc.cluster, tc.asked)
			g.Expect(f.client.Get(ctx, client.ObjectKeyFromObject(hc), hc)).To(Succeed())
			x := executor{Client: f.client, hc: hc, now: time.Now(), reason: tc.reason, direction: tc.direction}
			g.Expect(x.unlock(ctx)).To(Succeed())
			g.Expect(f.client.Get(ctx, client.ObjectKeyFromObject(hc), hc)).To(Succeed())
			g.Expect(hc.Annotations).NotTo(HaveKey(hyperv1.PrivateCAPIMigrationInProgressAnnotation))
			g.Expect([]any{hc.Annotations[migrate] != "", hc.Annotations[back] != "", hc.Annotations[failed]}).To(Equal([]any{tc.migrate, tc.rollback, tc.failedAfter}))
		})
	}
	t.Run("When something is asked for at the last moment it should be looked at first", func(t *testing.T) {
		g, ctx := NewWithT(t), t.Context()
		hc := f.add(t, "h", -1)
		g.Expect(f.client.Get(ctx, client.ObjectKeyFromObject(hc), hc)).To(Succeed())
		f.ask(t, "h", map[string]*string{migrate: yes})
		x := executor{Client: f.client, hc: hc, now: time.Now(), direction: Reverse}
		g.Expect(x.unlock(ctx)).NotTo(Succeed())
	})
}
