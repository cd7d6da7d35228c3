package skew

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestErr(t *testing.T) {
	for name, tc := range map[string]struct {
		theirs time.Duration // the server's clock, from noon, which is when we ask
		took   time.Duration
		later  time.Duration // from the answer until it matters
		want   string
	}{
		"When clocks agree it should find nothing":                       {took: time.Second},
		"When the difference is harmless it should find nothing":         {theirs: -2 * time.Minute},
		"When ours is an hour ahead it should say so":                    {theirs: -time.Hour, want: "1h0m0s ahead of"},
		"When ours is a year behind it should say so":                    {theirs: 365 * 24 * time.Hour, want: "8760h0m0s behind"},
		"When the answer took long it should prove less":                 {theirs: 20 * time.Second, took: 20 * time.Second},
		"When the answer took for ever it should prove nothing":          {theirs: time.Hour, took: time.Minute},
		"When nothing was heard for long it should not go by what was":   {theirs: time.Hour, later: 6 * time.Minute},
		"When our clock was set back since it should wait for an answer": {theirs: -time.Hour, later: -time.Hour},
		"When it was heard a minute ago it should still count":           {theirs: -time.Hour, later: time.Minute, want: "1h0m0s ahead of"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			clk := clocktesting.NewFakePassiveClock(noon)
			w := &Watch{Clock: clk}
			w.note(noon.Add(tc.theirs).Format(http.TimeFormat), noon, noon.Add(tc.took))
			clk.SetTime(noon.Add(tc.took + tc.later))
			if tc.want == "" {
				g.Expect(w.Err()).To(Succeed())
				return
			}
			g.Expect(w.Err()).To(MatchError(ContainSubstring(tc.want)))
		})
	}
	t.Run("When nothing was asked yet it should find nothing", func(t *testing.T) {
		NewWithT(t).Expect((&Watch{Clock: clocktesting.NewFakePassiveClock(noon)}).Err()).To(Succeed())
	})
}

func TestAttach(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL}
	w := &Watch{Clock: clocktesting.NewFakePassiveClock(time.Now().Add(24 * time.Hour))}
	w.Attach(cfg)
	c, err := rest.HTTPClientFor(cfg)
	g.Expect(err).NotTo(HaveOccurred())
	resp, err := c.Get(server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resp.Body.Close()).To(Succeed())
	g.Expect(w.Err()).To(MatchError(ContainSubstring("24h0m0s ahead of")))
}
