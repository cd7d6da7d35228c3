package policy

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"hcp.internal/platform/internal/local/network"
)

// filter is a kernel's packet filter: it holds the scripts of both tables until somebody empties it.
type filter struct {
	mu     sync.Mutex
	has    map[byte]string
	broken bool
	noted  int
}

func (f *filter) apply(_ context.Context, script string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noted++
	if script == Frames {
		if f.broken {
			return errors.New("no such family")
		}
		f.has[network.FamilyBridge] = script
		return nil
	}
	f.has[network.FamilyInet] = script
	return nil
}

func (f *filter) chain(family byte, _ string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.has[family] != "", nil
}

func (f *filter) lose(families ...byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, family := range families {
		delete(f.has, family)
	}
}

func (f *filter) tables() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.has)
}

func (f *filter) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.noted
}

// enforced runs the loop of an enforcer on an empty cluster, with a clock that the test turns.
func enforced(t *testing.T, f *filter) *clocktesting.FakeClock {
	t.Helper()
	clk := clocktesting.NewFakeClock(time.Now())
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	e := enforcer{Options: Options{Clock: clk, Log: logr.Discard(), Apply: f.apply, Has: f.chain},
		pods: factory.Core().V1().Pods().Lister(), namespaces: factory.Core().V1().Namespaces().Lister(), policies: factory.Networking().V1().NetworkPolicies().Lister()}
	e.frame(t.Context())
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); e.loop(ctx, changed, func() { changed <- struct{}{} }) }()
	t.Cleanup(func() { cancel(); <-ended })
	return clk
}

func TestLook(t *testing.T) {
	for name, families := range map[string][]byte{
		"When a firewall is loaded anew it should put everything in force again": {network.FamilyInet, network.FamilyBridge},
		"When the rules of policies are taken away they should come back":        {network.FamilyInet},
		"When the rules of frames are taken away they should come back":          {network.FamilyBridge},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := &filter{has: map[byte]string{}}
			clk := enforced(t, f)
			g.Eventually(f.tables).Should(Equal(2))
			f.lose(families...)
			g.Eventually(func() int { clk.Step(look / 10); return f.tables() }).Should(Equal(2))
		})
	}
	for name, broken := range map[string]bool{"When the kernel has all rules it should be left alone": false, "When the kernel takes no frames it should not be asked again and again": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := &filter{has: map[byte]string{}, broken: broken}
			clk := enforced(t, f)
			g.Eventually(f.count).Should(Equal(2))
			g.Consistently(func() int { clk.Step(look / 3); return f.count() }).WithTimeout(500 * time.Millisecond).Should(Equal(2))
		})
	}
}
