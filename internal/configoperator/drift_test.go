package configoperator

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// brief is a hosted API that ends each watch after a while.
type brief struct {
	client.WithWatch
	lasts   time.Duration
	watches atomic.Int32
}

func (b *brief) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*metav1.PartialObjectMetadataList).ResourceVersion = "1"
	return nil
}

func (b *brief) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	b.watches.Add(1)
	w := watch.NewFakeWithOptions(watch.FakeOptions{})
	time.AfterFunc(b.lasts, w.Stop)
	return w, nil
}

func TestBriefWatches(t *testing.T) {
	for _, c := range []struct {
		name          string
		lasts         time.Duration
		least, atMost int
	}{
		{"When an API ends watches at once it should be asked once a minute at most, after a short while", 0, 30, 70},
		{"When watches last as long as usual each should be followed by the next at once", 5 * time.Minute, 11, 13},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				api := &brief{lasts: c.lasts}
				d := NewDrift(api, make(chan struct{}, 1))
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- d.Start(ctx) }()
				d.Ensure(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
				time.Sleep(time.Hour) // of the bubble's own clock
				g.Expect(int(api.watches.Load())).To(And(BeNumerically(">=", c.least), BeNumerically("<=", c.atMost)))
				cancel()
				g.Expect(<-ended).To(Succeed())
			})
		})
	}
}
