package pki

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestWrongClock(t *testing.T) {
	g := NewWithT(t)
	wrong := errors.New("the clock of this machine is 8760h0m0s ahead")
	clk := clocktesting.NewFakePassiveClock(noon)
	c := fake.NewClientBuilder().Build()
	r := &Reconciler{Client: c, Owner: "test", Clock: clk, Keys: testKeys, Rand: rand.Reader, ClockErr: func() error { return wrong }}
	secrets := func() int {
		list := &corev1.SecretList{}
		g.Expect(c.List(t.Context(), list)).To(Succeed())
		return len(list.Items)
	}
	plan, err := reconcile(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(plan.Problems).To(ContainElement(MatchError(ContainSubstring("no certificates are issued: the clock of this machine"))), "When the clock is wrong it should say so")
	g.Expect(plan.RecheckAfter).To(Equal(minRecheck))
	g.Expect(secrets()).To(BeZero(), "When the clock is wrong it should issue nothing")

	wrong = nil
	_, err = reconcile(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	made := secrets()
	g.Expect(made).To(BeNumerically(">", 20), "When the clock is right again it should")

	before := &corev1.SecretList{}
	g.Expect(c.List(t.Context(), before)).To(Succeed())
	clk.SetTime(noon.Add(364 * 24 * time.Hour))
	wrong = errors.New("ahead")
	_, err = reconcile(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	after := &corev1.SecretList{}
	g.Expect(c.List(t.Context(), after)).To(Succeed())
	g.Expect(after.Items).To(Equal(before.Items), "When the clock jumps ahead no certificate should be replaced")
}
