package nodepool

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

// After a conflict a pass is repeated: at first as soon as a cache has caught up, and with growing gaps while somebody goes on to write the same.
const (
	conflictShortest = 50 * time.Millisecond
	conflictLongest  = 10 * time.Second
)

// conflicts counts those in a row.
type conflicts struct {
	once sync.Once
	rows workqueue.TypedRateLimiter[ctrl.Request]
}

func (c *conflicts) limiter() workqueue.TypedRateLimiter[ctrl.Request] {
	c.once.Do(func() {
		c.rows = workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](conflictShortest, conflictLongest)
	})
	return c.rows
}

// again says when to try again.
func (c *conflicts) again(req ctrl.Request) time.Duration { return c.limiter().When(req) }

// none ends a row of conflicts.
func (c *conflicts) none(req ctrl.Request) { c.limiter().Forget(req) }
