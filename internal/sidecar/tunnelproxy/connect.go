package tunnelproxy

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"hcp.internal/platform/internal/konnectivity"
)

// connectHandler is an HTTP proxy: CONNECT, and requests with a whole URL, which are of the scheme http.
func connectHandler(d *Dialer, log *slog.Logger) http.Handler {
	plain := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL, r.Out.Host = r.In.URL, r.In.Host },
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				return d.DialContext(ctx, "http", address)
			},
			IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4, ResponseHeaderTimeout: time.Minute,
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			log.Info("no connection", "target", r.URL.Host, "reason", err.Error())
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			connect(w, r, d, log)
		case r.URL.Scheme == "http" && r.URL.Host != "":
			plain.ServeHTTP(w, r)
		default:
			http.Error(w, "this is a proxy: send CONNECT, or a request with a whole URL", http.StatusBadRequest)
		}
	})
}

func connect(w http.ResponseWriter, r *http.Request, d *Dialer, log *slog.Logger) {
	dialing, cancel := context.WithTimeout(r.Context(), connectingTimeout)
	target, err := d.DialContext(dialing, "https", r.URL.Host)
	cancel()
	if err != nil {
		log.Info("no connection", "target", r.URL.Host, "reason", err.Error())
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer target.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		log.Error("taking over a connection", "error", err)
		return
	}
	defer client.Close()
	_ = client.SetDeadline(time.Time{})
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	if n := buffered.Reader.Buffered(); n > 0 {
		ahead, _ := buffered.Reader.Peek(n)
		if _, err := target.Write(ahead); err != nil {
			return
		}
	}
	pipe(context.WithoutCancel(r.Context()), client, target, konnectivity.HalfClosed)
}

// pipe copies both ways until both have ended, one has failed, or ctx is over. When one has ended, or the client has gone, and nothing moves for halfClosed, the
// other is not waited for.
func pipe(ctx context.Context, client, target net.Conn, halfClosed time.Duration) {
	end := func() {
		_ = client.Close()
		_ = target.Close()
	}
	stop := context.AfterFunc(ctx, end)
	defer stop()
	lull, over := &konnectivity.Lull{}, make(chan struct{})
	defer close(over)
	go lull.Watch(client, halfClosed, over, end)
	var both sync.WaitGroup
	half := func(to, from net.Conn) {
		_, err := io.Copy(moving{to, lull}, from)
		lull.Ended()
		if c, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
			_ = c.CloseWrite()
			return
		}
		_ = to.Close()
	}
	both.Go(func() { half(client, target) })
	both.Go(func() { half(target, client) })
	both.Wait()
}

// moving tells of what is written.
type moving struct {
	io.Writer
	lull *konnectivity.Lull
}

func (m moving) Write(p []byte) (int, error) {
	n, err := m.Writer.Write(p)
	if n > 0 {
		m.lull.Moved()
	}
	return n, err
}
