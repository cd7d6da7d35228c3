package reach

import (
	"net"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		refuses []string
		asks    []string
		err     string
	}{
		"When nothing is given it should refuse where clouds serve credentials": {
			refuses: []string{"169.254.169.254", "::ffff:169.254.169.254", "fe80::1%eth0", "0.0.0.0", "::", "224.0.0.1"},
			asks:    []string{"10.0.0.1", "127.0.0.1", "192.0.2.1", "fd00:ec2::253"},
		},
		"When networks are given it should refuse them, too": {
			text: "10.96.0.0/12, fd00:ec2::254 ,127.0.0.0/8", refuses: []string{"10.96.0.1", "10.111.255.255", "::ffff:10.97.0.1", "fd00:ec2::254", "127.0.0.1", "169.254.169.254"},
			asks: []string{"10.112.0.1", "fd00:ec2::253"},
		},
		"When the bits of a host are given it should take the network": {text: "10.96.3.4/12", refuses: []string{"10.100.0.1"}},
		"When it is a name it should say what to write":                {text: "10.0.0.0/8,registry.example.com", err: `"registry.example.com" is no network: write address/bits, such as 10.96.0.0/12, separated by commas`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			refused, err := Parse(tc.text)
			if tc.err != "" {
				g.Expect(err).To(MatchError(tc.err))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			for _, addr := range tc.refuses {
				g.Expect(refused.Has(netip.MustParseAddr(addr))).To(BeTrue(), addr)
			}
			for _, addr := range tc.asks {
				g.Expect(refused.Has(netip.MustParseAddr(addr))).To(BeFalse(), addr)
			}
		})
	}
}

func TestDial(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = l.Close() })
	conn, err := Refused{}.DialContext(5*time.Second)(t.Context(), "tcp", l.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conn.Close()).To(Succeed())
	refused, err := Parse("127.0.0.0/8,::1")
	g.Expect(err).NotTo(HaveOccurred())
	_, port, err := net.SplitHostPort(l.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	_, err = refused.DialContext(5*time.Second)(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	g.Expect(err).To(MatchError(ErrRefused), "When a name leads to a refused network it should not be asked")
}
