package local

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestProviderHasAMemoryLimit(t *testing.T) {
	g := NewWithT(t)
	spec, err := Platform{}.CAPIProvider(nil, nil)
	g.Expect(err).NotTo(HaveOccurred())
	c := spec.Template.Spec.Containers[0]
	g.Expect(c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory())).To(Equal(1))
	g.Expect(c.Env).To(ContainElement(HaveField("Name", "GOMEMLIMIT")))
}
