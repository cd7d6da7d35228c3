package konnectivity

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"testing"

	. "github.com/onsi/gomega"
)

func TestDialer(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	w.agent(s.back)
	where := echo(t)
	_ = w.mustDial(s.front, where) // the agent is there
	dialer := func(t *testing.T, files Files) *Dialer {
		d, err := NewDialer(s.front, files)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return d
	}
	t.Run("When a client has a certificate for tunnels it should reach targets by real servers and agents", func(t *testing.T) {
		g := NewWithT(t)
		conn, err := dialer(t, w.client).DialContext(t.Context(), "tcp", where)
		g.Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		_, err = io.WriteString(conn, "hello")
		g.Expect(err).NotTo(HaveOccurred())
		got := make([]byte, 5)
		_, err = io.ReadFull(conn, got)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(got)).To(Equal("hello"))
	})
	t.Run("When a target isn't there it should say why", func(t *testing.T) {
		g := NewWithT(t)
		l := listen(t)
		nobody := l.Addr().String()
		g.Expect(l.Close()).To(Succeed())
		_, err := dialer(t, w.client).DialContext(t.Context(), "tcp", nobody)
		g.Expect(err).To(MatchError(And(ContainSubstring("connecting to "+nobody+" by the tunnel"), ContainSubstring("refuses the connection"))))
		_, err = dialer(t, w.client).DialContext(t.Context(), "tcp", "no port")
		g.Expect(err).To(MatchError(ContainSubstring("host:port")))
		_, err = dialer(t, w.client).DialContext(t.Context(), "udp", where)
		g.Expect(err).To(MatchError(ContainSubstring("not udp")))
	})
	t.Run("When a certificate is one of an agent it should get nothing", func(t *testing.T) {
		_, err := dialer(t, w.ca.issue(agentName, x509.ExtKeyUsageClientAuth)).DialContext(t.Context(), "tcp", where)
		NewWithT(t).Expect(err).To(HaveOccurred())
	})
	t.Run("When files are missing it should say which", func(t *testing.T) {
		_, err := NewDialer(s.front, Files{Cert: "/none/tls.crt", Key: "/none/tls.key", CA: "/none/ca.crt"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("/none/")))
	})
	t.Run("When a proxy doesn't answer and the caller gives up it should end", func(t *testing.T) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := RequestConnect(ctx, ours, "a:1", nil)
		NewWithT(t).Expect(err).To(MatchError(context.Canceled))
	})
}
