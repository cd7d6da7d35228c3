// Command s3server is a server of S3 for tests, in memory, with faults: slow, busy (503), answers that break off, content that is changed.
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
	"log"
	"net/http"
	"net/http/httptest"
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
	flag.Parse()
	backend := s3mem.New()
	if err := backend.CreateBucket(context.Background(), *bucket); err != nil {
		log.Fatal(err)
	}
	storage := gofakes3.New(backend, gofakes3.WithV4Auth(map[string]string{*key: *secret})).Server()
	server := &http.Server{Addr: *listen, Handler: &faults{next: storage}, ReadHeaderTimeout: 10 * time.Second}
	fmt.Println("listening on", *listen)
	log.Fatal(server.ListenAndServe())
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
		w.Header().Set("ETag", `"0"`)
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
