package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWait(t *testing.T) {
	t.Run("When a cache lags it should be looked at less and less often, and at once when it has caught up", func(t *testing.T) {
		g := NewWithT(t)
		w := &Writer{}
		obj := func(version string) *metav1.ObjectMeta {
			return &metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: version}
		}
		g.Expect(w.Wait(obj("5"))).To(BeZero())
		w.Wrote(obj(""), "9")
		var waits []time.Duration
		for range 10 {
			waits = append(waits, w.Wait(obj("5")))
		}
		g.Expect(waits[:3]).To(Equal([]time.Duration{20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond}))
		g.Expect(waits[9]).To(Equal(time.Second))
		g.Expect(w.Wait(obj("9"))).To(BeZero())
		w.Wrote(obj(""), "12")
		g.Expect(w.Wait(obj("9"))).To(Equal(20 * time.Millisecond))
	})
}
