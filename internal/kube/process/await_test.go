package process

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestAway(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"When it answers it should go on":                           {nil, false},
		"When it does not know who asks it should go on":            {apierrors.NewUnauthorized("who"), false},
		"When it forbids the look it should go on":                  {apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")), false},
		"When it has too much to do it should wait":                 {apierrors.NewTooManyRequests("later", 1), true},
		"When its etcd is away it should wait":                      {apierrors.NewInternalError(errors.New("etcd")), true},
		"When it starts it should wait":                             {apierrors.NewServiceUnavailable("starting"), true},
		"When nobody listens it should wait":                        {&url.Error{Op: "Get", Err: syscall.ECONNREFUSED}, true},
		"When an answer takes too long it should wait":              {&url.Error{Op: "Get", Err: context.DeadlineExceeded}, true},
		"When its certificate is not trusted it should leave it be": {&url.Error{Op: "Get", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(away(tc.err)).To(Equal(tc.want)) })
	}
}

func TestAwait(t *testing.T) {
	t.Run("When the server comes back it should go on", func(t *testing.T) {
		g := NewWithT(t)
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		t.Cleanup(server.Close)
		g.Expect(await(t.Context(), &rest.Config{Host: server.URL})).To(Succeed())
		g.Expect(asked.Load()).To(Equal(int32(2)))
	})
	t.Run("When it is told to stop it should say what it waited for", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		err := await(ctx, &rest.Config{Host: "http://127.0.0.1:1"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("waiting for the API server at http://127.0.0.1:1")))
	})
	t.Run("When it is away for ten minutes it should ask some fifty times, and be there within seconds", func(t *testing.T) {
		g := NewWithT(t)
		clk := instant{clocktesting.NewFakeClock(time.Now())}
		begin, asked := clk.Now(), 0
		g.Expect(until(t.Context(), clk, "h", func(context.Context) error {
			asked++
			if clk.Since(begin) < 10*time.Minute {
				return syscall.ECONNREFUSED
			}
			return nil
		})).To(Succeed())
		g.Expect(asked).To(BeNumerically("~", 55, 20))
		g.Expect(clk.Since(begin)).To(BeNumerically("<=", 10*time.Minute+mostPause*3/2))
	})
}

// instant is a clock that is at the end of each pause at once.
type instant struct{ *clocktesting.FakeClock }

func (c instant) After(d time.Duration) <-chan time.Time {
	c.Step(d)
	ended := make(chan time.Time, 1)
	ended <- c.Now()
	return ended
}

var _ clock.Clock = instant{}
