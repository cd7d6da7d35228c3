package nodepool

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestConflicts(t *testing.T) {
	g, c := NewWithT(t), &conflicts{}
	a, b := ctrl.Request{NamespacedName: types.NamespacedName{Name: "a"}}, ctrl.Request{NamespacedName: types.NamespacedName{Name: "b"}}
	g.Expect(c.again(a)).To(Equal(50*time.Millisecond), "a cache catches up in no time")
	var last time.Duration
	for range 20 {
		next := c.again(a)
		g.Expect(next).To(BeNumerically(">=", last))
		last = next
	}
	g.Expect(last).To(Equal(10*time.Second), "somebody writes the same again and again")
	g.Expect(c.again(b)).To(Equal(50*time.Millisecond), "another pool has nothing to do with it")
	c.none(a)
	g.Expect(c.again(a)).To(Equal(50 * time.Millisecond))
}
