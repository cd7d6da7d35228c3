//go:build e2e && (upgrade || live || sizes || install)

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// callEvery is short enough that a restart of one API server can't hide between two calls.
const callEvery = 100 * time.Millisecond

// longestSilence is how long a client of a highly available API may go without an answer. One of three API servers ends at a
// time; a client that talks to it notices by a closed connection, or by its own time limit of two seconds at worst.
const longestSilence = 5 * time.Second

// configMapsOf is a client of ConfigMaps by a kubeconfig, without a limit of its own to how often it calls.
func configMapsOf(kubeconfig []byte, timeout time.Duration) (typedcorev1.ConfigMapInterface, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Timeout = -1, timeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.CoreV1().ConfigMaps(metav1.NamespaceDefault), nil
}

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
	failed          []time.Time   // when those that failed began
}

// startCaller starts one that goes on with the kubeconfig as it is now.
func startCaller(t *testing.T, kubeconfig string) *caller {
	t.Helper()
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := callBy(t, content, callTimeout)
	return c
}

// callBy starts one with the content of a kubeconfig, and returns where another client can be put, which it goes on with.
func callBy(t *testing.T, kubeconfig []byte, timeout time.Duration) (*caller, *atomic.Value) {
	t.Helper()
	first, err := configMapsOf(kubeconfig, timeout)
	if err != nil {
		t.Fatal(err)
	}
	now := &atomic.Value{}
	now.Store(first)
	maps := func() typedcorev1.ConfigMapInterface { return now.Load().(typedcorev1.ConfigMapInterface) } // nothing else is put there
	ctx, cancel := context.WithCancel(context.Background())
	c := &caller{cancel: cancel, kinds: map[string]*figures{}}
	t.Cleanup(c.stop)
	name := fmt.Sprintf("written-%d", time.Now().UnixNano())
	if _, err := maps().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.loop(ctx, "read", func(ctx context.Context, _ int) error {
		_, err := maps().Get(ctx, name, metav1.GetOptions{})
		return err
	})
	c.loop(ctx, "write", func(ctx context.Context, n int) error {
		_, err := maps().Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": fmt.Sprint(n)}}, metav1.UpdateOptions{})
		return err
	})
	return c, now
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
			began := time.Now()
			err := call(ctx, n)
			if ctx.Err() != nil {
				return
			}
			c.note(f, kind, began, err)
		}
	})
}

func (c *caller) note(f *figures, kind string, began time.Time, err error) {
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
	f.failed = append(f.failed, began)
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

// expectNone ends the calls and fails for each kind of which one failed.
func (c *caller) expectNone(t *testing.T, during string) {
	t.Helper()
	c.expectNoOutage(t, during)
	for kind, f := range c.kinds {
		if f.failures > 0 {
			t.Errorf("%s: %d of %d %s calls failed, and none may", during, f.failures, f.calls, kind)
		}
	}
}

// expectNoneBut is expectNone, but for writes that reached etcd while it had no leader. Those are told.
func (c *caller) expectNoneBut(t *testing.T, during string, h *handovers) {
	t.Helper()
	c.stop()
	f, lost := c.kinds["write"], 0
	for _, began := range f.failed {
		if h.during(began) {
			lost++
			t.Logf("%s: the write of %s reached etcd when it had no leader, and failed", during, began.UTC().Format("15:04:05.000"))
		}
	}
	if lost == 0 || lost < f.failures {
		c.expectNone(t, during)
		return
	}
	// It has waited for its own limit, which is the longest silence that is allowed. More than that has other failures.
	delete(c.kinds, "write")
	t.Logf("%s: write calls: %d, failed for want of a leader: %d, and no other", during, f.calls, lost)
	c.expectNone(t, during)
}

// awaitRollouts waits until every component of a control plane runs what is wanted.
func awaitRollouts(t *testing.T, namespace string, timeout time.Duration) {
	t.Helper()
	eventually(t, timeout, "rollouts", func() error {
		out, err := management().try(t, "get", "controlplanecomponents", "-n", namespace, "-o",
			`jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="RolloutComplete")].status} {end}`)
		if err != nil {
			return err
		}
		for pair := range strings.FieldsSeq(out) {
			if _, status, _ := strings.Cut(pair, "="); status != "True" {
				return errors.New("not all are complete: " + out)
			}
		}
		return nil
	})
}
