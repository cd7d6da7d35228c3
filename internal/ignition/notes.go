package ignition

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/ignition/tokens"
)

const (
	// noteBacklog of machines that were served and not written down yet. More are not: the next one will be.
	noteBacklog = 256
	// noteEvery is how often the same event is repeated at most.
	noteEvery = time.Minute
	// noteRetry is after what time a write is tried again.
	noteRetry = 5 * time.Second
)

// notes writes down, beside the requests, that machines came: as an annotation of the token Secret, once, and as events.
type notes struct {
	client    client.Client
	namespace string
	clock     clock.Clock
	events    events.EventRecorder // may be nil
	queue     chan note

	mu      sync.Mutex
	told    map[note]time.Time // when an event was last sent
	reached map[string]bool    // Secrets that have the annotation
}

type note struct {
	secret string
	failed bool
}

func newNotes(c client.Client, namespace string, clk clock.Clock, recorder events.EventRecorder) *notes {
	return &notes{client: c, namespace: namespace, clock: clk, events: recorder, queue: make(chan note, noteBacklog),
		told: map[note]time.Time{}, reached: map[string]bool{}}
}

func (n *notes) served(p *tokens.Payload) { n.add(note{secret: p.Secret}) }
func (n *notes) failed(p *tokens.Payload) { n.add(note{secret: p.Secret, failed: true}) }

// add never blocks a request, and is cheap when there is nothing new to write down.
func (n *notes) add(one note) {
	n.mu.Lock()
	now := n.clock.Now()
	known := now.Sub(n.told[one]) < noteEvery
	if !known {
		n.told[one] = now
	}
	n.mu.Unlock()
	if known {
		return
	}
	select {
	case n.queue <- one:
	default:
	}
}

// forget what was remembered of a Secret that is gone.
func (n *notes) forget(secret string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.told, note{secret: secret})
	delete(n.told, note{secret: secret, failed: true})
	delete(n.reached, secret)
}

// Start implements manager.Runnable.
func (n *notes) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case one := <-n.queue:
			if err := n.write(ctx, one); err != nil && ctx.Err() == nil {
				ctrl.LoggerFrom(ctx).Error(err, "noting that a machine came", "secret", one.secret)
				n.again(ctx, one)
			}
		}
	}
}

// again puts the note back after a while.
func (n *notes) again(ctx context.Context, one note) {
	go func() {
		select {
		case <-ctx.Done():
		case <-n.clock.After(noteRetry):
			select {
			case n.queue <- one:
			default:
			}
		}
	}()
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*notes) NeedLeaderElection() bool { return false }

func (n *notes) write(ctx context.Context, one note) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: one.secret}}
	if n.events != nil {
		if one.failed {
			n.events.Eventf(secret, nil, corev1.EventTypeWarning, "GetPayloadFailed", "Serve", "the payload is not a valid Ignition configuration")
		} else {
			n.events.Eventf(secret, nil, corev1.EventTypeNormal, "GetPayload", "Serve", "a machine got its payload")
		}
	}
	n.mu.Lock()
	done := one.failed || n.reached[one.secret]
	n.mu.Unlock()
	if done {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{hyperv1.TokenSecretIgnitionReachedAnnotation: "True"}}})
	if err != nil {
		return fmt.Errorf("encoding an annotation: %w", err)
	}
	// A merge patch of one annotation: it conflicts with nobody, and is not sent to a Secret that is gone.
	err = n.client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(names.IgnitionServer))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotating secret %s: %w", one.secret, err)
	}
	n.mu.Lock()
	n.reached[one.secret] = true
	n.mu.Unlock()
	return nil
}
