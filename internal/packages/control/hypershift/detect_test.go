package hypershift

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	packagemanager "hcp.internal/platform/internal/packages/control/manager"
)

// mapper knows HostedClusters once it was told to.
type mapper struct {
	meta.RESTMapper
	err error
}

func (m *mapper) RESTMapping(gk schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	return &meta.RESTMapping{}, m.err
}

func TestServed(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		there bool
		fails bool
	}{
		"When the kind is served it should say so":                   {nil, true, false},
		"When the kind is unknown it should say so":                  {&meta.NoKindMatchError{}, false, false},
		"When the API server fails it should not take that for a no": {errors.New("connection refused"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			there, err := served(&mapper{err: c.err})
			g.Expect(there).To(Equal(c.there))
			g.Expect(err != nil).To(Equal(c.fails))
		})
	}
}

func TestWaiter(t *testing.T) {
	t.Run("When HostedClusters appear it should end the process to start again", func(t *testing.T) {
		g := NewWithT(t)
		clk := clocktesting.NewFakeClock(time.Now())
		w := &waiter{mapper: &mapper{}, clock: clk}
		ended := make(chan error, 1)
		go func() { ended <- w.Start(t.Context()) }()
		g.Eventually(clk.HasWaiters).WithTimeout(30 * time.Second).Should(BeTrue())
		clk.Step(look)
		g.Eventually(ended).WithTimeout(30 * time.Second).Should(Receive(MatchError(packagemanager.ErrRestart)))
	})
}
