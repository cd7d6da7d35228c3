package conversion

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func roomServer(t *testing.T) (*Handler, string) {
	t.Helper()
	h, err := NewHandler(fake.NewClientBuilder().Build(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return h, strings.TrimPrefix(server.URL, "http://")
}

const emptyReview = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"cluster.x-k8s.io/v1beta2","objects":[]}}`

func TestRoom(t *testing.T) {
	t.Run("When one address holds all that it may it should leave room for others", func(t *testing.T) {
		t.Parallel()
		g, r := NewWithT(t), newRoom()
		leave, err := r.enter(t.Context(), "10.0.0.1", maxReview)
		g.Expect(err).NotTo(HaveOccurred())
		refused := make(chan error, 1)
		go func() { _, err := r.enter(t.Context(), "10.0.0.1", 1); refused <- err }()
		g.Consistently(refused, "200ms").ShouldNot(Receive())
		other, err := r.enter(t.Context(), "10.0.0.2", maxReview)
		g.Expect(err).NotTo(HaveOccurred())
		other()
		leave()
		g.Eventually(refused).Should(Receive(BeNil()))
	})
	t.Run("When nothing is used any more it should remember nobody", func(t *testing.T) {
		t.Parallel()
		g, r := NewWithT(t), newRoom()
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				if leave, err := r.enter(t.Context(), fmt.Sprint(i%7), 8<<20); err == nil {
					leave()
				}
			})
		}
		all.Wait()
		g.Expect(r.sources).To(BeEmpty())
		g.Expect(r.waiting).To(BeZero())
		g.Expect(r.all.TryAcquire(maxReviews)).To(BeTrue())
	})
	t.Run("When very many wait it should refuse at once", func(t *testing.T) {
		t.Parallel()
		g, r := NewWithT(t), newRoom()
		leave, err := r.enter(t.Context(), "10.0.0.1", maxReview)
		g.Expect(err).NotTo(HaveOccurred())
		defer leave()
		answers := make(chan error, 2*maxWaiting)
		for range 2 * maxWaiting {
			go func() { _, err := r.enter(t.Context(), "10.0.0.1", maxReview); answers <- err }()
		}
		for range maxWaiting {
			g.Eventually(answers, "8s").Should(Receive(MatchError(errFull)))
		}
	})
}

func TestReviewsOfStrangers(t *testing.T) {
	t.Run("When a review has no length or too great a one it should be refused unread", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		_, host := roomServer(t)
		resp, err := http.Post("http://"+host, "application/json", io.MultiReader(strings.NewReader(emptyReview)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.Body.Close()).To(Succeed())
		g.Expect(resp.StatusCode).To(Equal(http.StatusLengthRequired))

		conn, err := net.Dial("tcp", host)
		g.Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", int64(maxReview)+1)
		answer := make([]byte, 64)
		_, err = conn.Read(answer)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(answer)).To(ContainSubstring("413"))
	})
	t.Run("When a body drips it should end in seconds, and others be answered meanwhile", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		h, host := roomServer(t)
		conn, err := net.Dial("tcp", host)
		g.Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n{", 1<<20)
		resp, err := http.Post("http://"+host, "application/json", bytes.NewReader([]byte(emptyReview)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.Body.Close()).To(Succeed())
		g.Expect(resp.StatusCode).To(Equal(http.StatusOK))
		g.Eventually(func() bool { return h.room.all.TryAcquire(maxReviews) }, 2*readTime).Should(BeTrue(), "what it held is free")
	})
}
