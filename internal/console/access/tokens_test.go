package access

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// gate is one in front of an API server that knows tokens which begin with "good".
type gate struct {
	*Tokens
	clock   *clocktesting.FakePassiveClock
	reviews atomic.Int32
	// held keeps reviews of tokens that begin with "slow" until it is closed.
	held chan struct{}
}

func newGate() *gate {
	g := &gate{clock: clocktesting.NewFakePassiveClock(time.Now()), held: make(chan struct{})}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			switch review := obj.(type) {
			case *authenticationv1.TokenReview:
				g.reviews.Add(1)
				if strings.HasPrefix(review.Spec.Token, "slow") {
					<-g.held
				}
				review.Status.Authenticated, review.Status.User.Username = strings.HasPrefix(review.Spec.Token, "good"), review.Spec.Token
			case *authorizationv1.SubjectAccessReview:
				review.Status.Allowed = true
			}
			return nil
		},
	}).Build()
	g.Tokens = NewTokens(c, &rest.Config{Host: "https://192.0.2.1"}, g.clock)
	return g
}

func (g *gate) from(address, token string) (*Viewer, error) {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/me", nil)
	r.RemoteAddr = address
	r.Header.Set("Authorization", "Bearer "+token)
	return g.Viewer(r)
}

func TestTokens(t *testing.T) {
	const proxy = "10.0.0.1:1"
	// flood sends many tokens of nobody from one address and says how the last was answered.
	flood := func(gate *gate, address string, n int) (err error) {
		for i := range n {
			_, err = gate.from(address, fmt.Sprintf("bad-%s-%d", address, i))
		}
		return err
	}
	t.Run("When a stranger sends many tokens it should stop asking about them, and know again after a while", func(t *testing.T) {
		g := NewWithT(t)
		gate := newGate()
		g.Expect(flood(gate, proxy, 1000)).To(MatchError(ErrTooMany))
		g.Expect(gate.reviews.Load()).To(BeEquivalentTo(burst))
		_, err := gate.from("10.0.0.2:1", "good")
		g.Expect(err).NotTo(HaveOccurred(), "from elsewhere")
		gate.clock.SetTime(gate.clock.Now().Add(time.Second))
		_, err = gate.from(proxy, "good-2")
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When strangers send many tokens it should forget nobody who has signed in, also behind the same proxy", func(t *testing.T) {
		g := NewWithT(t)
		gate := newGate()
		_, err := gate.from(proxy, "good")
		g.Expect(err).NotTo(HaveOccurred())
		for i := range 60 {
			_ = flood(gate, fmt.Sprintf("10.0.1.%d:1", i), burst)
		}
		g.Expect(flood(gate, proxy, 1000)).To(MatchError(ErrTooMany))
		before := gate.reviews.Load()
		_, err = gate.from(proxy, "good")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(gate.reviews.Load()).To(Equal(before))
		g.Expect(len(gate.refused)).To(BeNumerically("<=", maxRefused))

		gate.clock.SetTime(gate.clock.Now().Add(knowToken + time.Millisecond))
		g.Expect(flood(gate, proxy, 1000)).To(MatchError(ErrTooMany))
		_, err = gate.from(proxy, "good")
		g.Expect(err).NotTo(HaveOccurred(), "it is asked about anew")
	})
	t.Run("When more people sign in than it remembers it should forget who was there longest ago", func(t *testing.T) {
		g := NewWithT(t)
		gate := newGate()
		for i := range maxTokens + 1 {
			gate.clock.SetTime(gate.clock.Now().Add(time.Millisecond))
			_, err := gate.from(fmt.Sprintf("10.1.%d.%d:1", i/250, i%250), fmt.Sprint("good-", i))
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(gate.tokens).To(HaveLen(maxTokens))
		before := gate.reviews.Load()
		_, err := gate.from(proxy, "good-1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(gate.reviews.Load()).To(Equal(before))
		_, err = gate.from(proxy, "good-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(gate.reviews.Load()).To(Equal(before + 1))
	})
	t.Run("When a token is refused it should be asked about again after a moment, and a good one that ends be refused", func(t *testing.T) {
		g := NewWithT(t)
		gate := newGate()
		for range 3 {
			_, err := gate.from(proxy, "bad")
			g.Expect(err).To(MatchError(ErrNobody))
		}
		g.Expect(gate.reviews.Load()).To(BeEquivalentTo(1))
		gate.clock.SetTime(gate.clock.Now().Add(knowNobody))
		_, err := gate.from(proxy, "bad")
		g.Expect(err).To(MatchError(ErrNobody))
		g.Expect(gate.reviews.Load()).To(BeEquivalentTo(2))
		gate.learn("x", &Viewer{})
		gate.learn("x", nil)
		g.Expect(gate.tokens).To(BeEmpty())
	})
	t.Run("When the API server is slow about strangers others should be asked about all the same", func(t *testing.T) {
		g := NewWithT(t)
		gate := newGate()
		viewer, err := gate.from(proxy, "good")
		g.Expect(err).NotTo(HaveOccurred())
		done := make(chan struct{})
		for i := range maxAsking {
			go func() {
				_, _ = gate.from(fmt.Sprintf("10.0.2.%d:1", i), fmt.Sprint("slow-", i))
				done <- struct{}{}
			}()
		}
		g.Eventually(gate.reviews.Load).Should(BeEquivalentTo(1 + maxStrangers))
		g.Expect(viewer.May(t.Context(), "list", Resource{Name: "x"}, "")).To(BeTrue())
		g.Expect(gate.reviews.Load()).To(BeEquivalentTo(1 + maxStrangers))
		close(gate.held)
		for range maxAsking {
			<-done
		}
	})
}

func TestSourceOf(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:80": "10.0.0.1/32", "[::ffff:10.0.0.1]:80": "10.0.0.1/32", "[2001:db8::1]:80": "2001:db8::/64", "[2001:db8::2]:81": "2001:db8::/64", "[fe80::1%eth0]:80": "fe80::/64", "pipe": "pipe",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = address
		NewWithT(t).Expect(sourceOf(r)).To(Equal(want), "When a request comes from %s it should count for its network", address)
	}
}
