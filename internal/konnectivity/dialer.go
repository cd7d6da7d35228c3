package konnectivity

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Dialer opens tunnels into the network of the hosted cluster, as kube-apiserver does.
type Dialer struct {
	address string
	creds   *credentials
}

// NewDialer uses the server at an address, host:port, with a client certificate that may ask for tunnels. Files are read again when they change.
func NewDialer(address string, files Files) (*Dialer, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("the konnectivity server's address %q is not host:port", address)
	}
	creds, err := load(files, time.Now)
	if err != nil {
		return nil, err
	}
	return &Dialer{address: address, creds: creds}, nil
}

// NewDialerFrom is NewDialer for PEM that is at hand, as from Secrets: a dialer for as long as they are valid.
func NewDialerFrom(address string, cert, key, ca []byte) (*Dialer, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("the konnectivity server's address %q is not host:port", address)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate for tunnels: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("the authority of the konnectivity server's certificate holds no certificate")
	}
	return &Dialer{address: address, creds: &credentials{fixed: true, pair: &pair, pool: pool}}, nil
}

// DialContext connects to host:port from a node of the hosted cluster, which also resolves a name. network is tcp.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil, fmt.Errorf("tunnels carry tcp, not %s", network)
	}
	to, err := parseTarget(address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", address, err)
	}
	host, _, _ := net.SplitHostPort(d.address)
	config, err := clientTLS(d.creds, Protocol{}, host)
	if err != nil {
		return nil, err
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, fmt.Errorf("connecting to the konnectivity server %s: %w", d.address, err)
	}
	tunnel, err := RequestConnect(ctx, conn, to.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s by the tunnel: %w", to, err)
	}
	return tunnel, nil
}

// maxRefusal is as much of a refusal as is told.
const maxRefusal = 512

// RequestConnect asks the proxy at the other end of a connection for one to authority, host:port. When it is refused, or ctx ends first, the
// connection is closed.
func RequestConnect(ctx context.Context, conn net.Conn, authority string, header http.Header) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	request := fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n", authority, authority)
	for name, values := range header {
		for _, v := range values {
			request += name + ": " + v + "\r\n"
		}
	}
	out, err := requestConnect(conn, request+"\r\n")
	if !stop() && err == nil {
		err = ctx.Err() // the connection is closed
	}
	if err != nil {
		_ = conn.Close()
		return nil, errors.Join(err, ctx.Err())
	}
	return out, nil
}

func requestConnect(conn net.Conn, request string) (net.Conn, error) {
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect}) //nolint:bodyclose // because the body is the connection, which is closed by who made it
	if err != nil {
		return nil, fmt.Errorf("reading the proxy's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		return nil, fmt.Errorf("the proxy answered %s: %s", response.Status, strings.TrimSpace(string(reason)))
	}
	if reader.Buffered() == 0 {
		return conn, nil
	}
	return &readAhead{Conn: conn, reader: reader}, nil
}

// readAhead is a connection of which something has been read already.
type readAhead struct {
	net.Conn
	reader *bufio.Reader
}

func (c *readAhead) Read(p []byte) (int, error) { return c.reader.Read(p) }

// CloseWrite tells the other side that nothing more comes.
func (c *readAhead) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
