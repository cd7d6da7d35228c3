package process

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestIdentity(t *testing.T) {
	host := func() (string, error) { return "node-1", nil }
	t.Run("When the pod is known it should be its name", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(identity("operator-0", host, true)).To(Equal("operator-0"))
		g.Expect(identity("operator-0", host, false)).To(Equal("operator-0"))
	})
	t.Run("When it runs in a pod it should be the host's name", func(t *testing.T) {
		NewWithT(t).Expect(identity("", host, true)).To(Equal("node-1"))
	})
	t.Run("When it runs outside of pods it should be unique, as two may run on a machine", func(t *testing.T) {
		g := NewWithT(t)
		a, err := identity("", host, false)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a).To(HavePrefix("node-1_"))
		g.Expect(identity("", host, false)).NotTo(Equal(a))
	})
	t.Run("When the host has no name it should say so", func(t *testing.T) {
		_, err := identity("", func() (string, error) { return "", errors.New("none") }, true)
		NewWithT(t).Expect(err).To(MatchError("naming this process for leader election: none"))
	})
}

func TestTimes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(LeaseDuration).To(BeNumerically(">", RenewDeadline), "When the holder has given up nobody should have taken its lease yet")
	g.Expect(RenewDeadline).To(BeNumerically(">", RetryPeriod*6/5), "client-go adds a fifth to pauses, and refuses less")
	// The last request before the outage may have been RetryPeriod ago, and the first one after it may be lost as well.
	g.Expect(RenewDeadline-RetryPeriod*6/5-2*attempt).To(BeNumerically(">", 50*time.Second), "When the API server is away for most of a minute at the worst moment the lease should survive")
}

func TestHeedLeaseDuration(t *testing.T) {
	before := []time.Duration{LeaseDuration, RenewDeadline, RetryPeriod}
	t.Cleanup(func() { LeaseDuration, RenewDeadline, RetryPeriod = before[0], before[1], before[2] })
	for name, tc := range map[string]struct {
		value string
		want  []time.Duration
		err   string
	}{
		"When nothing is said it should leave the times as they are": {"", before, ""},
		"When it is no duration it should say what is":               {"12", before, "such as 12s"},
		"When it is too short it should name the bounds":             {"1s", before, "5s"},
		"When it is said it should give up before another begins":    {"12s", []time.Duration{12 * time.Second, 8 * time.Second, 1600 * time.Millisecond}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			LeaseDuration, RenewDeadline, RetryPeriod = before[0], before[1], before[2]
			err := HeedLeaseDuration(tc.value)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect([]time.Duration{LeaseDuration, RenewDeadline, RetryPeriod}).To(Equal(tc.want))
		})
	}
}
