package policy

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/testenv"
)

// kernel notes scripts, and refuses the first one with rules.
type kernel struct {
	mu      sync.Mutex
	scripts []string
	refused bool
}

func (k *kernel) apply(_ context.Context, script string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if script != Frames && !k.refused {
		k.refused = true
		return errors.New("busy")
	}
	k.scripts = append(k.scripts, script)
	return nil
}

func (k *kernel) last() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.scripts) == 0 {
		return ""
	}
	return k.scripts[len(k.scripts)-1]
}

func (k *kernel) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.scripts)
}

// TestRun follows an API server.
func TestRun(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	c := env.Client(t, clientgoscheme.Scheme)
	ns := env.Namespace(t)
	k := &kernel{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Config: env.Config, Clock: clock.RealClock{}, Log: logr.Discard(), Apply: k.apply,
			Has: func(byte, string) (bool, error) { return true, nil }})
	}()
	eventually := func(match OmegaMatcher) {
		t.Helper()
		g.Eventually(k.last).WithTimeout(time.Minute).WithPolling(50 * time.Millisecond).Should(match)
	}
	eventually(ContainSubstring("chain pods")) // although the kernel refused once

	deny := policyOf(t, ns, `{podSelector: {matchLabels: {app: x}}, policyTypes: [Ingress]}`)
	g.Expect(c.Create(t.Context(), deny)).To(Succeed())
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x", Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	g.Expect(c.Create(t.Context(), p)).To(Succeed())
	p.Status.PodIP, p.Status.PodIPs, p.Status.Phase = "10.244.0.77", []corev1.PodIP{{IP: "10.244.0.77"}}, corev1.PodRunning
	g.Expect(c.Status().Update(t.Context(), p)).To(Succeed())
	eventually(ContainSubstring("ip daddr vmap { 10.244.0.77 : jump"))

	before := k.count()
	p.Status.Message = "nothing that rules follow from"
	g.Expect(c.Status().Update(t.Context(), p)).To(Succeed())
	p.Labels = nil
	g.Expect(c.Update(t.Context(), p)).To(Succeed())
	eventually(Not(ContainSubstring("10.244.0.77 : jump")))
	g.Expect(k.count()).To(Equal(before+1), "one change of rules for the one change that matters")

	p.Status.Phase = corev1.PodSucceeded
	g.Expect(c.Status().Update(t.Context(), p)).To(Succeed())
	eventually(Not(ContainSubstring("10.244.0.77")))
	g.Expect(client.IgnoreNotFound(c.Delete(t.Context(), p, client.GracePeriodSeconds(0)))).To(Succeed())
	cancel()
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	g.Expect(strings.Count(k.last(), "table inet")).To(BeNumerically(">", 0), "rules stay")
}
