package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/consoletest"
	"hcp.internal/platform/internal/console/server"
)

// touch changes a label of a hosted cluster.
func touch(t *testing.T, c client.Client, ns, name, value string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"touched":%q}}}`, value))
	NewWithT(t).Expect(c.Patch(t.Context(), &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, patch)).To(Succeed())
}

// follow reads a stream: each message as "event data", and its number behind it.
func follow(t *testing.T, srv *httptest.Server, path, token string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := srv.Client().Do(r) //nolint:bodyclose // closed below
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan string, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 4<<20)
		var kind, id string
		for lines.Scan() {
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "event: "):
				kind = line[7:]
			case strings.HasPrefix(line, "id: "):
				id = line[4:]
			case strings.HasPrefix(line, "data: "):
				out <- kind + " " + line[6:] + " " + id
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return out
}

// number is that of a message of follow.
func number(t *testing.T, message string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(message[strings.LastIndex(message, "-")+1:], 10, 64)
	if err != nil {
		t.Fatalf("message %q ends with no number: %v", message, err)
	}
	return n
}

func TestStream(t *testing.T) {
	_, c := fleet(t)
	srv, token := own(t, c, picture(t, c))
	g := NewWithT(t)
	first := follow(t, srv, "/api/v1/stream?topic=fleet&show=all", token)
	var hello string
	g.Eventually(first, patience).Should(Receive(&hello))
	g.Expect(hello).To(HavePrefix("reset "), "who brings no number reads anew")
	at := hello[strings.LastIndex(hello, " ")+1:]

	t.Run("When a stream goes on where another one ended it should tell what happened in between, and nothing else", func(t *testing.T) {
		g := NewWithT(t)
		touch(t, c, consoletest.Production, "stock", "console-1")
		g.Eventually(first, patience).Should(Receive(ContainSubstring("console-1")))
		second := follow(t, srv, "/api/v1/stream?topic=fleet&show=all&since="+at, token)
		g.Eventually(second, patience).Should(Receive(HavePrefix("hello ")))
		var patch string
		g.Eventually(second, patience).Should(Receive(&patch))
		g.Expect(patch).To(And(HavePrefix("patch "), ContainSubstring("console-1"), Not(ContainSubstring(`"name":"checkout"`))))
	})
	t.Run("When the number is of another process it should have the reader begin anew", func(t *testing.T) {
		other := follow(t, srv, "/api/v1/stream?topic=fleet&since=elsewhere-12", token)
		NewWithT(t).Eventually(other, patience).Should(Receive(HavePrefix("reset ")))
	})
	t.Run("When a row no longer matches the filter it should be told as gone", func(t *testing.T) {
		g := NewWithT(t)
		touch(t, c, consoletest.Production, "stock", "here")
		filtered := follow(t, srv, "/api/v1/stream?topic=fleet&show=all&label=touched%3Dhere", token)
		g.Eventually(filtered, patience).Should(Receive(ContainSubstring(`"summary"`)))
		touch(t, c, consoletest.Production, "stock", "elsewhere")
		g.Eventually(filtered, patience).Should(Receive(ContainSubstring(`"gone":["production/stock"]`)))
	})
	t.Run("When a page about one hosted cluster is open it should be told of that one alone", func(t *testing.T) {
		g := NewWithT(t)
		page := follow(t, srv, "/api/v1/stream?topic=hc/production/stock", token)
		g.Eventually(page, patience).Should(Receive(HavePrefix("reset ")))
		var other, told string
		for i := range 3 { // at the pace of streams: one of them is told before the next is made
			mark := fmt.Sprintf("console-2-%d", i)
			touch(t, c, consoletest.Production, "shipping", mark)
			for !strings.Contains(other, mark) {
				g.Eventually(first, patience).Should(Receive(&other))
			}
		}
		touch(t, c, consoletest.Production, "stock", "console-3")
		g.Eventually(page, patience).Should(Receive(&told, ContainSubstring(`"touched":true`)))
		g.Expect(number(t, told)).To(BeNumerically(">", number(t, other)), "the change of the other one was told")
	})
	t.Run("When answers may not take long a stream should go on all the same", func(t *testing.T) {
		g := NewWithT(t)
		gate := &access.Own{User: "carol", Client: c}
		token, _ := gate.Exchange(gate.Ticket())
		s := &server.Server{World: picture(t, c), Gate: gate, Log: logr.Discard(), Clock: clock.RealClock{}}
		short := httptest.NewUnstartedServer(s.Handler())
		short.Config.WriteTimeout = 500 * time.Millisecond
		short.Start()
		t.Cleanup(short.Close)
		began := time.Now()
		page := follow(t, short, "/api/v1/stream?topic=fleet&show=all", token)
		g.Eventually(page, patience).Should(Receive(HavePrefix("reset ")))
		g.Eventually(func() time.Duration { return time.Since(began) }, patience).Should(BeNumerically(">", time.Second))
		touch(t, c, consoletest.Production, "stock", "console-4")
		g.Eventually(page, patience).Should(Receive(ContainSubstring("console-4")))
	})
	t.Run("When somebody opens too many streams it should refuse more", func(t *testing.T) {
		gate := &access.Own{User: "bob", Client: c}
		token, _ := gate.Exchange(gate.Ticket())
		other := serve(t, picture(t, c), gate)
		for range 8 {
			NewWithT(t).Eventually(follow(t, other, "/api/v1/stream?topic=rollouts", token), patience).Should(Receive())
		}
		resp, body := ask(t, other, "/api/v1/stream?topic=rollouts", token)
		NewWithT(t).Expect(resp.StatusCode).To(Equal(http.StatusTooManyRequests), body)
	})
	t.Run("When the topic means nothing it should say which there are", func(t *testing.T) {
		resp, body := ask(t, srv, "/api/v1/stream?topic=secrets", token)
		g := NewWithT(t)
		g.Expect(resp.StatusCode).To(Equal(http.StatusBadRequest))
		g.Expect(body).To(ContainSubstring("hc/NAMESPACE/NAME"))
	})
}

func TestEventStream(t *testing.T) {
	env, c := fleet(t)
	w := picture(t, c)
	srv, token := own(t, c, w)
	happen := func(t *testing.T, ns, name, message string) *corev1.Event {
		t.Helper()
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "stream-"}, InvolvedObject: corev1.ObjectReference{Kind: "HostedCluster", Namespace: ns, Name: name}, Type: "Warning", Reason: "Stream", Message: message,
			Count: 1, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Source: corev1.EventSource{Component: "test"}}
		NewWithT(t).Expect(c.Create(t.Context(), e)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(context.Background(), e) })
		return e
	}
	since := func(t *testing.T, srv *httptest.Server, query, token string) string {
		t.Helper()
		resp, body := ask(t, srv, "/api/v1/events?"+query, token)
		var out struct{ Since string }
		g := NewWithT(t)
		g.Expect(resp.StatusCode).To(Equal(http.StatusOK), body)
		g.Expect(json.Unmarshal([]byte(body), &out)).To(Succeed())
		return out.Since
	}
	t.Run("When something happens it should be told to who follows, and what does not match should not", func(t *testing.T) {
		g := NewWithT(t)
		query := "hc=production/stock&q=told"
		events := follow(t, srv, "/api/v1/events/stream?"+query+"&since="+since(t, srv, query, token), token)
		g.Eventually(events, patience).Should(Receive(HavePrefix("hello ")))
		happen(t, "production", "orders", "told of another")
		happen(t, "production", "stock", "something else")
		e := happen(t, "production", "stock", "told first")
		var said string
		g.Eventually(events, patience).Should(Receive(&said))
		g.Expect(said).To(And(HavePrefix("patch "), ContainSubstring("told first"), Not(ContainSubstring("another")), Not(ContainSubstring("else")), ContainSubstring(string(e.UID))))
		e.Count = 7
		g.Expect(c.Update(t.Context(), e)).To(Succeed())
		g.Eventually(events, patience).Should(Receive(&said))
		g.Expect(said).To(ContainSubstring(`"count":7`))
		// Another reader goes on where this one is.
		at := said[strings.LastIndex(said, " ")+1:]
		happen(t, "production", "stock", "told meanwhile")
		again := follow(t, srv, "/api/v1/events/stream?"+query+"&since="+at, token)
		g.Eventually(again, patience).Should(Receive(HavePrefix("hello ")))
		g.Eventually(again, patience).Should(Receive(And(ContainSubstring("told meanwhile"), Not(ContainSubstring("told first")))))
	})
	t.Run("When the number is none of the list's it should say so", func(t *testing.T) {
		resp, body := ask(t, srv, "/api/v1/events/stream?hc=production/stock&since=12", token)
		g := NewWithT(t)
		g.Expect(resp.StatusCode).To(Equal(http.StatusBadRequest), body)
		g.Expect(body).To(ContainSubstring("that of the list of events"))
	})
	t.Run("When somebody may not watch events it should refuse them", func(t *testing.T) {
		other := serve(t, w, access.NewTokens(c, env.Config, clock.RealClock{}))
		who := person(t, c, "stream-lists", everywhere("stream-lists", readAll))
		resp, body := ask(t, other, "/api/v1/events/stream?since="+since(t, other, "", who), who)
		NewWithT(t).Expect(resp.StatusCode).To(Equal(http.StatusForbidden), body)
	})
}
