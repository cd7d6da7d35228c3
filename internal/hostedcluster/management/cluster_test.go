package management

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hcp.internal/platform/internal/controlplane/component"
)

// countingMapper counts what a mapper would ask the API server.
type countingMapper struct {
	meta.RESTMapper
	asked int
}

func (m *countingMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.asked++
	return m.RESTMapper.RESTMapping(gk, versions...)
}

func TestAccessible(t *testing.T) {
	monitor := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}
	known := meta.NewDefaultRESTMapper(nil)
	mapper := &countingMapper{RESTMapper: known}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	m := &Cluster{Mapper: mapper, Clock: clock}
	t.Run("When a kind is not served it should ask once a minute", func(t *testing.T) {
		g := NewWithT(t)
		for range 5 {
			g.Expect(m.Accessible(t.Context(), monitor)).To(BeFalse())
		}
		g.Expect(mapper.asked).To(Equal(1))
	})
	t.Run("When a kind is installed it should be found within a minute", func(t *testing.T) {
		g := NewWithT(t)
		known.Add(monitor, meta.RESTScopeNamespace)
		clock.SetTime(clock.Now().Add(absentFor))
		g.Expect(m.Accessible(t.Context(), monitor)).To(BeTrue())
	})
}

func TestDescribe(t *testing.T) {
	node := func(name, zone, serves string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone, component.RequestServingLabel: serves}}}
	}
	t.Run("When nodes are kept for requests of users it should count the others", func(t *testing.T) {
		g := NewWithT(t)
		m := &Cluster{Reader: fake.NewClientBuilder().WithObjects(node("a", "z1", ""), node("b", "z2", "false"), node("c", "z2", ""), node("d", "z3", "true")).Build()}
		facts, err := m.Describe(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(facts).To(Equal(component.Management{Nodes: 3, Zones: 2}))
	})
}
