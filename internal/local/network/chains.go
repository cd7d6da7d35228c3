package network

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Families of nftables.
const (
	FamilyIPv4   = unix.NFPROTO_IPV4
	FamilyInet   = unix.NFPROTO_INET
	FamilyBridge = unix.NFPROTO_BRIDGE
)

// HasChain asks the kernel whether nftables has a chain. It is asked all the time, so it starts no program.
func HasChain(family byte, table, chain string) (bool, error) {
	has, err := hasChain(family, table, chain)
	if err != nil {
		return false, fmt.Errorf("asking the kernel for chain %s of table %s: %w", chain, table, err)
	}
	return has, nil
}

func hasChain(family byte, table, chain string) (bool, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := unix.Sendto(fd, chainRequest(family, table, chain), 0, kernel); err != nil {
		return false, err
	}
	answer := make([]byte, 16<<10)                            // one chain has some hundred bytes
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT) // the kernel answers while it takes the request
	if err != nil {
		return false, err
	}
	if n < unix.NLMSG_HDRLEN+4 {
		return false, errors.New("the answer is too short")
	}
	if binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return true, nil
	}
	errno := unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])))
	if errno == unix.ENOENT {
		return false, nil
	}
	return false, errno
}

// chainRequest is a message of netlink: a header, the family, and two attributes, each with its length and filled up to a multiple of four bytes.
func chainRequest(family byte, table, chain string) []byte {
	attribute := func(b []byte, kind uint16, value string) []byte {
		b = binary.NativeEndian.AppendUint16(b, uint16(4+len(value)+1))
		b = binary.NativeEndian.AppendUint16(b, kind)
		b = append(b, value...)
		return append(b, make([]byte, 4-len(value)%4)...) // at least the zero at the end of a text
	}
	b := make([]byte, unix.NLMSG_HDRLEN)
	binary.NativeEndian.PutUint16(b[4:], unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETCHAIN)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	b = append(b, family, 0, 0, 0)
	b = attribute(b, unix.NFTA_CHAIN_TABLE, table)
	b = attribute(b, unix.NFTA_CHAIN_NAME, chain)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}
