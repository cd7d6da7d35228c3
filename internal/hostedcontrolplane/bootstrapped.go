package hostedcontrolplane

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// bootstrapFresh is how long the first objects of a hosted cluster are believed to be there.
const bootstrapFresh = 5 * time.Second

// bootstrapper keeps the first objects of the hosted cluster. Passes wait for them until they were seen once. From then on they are looked at beside the
// passes: the hosted API hangs as soon as its etcd is gone, and a pass that waits for it tells nobody that etcd is gone.
type bootstrapper struct {
	clock clock.PassiveClock
	// ensure makes what is missing, by the administrator's kubeconfig.
	ensure func(ctx context.Context, kubeconfig []byte) error
	// changed is called when the objects, which were there, can't be made.
	changed func(context.Context)
	// background ends with the process.
	background context.Context

	mu      sync.Mutex
	of      [sha256.Size]byte // the kubeconfig by which they were seen
	good    bool
	at      time.Time // of the last look, or of the one that is to come
	running bool
}

// Ensure fails while the objects are not known to be there.
func (b *bootstrapper) Ensure(ctx context.Context, kubeconfig []byte) error {
	of := sha256.Sum256(kubeconfig)
	b.mu.Lock()
	known := b.good && b.of == of
	if known && !b.running {
		b.running = true
		go b.look(kubeconfig, b.at.Add(bootstrapFresh).Sub(b.clock.Now()))
	}
	b.mu.Unlock()
	if known {
		return nil
	}
	err := b.ensure(ctx, kubeconfig)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of, b.good, b.at = of, err == nil, b.clock.Now()
	return err
}

// look looks again, after wait.
func (b *bootstrapper) look(kubeconfig []byte, wait time.Duration) {
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	select {
	case <-b.background.Done():
		return
	case <-timer.C:
	}
	err := b.ensure(b.background, kubeconfig)
	if b.background.Err() != nil {
		return
	}
	lost := err != nil && answered(err)
	if err != nil && !lost {
		ctrl.LoggerFrom(b.background).V(1).Info("the hosted API could not be asked for its first objects", "error", err.Error())
	}
	b.mu.Lock()
	b.running, b.at = false, b.clock.Now()
	if b.of == sha256.Sum256(kubeconfig) && lost {
		b.good = false
	}
	b.mu.Unlock()
	if lost {
		b.changed(b.background)
	}
}

// answered tells whether an API server has refused, rather than been out of reach or too busy, of which conditions tell otherwise.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError && status.Status().Code != http.StatusTooManyRequests
}
