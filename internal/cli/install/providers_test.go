package install

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/testenv"
)

func TestLeaveProviders(t *testing.T) {
	g := NewWithT(t)
	c := testenv.Start(t).Client(t, connect.Scheme())
	o := Options{Platforms: []string{"Agent"}, capi: &capiChoice{}}
	crds, err := providerCRDs(o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(crds)).To(BeNumerically(">", 1))
	var all []client.Object
	for _, crd := range crds {
		all = append(all, crd)
	}
	var out bytes.Buffer
	leave := func() []client.Object {
		t.Helper()
		out.Reset()
		got, err := leaveProviders(t.Context(), c, o, progress.New(&out, clock.RealClock{}), append([]client.Object{}, all...))
		g.Expect(err).NotTo(HaveOccurred())
		return got
	}
	g.Expect(leave()).To(HaveLen(len(all)), "When there are none all should be installed")

	theirs, ours := crds[0].DeepCopy(), crds[1].DeepCopy()
	g.Expect(c.Create(t.Context(), theirs, client.FieldOwner("clusterctl"))).To(Succeed())
	_, err = connect.Apply(t.Context(), c, ours)
	g.Expect(err).NotTo(HaveOccurred())
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{theirs, ours} {
		t.Cleanup(func() { _ = c.Delete(t.Context(), crd) })
	}
	g.Expect(leave()).To(HaveLen(len(all)-1), "When a provider is there it should be left alone")
	g.Expect(out.String()).To(ContainSubstring("left alone CustomResourceDefinition " + theirs.Name + ": someone else installed it\n"))
	g.Expect(out.String()).NotTo(ContainSubstring(ours.Name))
}
