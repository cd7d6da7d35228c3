package release_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/release/releasetest"
)

// dripping is a registry that answers a byte now and then, and never to the end. Once end is closed it breaks off every answer; nil: it goes on for ever.
func dripping(t *testing.T, asked *atomic.Int32, end <-chan struct{}) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked != nil {
			asked.Add(1)
		}
		w.Header().Set("Content-Length", "1000")
		for {
			if _, err := w.Write([]byte{' '}); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-end:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func asker(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func TestManyMirrors(t *testing.T) {
	t.Run("When none of very many mirrors answers it should end in one deadline, and have asked sixteen", func(t *testing.T) {
		t.Parallel()
		g, asked := NewWithT(t), &atomic.Int32{}
		host := dripping(t, asked, nil)
		var mirrors []rewrite.Mirror
		for i := range 255 {
			m := rewrite.Mirror{Source: "registry.example.com"}
			for j := range 255 {
				m.Mirrors = append(m.Mirrors, fmt.Sprintf("%s/m%d-%d", host, i, j))
			}
			mirrors = append(mirrors, m)
		}
		r := release.NewRegistryProvider(release.Options{Mirrors: mirrors, Limits: release.Limits{AllTime: 3 * time.Second}})
		begin := time.Now()
		_, err := r.Lookup(t.Context(), "registry.example.com/release:1", nil)
		g.Expect(err).To(MatchError(release.ErrUnreachable))
		g.Expect(err).To(MatchError(ContainSubstring("registry.example.com/release:1")))
		g.Expect(time.Since(begin)).To(BeNumerically("<", time.Minute))
		g.Expect(asked.Load()).To(BeNumerically("<=", 16))
	})
	t.Run("When the first mirror drips it should still find the image itself", func(t *testing.T) {
		t.Parallel()
		g, reg := NewWithT(t), releasetest.New(t)
		image := reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
		repository, _, _ := strings.Cut(image[len(reg.Host):], ":")
		mirrors := []rewrite.Mirror{{Source: reg.Host + repository, Mirrors: []string{dripping(t, nil, nil) + "/a"}}}
		// The mirror gets one half of the time, and what is left has to do for a whole release.
		r := release.NewRegistryProvider(release.Options{Mirrors: mirrors, Limits: release.Limits{AllTime: 30 * time.Second}})
		got, err := r.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Version).To(Equal("1.36.3"))
	})
}

func TestPatience(t *testing.T) {
	t.Run("When a registry is slow it should not wait, and tell of the end", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		r := release.NewRegistryProvider(release.Options{Patience: 50 * time.Millisecond, Limits: release.Limits{AllTime: 2 * time.Second}})
		ended := make(chan types.NamespacedName, 10)
		r.Subscribe(func(who types.NamespacedName) { ended <- who })
		image, who := dripping(t, nil, nil)+"/release:1", asker("tenant", "a")
		_, err := r.For(who).Lookup(t.Context(), image, nil)
		g.Expect(err).To(MatchError(release.ErrPending))
		g.Expect(release.Temporary(err)).To(BeTrue())
		g.Eventually(ended, time.Minute).Should(Receive(Equal(who)))
		_, err = r.For(who).Lookup(t.Context(), image, nil)
		g.Expect(err).To(MatchError(release.ErrUnreachable), "what was found out is known for a while")
	})
	t.Run("When a tenant looks up too much it should not keep others from it", func(t *testing.T) {
		t.Parallel()
		g, asked, end := NewWithT(t), &atomic.Int32{}, make(chan struct{})
		host := dripping(t, asked, end)
		// None of the tenant's lookups may end while they are counted, or else the next begins: the test ends them itself.
		r := release.NewRegistryProvider(release.Options{Patience: 10 * time.Millisecond, Limits: release.Limits{Time: time.Minute, AllTime: time.Minute}})
		told := make(chan types.NamespacedName, 100)
		r.Subscribe(func(who types.NamespacedName) { told <- who })
		for i := range 20 {
			_, err := r.For(asker("noisy", fmt.Sprint(i))).Lookup(t.Context(), fmt.Sprintf("%s/release:%d", host, i), nil)
			g.Expect(err).To(MatchError(release.ErrPending))
		}
		g.Consistently(asked.Load, "300ms").Should(BeNumerically("<=", 4))
		reg := releasetest.New(t)
		image := reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
		g.Eventually(func() error {
			_, err := r.For(asker("quiet", "a")).Lookup(t.Context(), image, nil)
			return err
		}).Should(Succeed())
		close(end)
		for range 20 {
			g.Eventually(told, time.Minute).Should(Receive(), "also those who were turned away are told to come again")
		}
	})
	t.Run("When a release is known and its registry hangs it should go on with what is known", func(t *testing.T) {
		t.Parallel()
		g, reg := NewWithT(t), releasetest.New(t)
		image := reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
		hang := &hanging{next: http.DefaultTransport}
		now := &later{}
		r := release.NewRegistryProvider(release.Options{Patience: 3 * time.Second, Transport: hang, Clock: now, Limits: release.Limits{AllTime: time.Minute}})
		view := r.For(asker("tenant", "a"))
		g.Eventually(func() error {
			_, err := view.Lookup(t.Context(), image, nil)
			return err
		}).Should(Succeed())
		hang.on.Store(true)
		now.by.Store(int64(time.Hour))
		begin := time.Now()
		got, err := view.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Version).To(Equal("1.36.3"))
		g.Expect(time.Since(begin)).To(BeNumerically("<", 30*time.Second))
	})
}

type hanging struct {
	next http.RoundTripper
	on   atomic.Bool
}

func (h *hanging) RoundTrip(req *http.Request) (*http.Response, error) {
	if !h.on.Load() {
		return h.next.RoundTrip(req)
	}
	<-req.Context().Done()
	return nil, errors.Join(net.ErrClosed, req.Context().Err())
}

// later is the time, and more.
type later struct{ by atomic.Int64 }

func (l *later) Now() time.Time { return time.Now().Add(time.Duration(l.by.Load())) }

func (l *later) Since(t time.Time) time.Duration { return l.Now().Sub(t) }
