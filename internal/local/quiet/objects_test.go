package quiet

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func TestServer(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	env := testenv.Start(t)
	ns := env.Namespace(t)
	c, err := kubernetes.NewForConfig(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	meta := metav1.ObjectMeta{Name: "x"}
	_, err = c.CoordinationV1().Leases(ns).Create(ctx, &coordinationv1.Lease{ObjectMeta: meta}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, kind := range []string{"Lease", "Pod"} {
		_, err = c.CoreV1().Events(ns).Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "e"}, InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: ns}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	cm, err := c.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "1"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	s := &Server{Name: "test", Config: env.Config}
	g.Expect(s.connect()).To(Succeed())
	g.Expect(len(s.resources)).To(BeNumerically(">", 60), "When a server has definitions of ours and of Cluster API they should be looked at, too")
	before, err := s.contents(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	kinds := map[string]int{}
	for _, o := range before {
		if o.namespace == ns {
			kinds[o.kind]++
		}
	}
	g.Expect(kinds).To(Equal(map[string]int{"ConfigMap": 1, "Event": 1}), "leases and events about them are left out, and what two groups serve counts once")
	known, err := s.known(ctx)
	g.Expect(err).NotTo(HaveOccurred())

	cm.Data["a"] = "2"
	_, err = c.CoreV1().ConfigMaps(ns).Update(ctx, cm, metav1.UpdateOptions{FieldManager: "somebody"})
	g.Expect(err).NotTo(HaveOccurred())
	after, err := s.contents(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	r := judge(observation{length: 1, before: before, after: after}, DefaultBounds())
	g.Expect(r.Problems).To(ConsistOf(And(HavePrefix("test: ConfigMap "+ns+"/x was written by"), ContainSubstring("somebody"), HaveSuffix(`: data.a: "1" → "2"`))))
	now, err := s.known(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(moved(known, now)).To(ConsistOf("test: configmaps " + ns + "/x"))
}
