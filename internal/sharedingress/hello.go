package sharedingress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

const (
	// maxHello bounds the first message of TLS, in bytes: one record of the largest size. Clients of Kubernetes send 300 bytes to 2 KiB, of which the
	// post-quantum key is 1.2; tickets with chains of certificates and encrypted names (ECH) add a few.
	maxHello = 16<<10 + 5
	// maxHeader bounds a PROXY header, in bytes. Ours has about a hundred.
	maxHeader = 4 << 10
	// ClusterTLV is the type of the TLV that holds the ID of a hosted cluster.
	ClusterTLV = 0x20
)

// errStop ends a handshake as soon as the name is known.
var errStop = errors.New("the name is known")

// serverName reads the first message of TLS, and gives the name that the client asks for, "" if it names none, and the bytes that were read.
func serverName(r io.Reader) (string, []byte, error) {
	read := &bytes.Buffer{}
	name, known := "", false
	err := tls.Server(readOnly{io.TeeReader(io.LimitReader(r, maxHello), read)}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name, known = hello.ServerName, true
			return nil, errStop
		},
	}).Handshake() //nolint:noctx // because who closes the connection ends it, without one more goroutine for each
	if !known && read.Len() == maxHello {
		return "", nil, fmt.Errorf("the first message of TLS has more than %d bytes", maxHello)
	}
	if !known {
		return "", nil, fmt.Errorf("reading the first message of TLS: %w", err)
	}
	return name, bytes.Clone(read.Bytes()), nil // without what it grew by, for as long as the backend isn't reached
}

// readOnly is a connection that can only be read.
type readOnly struct{ io.Reader }

func (readOnly) Write([]byte) (int, error)        { return 0, io.ErrClosedPipe }
func (readOnly) Close() error                     { return nil }
func (readOnly) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (readOnly) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (readOnly) SetDeadline(time.Time) error      { return nil }
func (readOnly) SetReadDeadline(time.Time) error  { return nil }
func (readOnly) SetWriteDeadline(time.Time) error { return nil }

// signature begins each PROXY header of version 2.
var signature = []byte("\r\n\r\n\x00\r\nQUIT\n")

// proxyHeader is what counts of a PROXY header.
type proxyHeader struct {
	// Source is what the sender says of the client; it is for logs, since nobody vouches for it. Not valid when it says nothing.
	Source netip.AddrPort
	// Cluster is the ID of a hosted cluster, "" for none.
	Cluster string
}

// readHeader reads a PROXY header of version 2. Version 1 is refused: it can't name a cluster.
func readHeader(r *bufio.Reader) (h proxyHeader, err error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return h, fmt.Errorf("reading the PROXY header: %w", err)
	}
	if !bytes.Equal(head[:12], signature) || head[12]>>4 != 2 {
		return h, errors.New("the connection does not begin with a PROXY header of version 2")
	}
	length := int(binary.BigEndian.Uint16(head[14:]))
	if length > maxHeader {
		return h, fmt.Errorf("the PROXY header has %d bytes, more than %d", length, maxHeader)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return h, fmt.Errorf("reading the PROXY header: %w", err)
	}
	const local, proxy = 0, 1
	switch head[12] & 0xf {
	case local, proxy:
	default:
		return h, fmt.Errorf("the PROXY header has the unknown command %d", head[12]&0xf)
	}
	addresses := 0
	switch family := head[13] >> 4; family {
	case 1:
		addresses = 12
	case 2:
		addresses = 36
	case 3:
		addresses = 216
	}
	if addresses > len(body) {
		return h, errors.New("the PROXY header is too short for its addresses")
	}
	if half := addresses / 2; addresses == 12 || addresses == 36 { // two addresses, and then two ports
		if ip, ok := netip.AddrFromSlice(body[:half-2]); ok {
			h.Source = netip.AddrPortFrom(ip, binary.BigEndian.Uint16(body[addresses-4:]))
		}
	}
	for rest := body[addresses:]; len(rest) > 0; {
		if len(rest) < 3 || len(rest) < 3+int(binary.BigEndian.Uint16(rest[1:])) {
			return h, errors.New("the PROXY header is cut off in a TLV")
		}
		n := 3 + int(binary.BigEndian.Uint16(rest[1:]))
		if rest[0] == ClusterTLV {
			h.Cluster = string(rest[3:n])
		}
		rest = rest[n:]
	}
	return h, nil
}

// Header is a PROXY header of version 2 that names a hosted cluster, as a node's proxy sends it before all else.
func Header(source, destination netip.AddrPort, cluster string) []byte {
	body := &bytes.Buffer{}
	family := byte(0x11) // TCP over IPv4
	from, to := source.Addr().Unmap(), destination.Addr().Unmap()
	if !from.Is4() || !to.Is4() {
		family = 0x21
		a, b := source.Addr().As16(), destination.Addr().As16()
		body.Write(a[:])
		body.Write(b[:])
	} else {
		body.Write(from.AsSlice())
		body.Write(to.AsSlice())
	}
	_ = binary.Write(body, binary.BigEndian, source.Port()) // a buffer takes everything
	_ = binary.Write(body, binary.BigEndian, destination.Port())
	body.WriteByte(ClusterTLV)
	_ = binary.Write(body, binary.BigEndian, uint16(len(cluster)))
	body.WriteString(cluster)
	out := append(bytes.Clone(signature), 0x21, family)
	return append(binary.BigEndian.AppendUint16(out, uint16(body.Len())), body.Bytes()...)
}
