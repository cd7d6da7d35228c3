package connector

import (
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// maxKubeconfig bounds the file, in bytes. A Secret holds less.
const maxKubeconfig = 1 << 20

// Target is the cluster that objects go to. It is a manager.Runnable; it never ends by itself, whatever the target does.
//
// The kubeconfig is read again before each probe. When it says something new, the session ends and another one begins with it.
type Target struct {
	// Kubeconfig is the file; empty takes Fallback.
	Kubeconfig string
	// Fallback is used without a file.
	Fallback *rest.Config
	Limits   Limits
	Timing   Timing
	Clock    clock.WithTicker
	// opened is called for each session before anybody uses it; changed when it became usable, or its end is known. Both are set before Start.
	opened  func(*session)
	changed func(ctx context.Context)

	poke chan struct{}

	mu      sync.Mutex
	session *session
	health  health
}

func newTarget(kubeconfig string, fallback *rest.Config, limits Limits, timing Timing, clk clock.WithTicker) *Target {
	return &Target{Kubeconfig: kubeconfig, Fallback: fallback, Limits: limits, Timing: timing, Clock: clk, poke: make(chan struct{}, 1)}
}

// NeedLeaderElection says that only the process that works needs the target.
func (t *Target) NeedLeaderElection() bool { return true }

// current returns the session, or why there is none. Both are nil until that is known.
func (t *Target) current() (*session, *Trouble) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session, t.health.trouble
}

// Poke asks for a probe now, because something went wrong.
func (t *Target) Poke() {
	select {
	case t.poke <- struct{}{}:
	default:
	}
}

// Start implements manager.Runnable.
func (t *Target) Start(ctx context.Context) error {
	var conn *connection
	var read [sha256.Size]byte
	for ctx.Err() == nil {
		cfg, hash, trouble := t.read()
		if trouble == nil && (conn == nil || hash != read) {
			if conn != nil {
				ctrl.LoggerFrom(ctx).Info("the kubeconfig changed")
				t.finish(ctx, nil)
				conn.close()
			}
			conn, trouble = t.dial(cfg)
			read = hash
		}
		if trouble == nil {
			trouble = conn.probe(ctx, t.Limits.Request/3)
		}
		if ctx.Err() == nil { // else it says nothing about the target
			t.sleep(ctx, t.judge(ctx, conn, trouble))
		}
	}
	t.finish(ctx, nil)
	return nil
}

// dial makes a connection, or says why there is none.
func (t *Target) dial(cfg *rest.Config) (*connection, *Trouble) {
	conn, err := connect(cfg, t.Limits, t.Clock)
	if err != nil {
		return nil, unreachable("the kubeconfig can't be used: %v", err)
	}
	return conn, nil
}

// sleep waits, with jitter, so that the connectors of a fleet don't probe in step.
func (t *Target) sleep(ctx context.Context, wait time.Duration) {
	timer := t.Clock.NewTimer(wait + rand.N(wait/10+1))
	defer timer.Stop()
	poke := t.poke
	if s, _ := t.current(); s == nil {
		poke = nil // it is down, and waits as long as it waits
	}
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-poke:
	}
}

// judge makes of a probe what is to be made of it, and returns the time to the next one.
func (t *Target) judge(ctx context.Context, conn *connection, trouble *Trouble) time.Duration {
	s, _ := t.current()
	if trouble == nil && s != nil {
		trouble = s.overflow(ctx)
	}
	t.mu.Lock()
	before := t.health
	next, wait := before.after(trouble, t.Clock.Now(), t.Timing)
	t.health = next
	t.mu.Unlock()
	log := ctrl.LoggerFrom(ctx)
	switch {
	case next.state == up && s == nil:
		if err := t.begin(ctx, conn); err != nil {
			log.Error(err, "beginning to work with the target")
			return t.Timing.First
		}
		log.Info("the target answers")
		t.changed(ctx)
	case next.state == down && (before.state != down || *before.trouble != *next.trouble):
		log.Info("no target to work with", "reason", next.trouble.Reason, "why", next.trouble.Message)
		t.finish(ctx, next.trouble)
		t.changed(ctx)
	}
	return wait
}

func (t *Target) begin(ctx context.Context, conn *connection) error {
	s, err := conn.open(ctx)
	if err != nil {
		return err
	}
	t.opened(s)
	go func() {
		if err := s.watches.Start(s.ctx); err != nil && s.ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "watching the target")
		}
	}()
	t.mu.Lock()
	t.session = s
	t.mu.Unlock()
	return nil
}

// finish ends the session. Without trouble nothing is known about the target afterwards.
func (t *Target) finish(_ context.Context, trouble *Trouble) {
	t.mu.Lock()
	s := t.session
	t.session = nil
	if trouble == nil {
		t.health = health{}
	}
	t.mu.Unlock()
	if s != nil {
		s.end()
		s.close()
	}
}

// read returns what the kubeconfig says, and a hash of it.
func (t *Target) read() (*rest.Config, [sha256.Size]byte, *Trouble) {
	if t.Kubeconfig == "" {
		return t.Fallback, [sha256.Size]byte{}, nil
	}
	file, err := os.Open(t.Kubeconfig)
	if err != nil {
		return nil, [sha256.Size]byte{}, unreachable("the kubeconfig can't be read: %v", err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxKubeconfig+1))
	if err != nil {
		return nil, [sha256.Size]byte{}, unreachable("the kubeconfig can't be read: %v", err)
	}
	if len(raw) > maxKubeconfig {
		return nil, [sha256.Size]byte{}, unreachable("the kubeconfig %s is larger than %d bytes", t.Kubeconfig, maxKubeconfig)
	}
	hash := sha256.Sum256(raw)
	cfg, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		// The parser's message may quote the file.
		return nil, hash, unreachable("the kubeconfig %s is not one", t.Kubeconfig)
	}
	if cfg.Insecure {
		return nil, hash, unreachable("the kubeconfig %s turns off the check of certificates: give it certificate-authority-data", t.Kubeconfig)
	}
	return cfg, hash, nil
}
