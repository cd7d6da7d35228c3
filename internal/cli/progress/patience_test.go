package progress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestPatience(t *testing.T) {
	refused := fmt.Errorf("reading it: %w", &url.Error{Op: "Get", URL: "https://api.example.com", Err: syscall.ECONNREFUSED})
	things := schema.GroupResource{Resource: "things"}
	for name, tc := range map[string]struct {
		err  error
		ends bool
	}{
		"When nobody listens it should look again":                    {refused, false},
		"When the answer is cut off it should look again":             {&url.Error{Op: "Get", Err: io.ErrUnexpectedEOF}, false},
		"When etcd has no leader it should look again":                {apierrors.NewInternalError(errors.New("etcdserver: no leader")), false},
		"When the API server shuts down it should look again":         {apierrors.NewServiceUnavailable("shutting down"), false},
		"When the API server has too much to do it should look again": {apierrors.NewTooManyRequests("later", 1), false},
		"When there is no such object it should end":                  {apierrors.NewNotFound(things, "x"), true},
		"When the user may not look it should end":                    {apierrors.NewForbidden(things, "x", nil), true},
		"When nobody knows the user it should end":                    {apierrors.NewUnauthorized("who?"), true},
		"When the request is wrong it should end":                     {apierrors.NewBadRequest("what?"), true},
		"When the look itself says that it is over it should end":     {errors.New("held: it is paused"), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := NewPatience(io.Discard, nil)
			g.Expect(p.Bear(t.Context(), tc.err)).To(Equal(tc.err), "an API server that never answered may be the wrong one")
			g.Expect(p.Bear(t.Context(), nil)).To(Succeed())
			if tc.ends {
				g.Expect(p.Bear(t.Context(), tc.err)).To(Equal(tc.err))
				return
			}
			g.Expect(p.Bear(t.Context(), tc.err)).To(Succeed())
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			g.Expect(p.Bear(ctx, tc.err)).To(Equal(tc.err), "the time is up, or the user has enough")
		})
	}
	t.Run("When it lasts it should be said, now and then", func(t *testing.T) {
		g := NewWithT(t)
		clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
		var out bytes.Buffer
		p := NewPatience(&out, clk)
		g.Expect(p.Bear(t.Context(), nil)).To(Succeed())
		for range 25 {
			g.Expect(p.Bear(t.Context(), refused)).To(Succeed())
			clk.SetTime(clk.Now().Add(time.Second))
		}
		const said = `the API server hasn't answered for %s: reading it: Get "https://api.example.com": connection refused; looking again` + "\n"
		g.Expect(out.String()).To(Equal(fmt.Sprintf(said, "5s") + fmt.Sprintf(said, "20s")))
		g.Expect(p.Bear(t.Context(), nil)).To(Succeed())
		out.Reset()
		g.Expect(p.Bear(t.Context(), refused)).To(Succeed())
		g.Expect(out.String()).To(BeEmpty(), "it had answered meanwhile")
	})
}
