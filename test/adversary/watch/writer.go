package watch

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/test/adversary/world"
)

const (
	// writeEvery is how often a hosted API is written to.
	writeEvery = 500 * time.Millisecond
	// keys of a writer that change all the time. Every keepEvery-th write makes one that then stays.
	keys, keepEvery = 8, 5
	field           = "value"
)

// Writer writes ConfigMaps to one hosted API, one at a time, and holds it to what it acknowledged.
//
// Each change names the version that it is made from: a request that nobody waits for any more, and that is carried out late, then changes nothing that
// came after it.
type Writer struct {
	// Name of the hosted cluster, for people.
	Name string
	// Connect returns a client once there is an API.
	Connect  func(ctx context.Context) (client.Client, error)
	Violated func(invariant, what string)

	ledger        Ledger
	writes, fails atomic.Int64
	client        client.Client
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	for n := 0; world.Wait(ctx, writeEvery); n++ {
		if !w.connected(ctx) {
			continue
		}
		key := fmt.Sprintf("changes-%d", n%keys)
		if n%keepEvery == 0 {
			key = fmt.Sprintf("stays-%d", n)
		}
		if err := w.write(ctx, key); err != nil {
			w.fails.Add(1)
		} else {
			w.writes.Add(1)
		}
	}
}

func (w *Writer) connected(ctx context.Context) bool {
	if w.client == nil {
		c, err := w.Connect(ctx)
		if err != nil {
			return false
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: world.Tenant, Labels: map[string]string{world.Label: "true"}}}
		if client.IgnoreAlreadyExists(c.Create(ctx, ns)) != nil {
			return false
		}
		w.client = c
	}
	return true
}

// write reads a key, judges what it reads, and writes the next value. The error says only that there was no answer.
func (w *Writer) write(ctx context.Context, key string) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: world.Tenant, Name: key}}
	found, err := w.read(ctx, cm)
	if err != nil {
		return err
	}
	value := w.ledger.Next(key)
	cm.Data = map[string]string{field: strconv.Itoa(value)}
	w.ledger.Try(key, value)
	if found {
		err = w.client.Update(ctx, cm)
	} else {
		cm.ResourceVersion = ""
		err = w.client.Create(ctx, cm)
	}
	if err == nil {
		w.ledger.Acked(key, value)
	}
	return err
}

func (w *Writer) read(ctx context.Context, cm *corev1.ConfigMap) (found bool, err error) {
	key := cm.Name
	err = w.client.Get(ctx, client.ObjectKeyFromObject(cm), cm)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	found = err == nil
	value, _ := strconv.Atoi(cm.Data[field])
	cm.Name, cm.Namespace = key, world.Tenant
	if e := w.ledger.Check(key, value, found); e != nil {
		w.Violated("acknowledged writes", w.Name+": "+e.Error())
	}
	return found, nil
}

// Verify reads back everything that was ever acknowledged.
func (w *Writer) Verify(ctx context.Context, patience time.Duration) (summary string, err error) {
	known := w.ledger.Keys()
	for _, key := range known {
		err := world.Until(ctx, patience, func(ctx context.Context) error {
			_, err := w.read(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: world.Tenant, Name: key}})
			return err
		})
		if err != nil {
			return "", fmt.Errorf("%s: reading %s: %w", w.Name, key, err)
		}
	}
	return fmt.Sprintf("%d writes acknowledged, %d not answered, %d objects read back", w.writes.Load(), w.fails.Load(), len(known)), nil
}
