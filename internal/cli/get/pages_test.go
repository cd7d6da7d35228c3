package get

import (
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/testenv"
	"hcp.internal/platform/internal/why"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func TestPages(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	c, ns := env.Client(t, connect.Scheme()), env.Namespace(t)
	const total, size = 5, 2
	for i := range total {
		hc := testenv.HostedCluster(ns, fmt.Sprintf("demo-%d", i))
		g.Expect(c.Create(t.Context(), hc)).To(Succeed())
		if i < size { // the first page alone is not well
			hc.Status.Conditions = []metav1.Condition{{Type: hyperv1.ValidReleaseImage, Status: metav1.ConditionFalse, Reason: "NotFound", Message: "no image " + hc.Name, LastTransitionTime: metav1.Now()}}
			g.Expect(c.Status().Update(t.Context(), hc)).To(Succeed())
		}
	}
	t.Run("When a list has several pages each object should be there, with what is its own alone", func(t *testing.T) {
		g := NewWithT(t)
		items, err := clusters(t.Context(), query{Client: c, namespace: ns, selector: labels.Everything(), now: time.Now(), pageSize: size})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(items).To(HaveLen(total))
		for i, item := range items {
			g.Expect(item.Name).To(Equal(fmt.Sprintf("demo-%d", i)))
			if i < size {
				g.Expect(item.Health).To(Equal(why.Blocked))
				g.Expect(item.Cause).To(Equal("no image " + item.Name))
			} else {
				g.Expect(item.Health).To(Equal(why.Unknown))
			}
		}
	})
}
