package world

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/why"
)

func TestJudge(t *testing.T) {
	t.Run("When time passes and nothing changes it should tell that it takes too long", func(t *testing.T) {
		g, w, now := NewWithT(t), New(), time.Now()
		s := &store{w: w, kind: Clusters, unwell: map[Key]*item{}, make: func(o any, at time.Time) any { return ClusterOf(o.(*hyperv1.HostedCluster), at) }}
		hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", CreationTimestamp: metav1.NewTime(now), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}}}}
		g.Expect(s.Add(hc)).To(Succeed())
		key := Key{"clusters", "demo"}
		young := *w.Cluster(key)
		_, seq, _ := w.Since(0)
		s.judge(now.Add(time.Second))
		_, same, _ := w.Since(0)
		g.Expect(same).To(Equal(seq), "nothing is another")
		s.judge(now.Add(time.Hour))
		old := w.Cluster(key)
		g.Expect([]any{old.Health, old.Cause}).NotTo(Equal([]any{young.Health, young.Cause}))
		g.Expect(old.Health).To(Equal(ClusterOf(hc, now.Add(time.Hour)).Health))
		changes, _, _ := w.Since(seq)
		g.Expect(changes).To(Equal([]Change{{Clusters, key}}))

		g.Expect(s.Delete(hc)).To(Succeed())
		s.judge(now.Add(2 * time.Hour))
		g.Expect(w.Cluster(key)).To(BeNil())
	})
	t.Run("When an object is well it should not be kept", func(t *testing.T) {
		g, w := NewWithT(t), New()
		s := &store{w: w, kind: Clusters, unwell: map[Key]*item{}, make: func(any, time.Time) any { return &Cluster{Health: why.Healthy} }}
		g.Expect(s.Add(&hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}})).To(Succeed())
		g.Expect(s.unwell).To(BeEmpty())
	})
}
