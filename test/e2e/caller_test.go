//go:build e2e && (upgrade || live)

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// callEvery is short enough that a restart of one API server can't hide between two calls.
const callEvery = 100 * time.Millisecond

// longestSilence is how long a client of a highly available API may go without an answer. One of three API servers ends at a
// time; a client that talks to it notices by a closed connection, or by its own time limit of two seconds at worst.
const longestSilence = 5 * time.Second

// caller is a client that reads and writes all the time and counts what fails. It never tries a call again: what a person's
// tool would hide behind a second try is counted here.
type caller struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex
	kinds   map[string]*figures
	samples []string // first errors, for people
}

// figures are about one kind of call.
type figures struct {
	calls, failures int
	lastSuccess     time.Time
	silence         time.Duration // longest time between two successes
}

func startCaller(t *testing.T, kubeconfig string) *caller {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Timeout = -1, callTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{cancel: cancel, kinds: map[string]*figures{}}
	t.Cleanup(c.stop)
	name := fmt.Sprintf("written-%d", time.Now().UnixNano())
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.loop(ctx, "read", func(ctx context.Context, _ int) error {
		_, err := maps.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	c.loop(ctx, "write", func(ctx context.Context, n int) error {
		_, err := maps.Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": fmt.Sprint(n)}}, metav1.UpdateOptions{})
		return err
	})
	return c
}

func (c *caller) loop(ctx context.Context, kind string, call func(ctx context.Context, n int) error) {
	f := &figures{lastSuccess: time.Now()}
	c.kinds[kind] = f
	c.ended.Go(func() {
		ticker := time.NewTicker(callEvery)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			err := call(ctx, n)
			if ctx.Err() != nil {
				return
			}
			c.note(f, kind, err)
		}
	})
}

func (c *caller) note(f *figures, kind string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	f.calls++
	if err == nil {
		f.silence = max(f.silence, now.Sub(f.lastSuccess))
		f.lastSuccess = now
		return
	}
	f.failures++
	const enough = 10
	if len(c.samples) < enough {
		c.samples = append(c.samples, fmt.Sprintf("%s %s: %v", now.Format(time.TimeOnly), kind, err))
	}
}

func (c *caller) stop() {
	c.cancel()
	c.ended.Wait()
}

// expectNoOutage is expectSilence of a highly available API.
func (c *caller) expectNoOutage(t *testing.T, during string) {
	t.Helper()
	c.expectSilence(t, during, longestSilence)
}

// expectSilence ends the calls, prints the figures, and fails when there was no answer for longer than allowed.
func (c *caller) expectSilence(t *testing.T, during string, allowed time.Duration) {
	t.Helper()
	c.stop()
	for kind, f := range c.kinds {
		// What is still open at the end counts as well.
		f.silence = max(f.silence, time.Since(f.lastSuccess))
		t.Logf("%s: %s calls: %d, failed: %d, longest time without an answer: %s", during, kind, f.calls, f.failures, f.silence.Round(time.Millisecond))
		if f.calls == 0 || f.silence > allowed {
			t.Errorf("%s: %s calls had no answer for %s, allowed are %s", during, kind, f.silence, allowed)
		}
	}
	for _, sample := range c.samples {
		t.Log(sample)
	}
}
