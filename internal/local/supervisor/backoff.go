package supervisor

import "time"

const (
	firstDelay = 200 * time.Millisecond
	maxDelay   = 10 * time.Second
	// steadyAfter is how long a process must have run for its next failure to count as the first.
	steadyAfter = 30 * time.Second
)

// backoff says how long to wait before a process is started again.
type backoff struct {
	failures int
}

// next is called with how long the process ran until it exited.
func (b *backoff) next(ran time.Duration) time.Duration {
	if ran >= steadyAfter {
		b.failures = 0
	}
	delay := firstDelay << min(b.failures, 10)
	b.failures++
	return min(delay, maxDelay)
}
