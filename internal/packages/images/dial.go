package images

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

var errRefused = errors.New("the registry's address is link-local, where metadata services are: such addresses are never asked")

// dialTime bounds a connection's beginning. The library's own 30 s would be half of a pull.
const dialTime = 10 * time.Second

// Transport is how registries are asked. Names are chosen by who writes packages, and registries name further hosts, for tokens and blobs: addresses where
// clouds serve credentials are refused once a name has been looked up, so that no name leads there.
func Transport() http.RoundTripper {
	t, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return remote.DefaultTransport
	}
	t = t.Clone()
	dialer := &net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if ip := at.Addr().Unmap(); ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
			return errRefused
		}
		return nil
	}}
	t.DialContext = dialer.DialContext
	return t
}
