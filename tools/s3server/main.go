// Command s3server is a server of S3 for tests, in memory, with faults: slow, busy (503), answers that break off, content that is changed. With --before it stands before
// another storage, of S3 or Azure, with the same faults.
//
//	POST   /-/fault?kind=busy&times=3&match=.db   the next three requests whose path has ".db" in it are answered with 503
//	DELETE /-/fault                               all faults end
//
// Kinds: busy, slow (a second before the answer), partial (half of the answer), flip (one bit of the answer), lost (a PUT is answered well and not stored).
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "address to listen on")
	bucket := flag.String("bucket", "backups", "bucket that is there from the start")
	key := flag.String("access-key", "test", "access key")
	secret := flag.String("secret-key", "test", "secret key")
	before := flag.String("before", "", "URL of a storage to stand before; empty: be one")
	flag.Parse()
	if err := run(*listen, *before, *bucket, *key, *secret); err != nil {
		log.Fatal(err)
	}
}

func run(listen, before, bucket, key, secret string) error {
	f := &faults{}
	if before != "" {
		to, err := url.Parse(before)
		if err != nil {
			return err
		}
		// The host is signed, so it stays.
		f.next = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }}
	} else {
		backend := s3mem.New()
		if err := backend.CreateBucket(context.Background(), bucket); err != nil {
			return err
		}
		f.next = gofakes3.New(backend, gofakes3.WithV4Auth(map[string]string{key: secret})).Server()
	}
	server := &http.Server{Addr: listen, Handler: f, ReadHeaderTimeout: 10 * time.Second}
	fmt.Println("listening on", listen)
	return server.ListenAndServe()
}

// faults stand before the storage.
type faults struct {
	next http.Handler

	mu    sync.Mutex
	kind  string
	match string
	times int
}

func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/-/fault" {
		f.set(r)
		return
	}
	switch f.take(r.URL.Path) {
	case "busy":
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)
	case "slow":
		time.Sleep(time.Second)
		f.next.ServeHTTP(w, r)
	case "lost":
		if r.Method != http.MethodPut {
			f.next.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // it is lost
		w.Header().Set("ETag", `"0"`)
		if r.Header.Get("X-Ms-Version") != "" {
			w.WriteHeader(http.StatusCreated) // as Azure answers
		}
	case "partial":
		f.change(w, r, func(b []byte) []byte { return b[:len(b)/2] })
	case "flip":
		f.change(w, r, func(b []byte) []byte {
			if len(b) > 0 {
				b[len(b)/2] ^= 1
			}
			return b
		})
	default:
		f.next.ServeHTTP(w, r)
	}
}

func (f *faults) set(r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kind, f.match, f.times = "", "", 0
	if r.Method == http.MethodPost {
		f.kind, f.match = r.FormValue("kind"), r.FormValue("match")
		f.times, _ = strconv.Atoi(r.FormValue("times")) // 0: none
	}
}

func (f *faults) take(path string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.times <= 0 || !strings.Contains(path, f.match) {
		return ""
	}
	f.times--
	return f.kind
}

// change answers with another body of the length that was promised.
func (f *faults) change(w http.ResponseWriter, r *http.Request, how func([]byte) []byte) {
	rec := httptest.NewRecorder()
	f.next.ServeHTTP(rec, r)
	body := rec.Body.Bytes()
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(rec.Code)
	if r.Method != http.MethodGet {
		_, _ = w.Write(body) // the client is gone
		return
	}
	changed := how(bytes.Clone(body))
	_, _ = w.Write(changed) // the client is gone
	if len(changed) < len(body) {
		panic(http.ErrAbortHandler)
	}
}
