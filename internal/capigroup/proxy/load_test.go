package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/capigroup/translate"
)

func TestMemory(t *testing.T) {
	t.Run("When a list of 100 MB passes to a slow reader it should not be held", func(t *testing.T) {
		g := NewWithT(t)
		item := `{"apiVersion":"` + storedGV + `","kind":"Machine","spec":{"x":"` + strings.Repeat("y", 1000) + `"}}`
		n := 100 << 20 / len(item)
		front, _ := apiServer(t, func(w http.ResponseWriter, _ *http.Request) {
			answerJSON(w, `{"items":[`)
			for i := range n {
				if i > 0 {
					_, _ = io.WriteString(w, ",")
				}
				if _, err := io.WriteString(w, item); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, `]}`)
		})
		resp, err := http.Get(front.URL + machinesPath)
		g.Expect(err).NotTo(HaveOccurred())
		defer resp.Body.Close()
		var read int64
		var highest uint64
		var m runtime.MemStats
		for {
			k, err := io.CopyN(io.Discard, resp.Body, 10<<20)
			read += k
			runtime.ReadMemStats(&m)
			highest = max(highest, m.HeapInuse)
			if errors.Is(err, io.EOF) {
				break
			}
			g.Expect(err).NotTo(HaveOccurred())
		}
		view := len(item) - len(translate.Private) + len(translate.Standard)
		g.Expect(read).To(Equal(int64(len(`{"items":[`) + n*view + n - 1 + len(`]}`))))
		g.Expect(highest).To(BeNumerically("<", 48<<20))
	})
	t.Run("When a thousand watches are open they should all get events and leave nothing behind", func(t *testing.T) {
		g := NewWithT(t)
		const watches = 1000
		open := atomic.Int32{}
		send := make(chan struct{})
		front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
			open.Add(1)
			defer open.Add(-1)
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-send:
				_, _ = io.WriteString(w, `{"type":"MODIFIED","object":{"apiVersion":"`+storedGV+`"}}`+"\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
			}
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		got := atomic.Int32{}
		var all sync.WaitGroup
		client := &http.Client{Transport: &http.Transport{}}
		opening := make(chan struct{}, 50) // the test is about watches that are open, not about a thousand TLS handshakes in the same second
		for range watches {
			all.Go(func() {
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+machinesPath+"?watch=true", nil)
				opening <- struct{}{}
				resp, err := client.Do(req)
				<-opening
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("opening a watch: %v", err)
					}
					return
				}
				defer resp.Body.Close()
				if line, _ := bufio.NewReader(resp.Body).ReadString('\n'); line == `{"type":"MODIFIED","object":{"apiVersion":"`+viewGV+`"}}`+"\n" {
					got.Add(1)
				}
				<-ctx.Done()
			})
		}
		g.Eventually(open.Load, "180s").Should(Equal(int32(watches)))
		close(send)
		g.Eventually(got.Load, "180s").Should(Equal(int32(watches)))
		cancel()
		all.Wait()
		g.Eventually(open.Load, "180s").Should(BeZero())
	})
}

func TestTunnel(t *testing.T) {
	g := NewWithT(t)
	front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "log of "+storedGV+"\n")
			return
		}
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.Header().Set("Connection", "Upgrade")
		w.WriteHeader(http.StatusSwitchingProtocols)
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, rw)
	})
	_, body := ask(t, "GET", front.URL+"/api/v1/namespaces/n/pods/p/log?follow=true", "", "")
	g.Expect(body).To(Equal("log of " + storedGV + "\n"))

	conn, err := net.Dial("tcp", strings.TrimPrefix(front.URL, "http://"))
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	g.Expect(conn.SetDeadline(time.Now().Add(20 * time.Second))).To(Succeed())
	fmt.Fprintf(conn, "POST /api/v1/namespaces/n/pods/p/exec?command=sh HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	g.Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	g.Expect(resp.StatusCode).To(Equal(101))
	payload := `{"apiVersion":"` + storedGV + `"}`
	_, err = io.WriteString(conn, payload)
	g.Expect(err).NotTo(HaveOccurred())
	echo := make([]byte, len(payload))
	_, err = io.ReadFull(r, echo)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(echo)).To(Equal(payload))
}

func TestDocuments(t *testing.T) {
	g := NewWithT(t)
	var tag string
	front, _ := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		tag = r.Header.Get("If-None-Match")
		w.Header().Set("Etag", `"abc"`)
		if tag == `"abc"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		answerJSON(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[]},{"name":"`+translate.Private+`","versions":[{"groupVersion":"`+storedGV+`"}]},{"name":"`+translate.Standard+`"}]}`)
	})
	resp, body := ask(t, "GET", front.URL+"/apis", "", "", "Accept", "application/vnd.kubernetes.protobuf,application/json")
	g.Expect(body).To(Equal(`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[]},{"name":"` + translate.Standard + `","versions":[{"groupVersion":"` + viewGV + `"}]}]}`))
	ours := resp.Header.Get("Etag")
	g.Expect(ours).To(MatchRegexp(`^"abc-[0-9a-f]{8}"$`))
	resp, _ = ask(t, "GET", front.URL+"/apis", "", "", "If-None-Match", ours)
	g.Expect(resp.StatusCode).To(Equal(304))
	g.Expect(resp.Header.Get("Etag")).To(Equal(ours))
	ask(t, "GET", front.URL+"/apis", "", "", "If-None-Match", `"abc"`)
	g.Expect(tag).To(BeEmpty())
}
