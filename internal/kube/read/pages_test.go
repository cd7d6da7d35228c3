package read_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func TestPages(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	g.Expect(hyperv1.AddToScheme(scheme)).To(Succeed())
	c, ns := env.Client(t, scheme), env.Namespace(t)
	const total, size = 5, 2
	for i := range total {
		name := fmt.Sprintf("demo-%d", i)
		hc := testenv.HostedCluster(ns, name)
		hc.Annotations = map[string]string{"own": name, name: "own"}
		g.Expect(c.Create(t.Context(), hc)).To(Succeed())
	}
	t.Run("When objects of a page are kept the next page should not change them", func(t *testing.T) {
		g := NewWithT(t)
		list := &hyperv1.HostedClusterList{}
		var kept []hyperv1.HostedCluster
		var pointers []*hyperv1.HostedCluster
		var sizes []int
		for err := range read.Pages(t.Context(), c, list, size, client.InNamespace(ns)) {
			g.Expect(err).NotTo(HaveOccurred())
			sizes = append(sizes, len(list.Items))
			kept = append(kept, list.Items...)
			for i := range list.Items {
				pointers = append(pointers, &list.Items[i])
			}
		}
		g.Expect(sizes).To(Equal([]int{2, 2, 1}))
		g.Expect(kept).To(HaveLen(total))
		for i := range total {
			name := fmt.Sprintf("demo-%d", i)
			for _, hc := range []*hyperv1.HostedCluster{&kept[i], pointers[i]} {
				g.Expect(hc.Name).To(Equal(name))
				g.Expect(hc.Annotations).To(Equal(map[string]string{"own": name, name: "own"}))
			}
		}
	})
	t.Run("When a caller has enough it should ask for no other page", func(t *testing.T) {
		g := NewWithT(t)
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(hyperv1.GroupVersion.WithKind("HostedClusterList"))
		asked := &counting{Reader: c}
		for err := range read.Pages(t.Context(), asked, list, size, client.InNamespace(ns)) {
			g.Expect(err).NotTo(HaveOccurred())
			break
		}
		g.Expect(asked.lists).To(Equal(1))
		g.Expect(list.Items).To(HaveLen(size))
	})
	t.Run("When a request fails it should say so once, and end", func(t *testing.T) {
		g := NewWithT(t)
		var errs []error
		for err := range read.Pages(t.Context(), &counting{Reader: c, fail: errors.New("refused")}, &hyperv1.HostedClusterList{}, size) {
			errs = append(errs, err)
		}
		g.Expect(errs).To(ConsistOf(MatchError("refused")))
	})
}

// counting counts requests, and fails them when it is told to.
type counting struct {
	client.Reader
	lists int
	fail  error
}

func (c *counting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists++
	if c.fail != nil {
		return c.fail
	}
	return c.Reader.List(ctx, list, options...)
}
