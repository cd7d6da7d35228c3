package release

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"net/http"
	"sync"

	"hcp.internal/platform/internal/oci/pull"
)

// maxTrusts bounds how many bundles of authorities have connections of their own. When there are more all begin anew, which costs a handshake each.
const maxTrusts = 100

// trusts are the transports by the hash of the bundle that they trust besides the system's authorities. A view for each lookup shares them.
type trusts struct {
	mu         sync.Mutex
	transports map[string]*http.Transport
}

func (t *trusts) transport(base *http.Transport, hash string, bundle []byte) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.transports[hash]; known != nil {
		return known
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(bundle) {
		return nil
	}
	if t.transports == nil || len(t.transports) >= maxTrusts {
		for _, old := range t.transports {
			old.CloseIdleConnections()
		}
		t.transports = map[string]*http.Transport{}
	}
	made := base.Clone()
	if made.TLSClientConfig == nil {
		made.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	made.TLSClientConfig.RootCAs = roots
	t.transports[hash] = made
	return made
}

// WithTrust is a view that trusts registries whose certificates the authorities in bundle (PEM) have signed, besides those that the process
// trusts. What is learned that way is not told to anybody who trusts other ones. A bundle without certificates changes nothing.
func (r *Registry) WithTrust(bundle []byte) *Registry {
	base, ok := r.options.Transport.(*http.Transport)
	if len(bundle) == 0 || !ok {
		return r
	}
	sum := sha256.Sum256(bundle)
	hash := hex.EncodeToString(sum[:])
	transport := r.trusts.transport(base, hash, bundle)
	if transport == nil {
		return r
	}
	view := *r
	view.client, view.trust = pull.Guard(transport, maxResponse), hash
	return &view
}

// WithTrustOf is WithTrust for a provider that may be a *Registry; any other, as tests have, stays as it is. P is an interface that *Registry has.
func WithTrustOf[P any](provider P, bundle []byte) P {
	registry, ok := any(provider).(*Registry)
	if !ok {
		return provider
	}
	if view, ok := any(registry.WithTrust(bundle)).(P); ok {
		return view
	}
	return provider
}
