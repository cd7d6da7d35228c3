package management

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
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
