package process

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestRefusals(t *testing.T) {
	type answer struct {
		after   time.Duration
		refused bool
		want    bool // to be told
	}
	for name, answers := range map[string][]answer{
		"When requests are refused for a moment it should leave trying again to the client":   {{0, true, false}, {time.Second, true, false}, {time.Second, true, false}},
		"When they are refused for long it should tell":                                       {{0, true, false}, {time.Second, true, false}, {2 * time.Second, true, true}, {time.Second, true, true}},
		"When one is answered it should begin anew":                                           {{0, true, false}, {3 * time.Second, true, true}, {0, false, false}, {0, true, false}},
		"When the last refusal is long ago it should begin anew":                              {{0, true, false}, {3 * time.Second, true, true}, {refusalsForgotten + time.Second, true, false}},
		"When all is well it should have nothing to tell":                                     {{0, false, false}, {time.Hour, false, false}},
		"When it is refused again and again, seldom but steadily, it should go on to tell it": {{0, true, false}, {40 * time.Second, true, true}, {40 * time.Second, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := clocktesting.NewFakePassiveClock(time.Now())
			r := newRefusals(nil, clk)
			for i, a := range answers {
				clk.SetTime(clk.Now().Add(a.after))
				NewWithT(t).Expect(r.long("x", a.refused)).To(Equal(a.want), "answer %d", i)
				NewWithT(t).Expect(r.long("another", false)).To(BeFalse())
			}
		})
	}
	t.Run("When an API server names ever new flow schemas it should remember few", func(t *testing.T) {
		t.Parallel()
		r := newRefusals(nil, clocktesting.NewFakePassiveClock(time.Now()))
		for i := range 1000 {
			r.long(fmt.Sprint(i), true)
		}
		NewWithT(t).Expect(len(r.rows)).To(BeNumerically("<=", maxRefusals))
	})
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		schema string
		want   int32 // requests
	}{
		"When an API server takes no requests a client should say so before its ten tries are over":    {"uid", 4},
		"When the handler of a request answers that it is too many it should be the client's business": {"", 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			clk := clocktesting.NewFakePassiveClock(time.Now())
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				clk.SetTime(clk.Now().Add(time.Second))
				w.Header().Set(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID, tc.schema)
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			t.Cleanup(server.Close)
			cfg := &rest.Config{Host: server.URL, QPS: -1}
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return newRefusals(next, clk) })
			_, err := kubernetes.NewForConfigOrDie(cfg).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{}, metav1.CreateOptions{})
			g.Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring("too many requests")))
			g.Expect(asked.Load()).To(Equal(tc.want))
		})
	}
}
