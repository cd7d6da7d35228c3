//go:build bench

package ignition

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/ignition/server"
	"hcp.internal/platform/internal/ignition/tokens"
)

// What the project wants.
const targetP99 = 20 * time.Millisecond

const (
	token       = "5f0c1f1e-0c5c-4c57-9d5c-6c1b1b0c5a11"
	payloadSize = 64 << 10 // a payload with some MachineConfigs
	guessers    = 200      // connections that guess
	tokensKnown = 400      // of 200 pools
)

func rate() int {
	if n, err := strconv.Atoi(os.Getenv("BENCH_RATE")); err == nil && n > 0 {
		return n
	}
	return 200
}

func load() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("BENCH_LOAD")); err == nil && d > 0 {
		return d
	}
	return 10 * time.Second
}

// identity is a certificate for loopback.
func identity(b *testing.B) (tls.Certificate, *x509.CertPool) {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		b.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		b.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// ours starts the ignition server and returns its address.
func ours(b *testing.B, cert tls.Certificate, body []byte) string {
	b.Helper()
	store := &tokens.Store{}
	for n := range tokensKnown {
		store.Set(&tokens.Payload{Secret: fmt.Sprint("token-", n), Data: body}, tokens.Token{Value: fmt.Sprint("other-", n), Expires: time.Now().Add(time.Hour)})
	}
	store.Set(&tokens.Payload{Secret: "token", NodePool: "clusters/demo", Data: body}, tokens.Token{Value: token, Expires: time.Now().Add(time.Hour)})
	l := listen(b)
	s := &server.Server{
		Handler:  &server.Handler{Tokens: store, Clock: clock.RealClock{}, Limiter: &server.Limiter{}},
		Listener: l, Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil },
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Start(ctx) }()
	b.Cleanup(func() { stop(); <-done })
	return l.Addr().String()
}

// bare starts the least that could serve the same bytes.
func bare(b *testing.B, cert tls.Certificate, body []byte) string {
	b.Helper()
	l := listen(b)
	s := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		ReadHeaderTimeout: 5 * time.Second,
	}
	go func() { _ = s.ServeTLS(l, "", "") }()
	b.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

func listen(b *testing.B) net.Listener {
	b.Helper()
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func get(ctx context.Context, c *http.Client, addr, token string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+addr+"/ignition", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+base64.StdEncoding.EncodeToString([]byte(token)))
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// machines ask at a fixed rate, whether or not earlier ones have their answer, and report how long each waited.
func machines(b *testing.B, addr string, pool *x509.CertPool) (waits []time.Duration, failed int) {
	b.Helper()
	before := cpu(b)
	defer func() { used = cpu(b) - before }()
	c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	ticker := time.NewTicker(time.Second / time.Duration(rate()))
	defer ticker.Stop()
	for end := time.Now().Add(load()); time.Now().Before(end); <-ticker.C {
		wg.Go(func() {
			start := time.Now()
			status, err := get(b.Context(), c, addr, token)
			took := time.Since(start)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || status != http.StatusOK {
				failed++
				return
			}
			waits = append(waits, took)
		})
	}
	wg.Wait()
	slices.Sort(waits)
	return waits, failed
}

// used is the processor time of the last load, of both sides: unlike waits it hardly depends on what else the machine does.
var used time.Duration

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// guess tries tokens as fast as answers come, until stop is called, which says how many were tried since guess returned.
func guess(addr string, pool *x509.CertPool) (stop func() int64) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		MaxIdleConnsPerHost: guessers, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	var tried atomic.Int64
	var wg sync.WaitGroup
	for n := range guessers {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := get(ctx, c, addr, fmt.Sprint("guess-", n, "-", i)); err == nil {
					tried.Add(1)
				}
			}
		})
	}
	// Their handshakes are over when each has its first answers.
	for end := time.Now().Add(20 * time.Second); tried.Load() < 3*guessers && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	before := tried.Load()
	return func() int64 { n := tried.Load() - before; cancel(); wg.Wait(); return n }
}

func report(b *testing.B, name string, waits []time.Duration, failed int) {
	b.Helper()
	if len(waits) == 0 {
		b.Fatalf("%s: nobody was served", name)
	}
	at := func(q float64) time.Duration { return waits[int(q*float64(len(waits)-1))] }
	fmt.Printf("%-34s %6d served %4d failed   p50 %8s  p99 %8s  max %8s  CPU %s each\n", name, len(waits), failed,
		at(0.5).Round(10*time.Microsecond), at(0.99).Round(10*time.Microsecond), at(1).Round(10*time.Microsecond),
		(used / time.Duration(len(waits))).Round(10*time.Microsecond))
	b.ReportMetric(at(0.99).Seconds()*1000, name[:4]+"-p99-ms")
}

// BenchmarkTokenRequests prints the waits of machines.
func BenchmarkTokenRequests(b *testing.B) {
	body := bytes.Repeat([]byte("x"), payloadSize)
	cert, pool := identity(b)
	fmt.Printf("%d requests/s for %s, a connection and %d KiB each; wanted: p99 under %s\n", rate(), load(), payloadSize>>10, targetP99)
	for b.Loop() {
		waits, failed := machines(b, bare(b, cert, body), pool)
		report(b, "bare HTTPS server", waits, failed)

		addr := ours(b, cert, body)
		waits, failed = machines(b, addr, pool)
		report(b, "ignition server", waits, failed)

		stop := guess(addr, pool)
		start := time.Now()
		waits, failed = machines(b, addr, pool)
		took, tried := time.Since(start), stop()
		report(b, "under attack: ignition server", waits, failed)
		fmt.Printf("%-34s %6.0f guesses/s got an answer, on %d connections\n", "", float64(tried)/took.Seconds(), guessers)
	}
}
