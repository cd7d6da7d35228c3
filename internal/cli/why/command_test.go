package why

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/rolls"
	"hcp.internal/platform/internal/why"
)

func TestTarget(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want why.Object
		err  string
	}{
		"When a short name is used it should be known":           {args: []string{"hc/demo"}, want: why.Object{Kind: "HostedCluster", Name: "demo"}},
		"When kind and name stand apart it should be the same":   {args: []string{"NodePool", "w"}, want: why.Object{Kind: "NodePool", Name: "w"}},
		"When the kind is unknown it should list those that are": {args: []string{"secret/x"}, err: "use one of hostedcluster, nodepool"},
		"When the name is missing it should say how to write it": {args: []string{"hc"}, err: "write hc/NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := Target(tc.args)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestPrint(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	hc, pod := why.Object{Kind: "HostedCluster", Namespace: "clusters", Name: "demo"}, why.Object{Kind: "Pod", Namespace: "clusters-demo", Name: "etcd-1"}
	since := metav1.NewTime(noon.Add(-7 * time.Minute))
	for name, tc := range map[string]struct {
		answer why.Answer
		want   string
	}{
		"When something is broken the cause should be on the first line": {
			why.Answer{Object: hc, State: why.Broken, Cause: "pod etcd-1 fits on no node", Since: &since, Do: "add nodes", Rule: "pod-unschedulable", Chain: []why.Link{
				{Object: hc, Field: "status.conditions[Available]", Text: "False X"}, {Object: pod, Field: "status", Text: "Unschedulable"}}, Notes: []string{"a note"}},
			`HostedCluster clusters/demo: pod etcd-1 fits on no node
  since  2026-11-23T11:53:00Z (7m0s)
  seen   HostedCluster clusters/demo status.conditions[Available]: False X
         Pod clusters-demo/etcd-1 status: Unschedulable
  do     add nodes
  heals  no: someone has to act
  rule   pod-unschedulable, see docs/why.md
  note   a note
`},
		"When all is well it should be one line": {why.Answer{Object: hc, State: why.Well, Cause: "nothing is wrong", Heals: true}, "HostedCluster clusters/demo: nothing is wrong\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var b bytes.Buffer
			g.Expect(Print(&b, tc.answer, noon)).To(Succeed())
			g.Expect(b.String()).To(Equal(tc.want))
		})
	}
}

func TestGone(t *testing.T) {
	note, _ := rolls.Next(rolls.Note{}, false, "a", map[string]string{"release": "1.36.2"}, time.Date(2026, 11, 23, 11, 0, 0, 0, time.UTC))
	note, _ = rolls.Next(note, true, "b", map[string]string{"release": "1.36.3"}, time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	text, err := note.Text()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	snap := &why.Snapshot{NodePools: []hyperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "workers", Annotations: map[string]string{hyperv1.NodePoolRollsAnnotation: text}}}}}
	t.Run("When a Machine is gone it should say why those of its pool were replaced", func(t *testing.T) {
		NewWithT(t).Expect(gone(snap, why.Object{Kind: "Machine", Namespace: "clusters-demo", Name: "workers-x7k2p"})).To(MatchError(And(
			ContainSubstring("there is no Machine clusters-demo/workers-x7k2p"), ContainSubstring("replaced as of 2026-11-23T12:00:00Z: release: 1.36.2 → 1.36.3"))))
	})
	t.Run("When something else is gone it should say that", func(t *testing.T) {
		NewWithT(t).Expect(gone(snap, why.Object{Kind: "NodePool", Name: "workers-x7k2p"})).To(MatchError(Not(ContainSubstring("replaced"))))
	})
}
