package waitdns

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// fakeDNS answers a name from its n-th question on.
type fakeDNS struct {
	after map[string]int
	asked map[string]int
}

func (f *fakeDNS) LookupHost(_ context.Context, host string) ([]string, error) {
	f.asked[host]++
	after, known := f.after[host]
	if !known || f.asked[host] <= after {
		return nil, errors.New("no such host")
	}
	return []string{"10.0.0.1"}, nil
}

func TestWait(t *testing.T) {
	t.Run("When a name appears later it should wait for it", func(t *testing.T) {
		g := NewWithT(t)
		dns := &fakeDNS{after: map[string]int{"a": 0, "b": 2}, asked: map[string]int{}}
		out := &bytes.Buffer{}
		g.Expect(wait(t.Context(), dns, []string{"a", "b"}, out)).To(Succeed())
		g.Expect(dns.asked).To(Equal(map[string]int{"a": 1, "b": 3}))
		g.Expect(out.String()).To(ContainSubstring("b resolves to [10.0.0.1]"))
	})
	t.Run("When a name never appears it should give up and name it", func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := wait(ctx, &fakeDNS{asked: map[string]int{}}, []string{"etcd-client"}, &bytes.Buffer{})
		g.Expect(err).To(MatchError(context.DeadlineExceeded))
		g.Expect(err).To(MatchError(ContainSubstring("waiting for etcd-client to resolve")))
		g.Expect(err).To(MatchError(ContainSubstring("no such host")))
	})
	t.Run("When the command gets no name it should refuse", func(t *testing.T) {
		cmd := Command()
		cmd.SetArgs(nil)
		NewWithT(t).Expect(cmd.Execute()).To(HaveOccurred())
	})
}
