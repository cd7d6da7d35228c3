package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/world"
)

// trusting is a gate that believes what people say of themselves. The API server answers nobody whose name begins with "slow".
type trusting struct{ asked *atomic.Int32 }

func (n trusting) Viewer(r *http.Request) (*access.Viewer, error) {
	who := r.Header.Get("Authorization")
	return &access.Viewer{Name: who, ID: who, Client: reader{slow: who[:4] == "slow", asked: n.asked}}, nil
}

// reader is an API server that has nothing, or that doesn't answer.
type reader struct {
	access.Reader
	slow  bool
	asked *atomic.Int32
}

func (r reader) Get(ctx context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if r.slow {
		r.asked.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, key.Name)
}

// house is a console with a hosted cluster, and requests to it.
type house struct {
	*Server
	handler http.Handler
	asked   *atomic.Int32
}

func newHouse() *house {
	h := &house{asked: &atomic.Int32{}}
	h.Server = &Server{World: world.New(), Gate: trusting{h.asked}, Log: logr.Discard(), Clock: clock.RealClock{}}
	h.World.Put(world.Clusters, world.Key{Namespace: "a", Name: "b"}, &world.Cluster{Namespace: "a", Name: "b"})
	h.handler = h.Handler()
	return h
}

func (h *house) ask(ctx context.Context, who, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/"+path, nil)
	r.Header.Set("Authorization", who)
	rec := httptest.NewRecorder()
	h.handler.ServeHTTP(rec, r)
	return rec
}

// asked are requests that were sent at once, each with its answer as soon as there is one.
type asked []atomic.Pointer[httptest.ResponseRecorder]

// askMany sends requests of somebody at once.
func (h *house) askMany(ctx context.Context, n int, who, path string) asked {
	out := make(asked, n)
	for i := range out {
		go func() { out[i].Store(h.ask(ctx, who, path)) }()
	}
	synctest.Wait()
	return out
}

// answers are those that came.
func (a asked) answers() (out []*httptest.ResponseRecorder) {
	for i := range a {
		if answer := a[i].Load(); answer != nil {
			out = append(out, answer)
		}
	}
	return out
}

// coded counts the answers with a code.
func (a asked) coded(code int) (n int) {
	for _, answer := range a.answers() {
		if answer.Code == code {
			n++
		}
	}
	return n
}

// quick asks for something that the API server answers at once, and wants it at once.
func (h *house) quick(g *WithT) {
	before := time.Now()
	g.Expect(h.ask(context.Background(), "quick", "hc/a/b/yaml").Code).To(Equal(http.StatusNotFound))
	g.Expect(time.Since(before)).To(BeZero())
}

func TestPlaces(t *testing.T) {
	t.Run("When sixteen pages of one person take long it should answer another one, and refuse what has waited", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, h := NewWithT(t), newHouse()
			answers := h.askMany(t.Context(), maxDetails, "slow", "hc/a/b/yaml")
			g.Expect(h.asked.Load()).To(BeEquivalentTo(maxDetailsOf))
			h.quick(g)

			time.Sleep(placeTime)
			synctest.Wait()
			g.Expect(answers.coded(http.StatusTooManyRequests)).To(Equal(maxDetails - maxDetailsOf))
			for _, a := range answers.answers() {
				g.Expect(a.Header().Get("Retry-After")).To(Equal("1"))
				g.Expect(a.Body.String()).To(ContainSubstring("close a tab"))
			}
			time.Sleep(detailTime)
			synctest.Wait()
			g.Expect(answers.coded(http.StatusGatewayTimeout)).To(Equal(maxDetailsOf))
			h.empty(g)
		})
	})
	t.Run("When all places are taken by others it should say so after a while", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, h := NewWithT(t), newHouse()
			for i := range maxDetails / maxDetailsOf {
				h.askMany(t.Context(), maxDetailsOf, fmt.Sprint("slow-", i), "hc/a/b/yaml")
			}
			before := time.Now()
			answer := h.ask(t.Context(), "quick", "hc/a/b/yaml")
			g.Expect(time.Since(before)).To(Equal(placeTime))
			g.Expect(answer.Code).To(Equal(http.StatusServiceUnavailable))
			g.Expect(answer.Header().Get("Retry-After")).To(Equal("1"))
			g.Expect(answer.Body.String()).To(ContainSubstring("the console is busy"))
			time.Sleep(detailTime)
			synctest.Wait()
			h.empty(g)
		})
	})
	t.Run("When who waits has gone it should keep nothing for them", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, h := NewWithT(t), newHouse()
			ctx, cancel := context.WithCancel(t.Context())
			h.askMany(ctx, 2*maxDetails, "slow", "hc/a/b/yaml")
			cancel()
			synctest.Wait()
			h.empty(g)
		})
	})
}

// empty wants no place to be taken.
func (h *house) empty(g *WithT) {
	g.Expect(h.places.all).To(BeEmpty())
	g.Expect(h.places.of).To(BeEmpty())
}

func TestSweepOfMany(t *testing.T) {
	t.Run("When sixteen requests look at certificates and all but the first have gone it should have no place for those", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, h := NewWithT(t), newHouse()
			first, stop := context.WithCancel(t.Context())
			h.askMany(first, 1, "slow", "certificates")
			ctx, cancel := context.WithCancel(t.Context())
			h.askMany(ctx, maxDetails-1, "slow", "certificates")
			cancel()
			synctest.Wait()
			g.Expect(h.places.all).To(HaveLen(1))
			h.quick(g)
			stop()
			synctest.Wait()
			h.empty(g)
		})
	})
	t.Run("When somebody looks already it should tell another tab at once how far that is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, h := NewWithT(t), newHouse()
			h.askMany(t.Context(), 1, "slow", "certificates")
			answers := h.askMany(t.Context(), maxDetails, "slow", "certificates")
			g.Expect(answers.coded(http.StatusOK)).To(Equal(maxDetails))
			var told sweepAnswer
			g.Expect(json.Unmarshal(answers.answers()[0].Body.Bytes(), &told)).To(Succeed())
			g.Expect(told.Left).To(Equal(1), "or the page would take it for complete")
			g.Expect(told.Checked).To(BeZero())
			g.Expect(h.asked.Load()).To(BeEquivalentTo(1), "one looks at a time")
			time.Sleep(detailTime)
			synctest.Wait()
			h.empty(g)
		})
	})
}
