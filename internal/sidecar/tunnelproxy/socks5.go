package tunnelproxy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"hcp.internal/platform/internal/konnectivity"
)

// SOCKS version 5, RFC 1928: the command CONNECT, without authentication, for the containers of the same pod.
const (
	socksVersion = 5
	noAuth       = 0
	noMethod     = 0xff
	cmdConnect   = 1
	typeIPv4     = 1
	typeName     = 3
	typeIPv6     = 4

	replyOK           = 0
	replyFailed       = 1
	replyNoCommand    = 7
	replyNoAddress    = 8
	greetingTimeout   = 10 * time.Second
	connectingTimeout = 30 * time.Second
)

// serveSocks serves one client.
func serveSocks(ctx context.Context, client net.Conn, d *Dialer) error {
	defer client.Close()
	if err := client.SetDeadline(time.Now().Add(greetingTimeout)); err != nil {
		return err
	}
	address, err := greet(client)
	if err != nil {
		return err
	}
	dialing, cancel := context.WithTimeout(ctx, connectingTimeout)
	target, err := d.DialContext(dialing, "https", address)
	cancel()
	if err != nil {
		return errors.Join(fmt.Errorf("connecting to %s: %w", address, err), reply(client, replyFailed))
	}
	defer target.Close()
	if err := errors.Join(client.SetDeadline(time.Time{}), reply(client, replyOK)); err != nil {
		return err
	}
	pipe(ctx, client, target, konnectivity.HalfClosed)
	return nil
}

// greet reads what a client wants, and returns it as host:port.
func greet(client net.Conn) (string, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(client, head); err != nil {
		return "", err
	}
	if head[0] != socksVersion {
		return "", fmt.Errorf("a client speaks version %d of SOCKS, not 5", head[0])
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(client, methods); err != nil {
		return "", err
	}
	method := byte(noMethod)
	for _, m := range methods {
		if m == noAuth {
			method = noAuth
		}
	}
	if _, err := client.Write([]byte{socksVersion, method}); err != nil || method == noMethod {
		return "", errors.Join(err, errors.New("a client wants to authenticate itself, which nobody checks here"))
	}
	request := make([]byte, 4)
	if _, err := io.ReadFull(client, request); err != nil {
		return "", err
	}
	if request[0] != socksVersion || request[1] != cmdConnect {
		return "", errors.Join(fmt.Errorf("a client sends command %d, not CONNECT", request[1]), reply(client, replyNoCommand))
	}
	host, err := readHost(client, request[3])
	if err != nil {
		return "", errors.Join(err, reply(client, replyNoAddress))
	}
	port := make([]byte, 2)
	if _, err := io.ReadFull(client, port); err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port)))), nil
}

func readHost(client net.Conn, kind byte) (string, error) {
	size := map[byte]int{typeIPv4: 4, typeIPv6: 16}[kind]
	if kind == typeName {
		length := make([]byte, 1)
		if _, err := io.ReadFull(client, length); err != nil {
			return "", err
		}
		size = int(length[0])
	}
	if size == 0 {
		return "", fmt.Errorf("a client sends an address of kind %d", kind)
	}
	raw := make([]byte, size)
	if _, err := io.ReadFull(client, raw); err != nil {
		return "", err
	}
	if kind == typeName {
		return string(raw), nil
	}
	addr, _ := netip.AddrFromSlice(raw)
	return addr.String(), nil
}

// reply says what became of a request. The address that it is to have means nothing for CONNECT.
func reply(client net.Conn, code byte) error {
	_, err := client.Write([]byte{socksVersion, code, 0, typeIPv4, 0, 0, 0, 0, 0, 0})
	return err
}
