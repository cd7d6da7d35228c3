package why

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/why"
)

func TestFollow(t *testing.T) {
	hc := why.Object{Kind: "HostedCluster", Namespace: "clusters", Name: "demo"}
	refused := &url.Error{Op: "Get", URL: "https://api.example.com", Err: syscall.ECONNREFUSED}
	// looks gives one result after the other, and then an error of its own.
	looks := func(results ...any) func(context.Context) (why.Answer, error) {
		return func(context.Context) (why.Answer, error) {
			if len(results) == 0 {
				return why.Answer{}, errors.New("it is gone")
			}
			next := results[0]
			results = results[1:]
			if err, failed := next.(error); failed {
				return why.Answer{}, err
			}
			return why.Answer{Object: hc, State: why.Well, Cause: next.(string)}, nil
		}
	}
	t.Run("When the API server restarts --watch should look again, and print what changed", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		o := &options{watch: true, every: time.Millisecond}
		err := o.follow(t.Context(), &out, &bytes.Buffer{}, looks("first", refused, refused, "first", "second"))
		g.Expect(err).To(MatchError("it is gone"))
		g.Expect(out.String()).To(Equal("HostedCluster clusters/demo: first\nHostedCluster clusters/demo: second\n"))
	})
	t.Run("When the API server doesn't answer at all it should say so", func(t *testing.T) {
		o := &options{watch: true, every: time.Millisecond}
		err := o.follow(t.Context(), &bytes.Buffer{}, &bytes.Buffer{}, looks(refused))
		NewWithT(t).Expect(err).To(MatchError(syscall.ECONNREFUSED))
	})
}
