package tools

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"time"

	"hcp.internal/platform/internal/ignition/payload"
)

const (
	// askEvery and askTimeout are how the server is asked until it answers.
	askEvery, askTimeout = time.Second, 5 * time.Second
	// accepted asks for the version of Ignition that all machines know.
	accepted = "application/vnd.coreos.ignition+json;version=3.2.0, */*;q=0.1"
	// pool is that of which the server gives the configuration: no rules for workers alone apply to it.
	pool = "master"
	// identityLife is how long the server's certificate is good, and identityEarly how long before its end there is another.
	identityLife, identityEarly = 24 * time.Hour, time.Hour
)

// certificate is a pair in PEM.
type certificate struct{ cert, key []byte }

// identity is the certificate of the machine-config-server. Nobody verifies it: it is asked within this machine, without TLS.
type identity struct {
	made certificate
	end  time.Time
}

func (i *identity) pair(now time.Time) (certificate, error) {
	if now.Before(i.end.Add(-identityEarly)) {
		return i.made, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate{}, fmt.Errorf("making a key for the machine-config-server: %w", err)
	}
	end := now.Add(identityLife)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "machine-config-server"}, NotBefore: now.Add(-time.Minute), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return certificate{}, fmt.Errorf("making a certificate for the machine-config-server: %w", err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return certificate{}, fmt.Errorf("encoding the key of the machine-config-server: %w", err)
	}
	i.end = end
	i.made = certificate{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}),
	}
	return i.made, nil
}

// serve runs the server until it has given the payload.
func (w *work) serve(ctx context.Context, s stage) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, w.serveTime, fmt.Errorf("the configuration was not served within %s", w.serveTime))
	defer cancel()
	p, err := w.runner.Start(ctx, w.command(s))
	if err != nil {
		return nil, w.failed(err)
	}
	defer p.Stop()
	// It has no way out of this machine, and nothing of a proxy or of other connections is wanted.
	client := &http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	tick := time.NewTicker(w.askEvery)
	defer tick.Stop()
	last := "it does not answer"
	for {
		data, problem := ask(ctx, client, w.request.insecurePort)
		if problem == nil {
			return data, nil
		}
		if errors.Is(problem, errTooLarge) {
			return nil, &payload.InvalidError{Err: fmt.Errorf("release %s: %w", w.in.Version, problem)}
		}
		if ctx.Err() == nil {
			last = problem.Error()
		}
		select {
		case <-p.Done():
			if err := p.Err(); err != nil {
				return nil, w.failed(err)
			}
			return nil, fmt.Errorf("release %s: the machine-config-server ended before it had served the configuration: %s", w.in.Version, p.Said())
		case <-ctx.Done():
			return nil, fmt.Errorf("release %s: %w; the machine-config-server was asked last: %s; it said: %s", w.in.Version, context.Cause(ctx), last, p.Said())
		case <-tick.C:
		}
	}
}

// errTooLarge: another try would get the same.
var errTooLarge = fmt.Errorf("the configuration has more than %d bytes: take files out of the MachineConfigs", maxPayload)

// ask gets the payload once.
func ask(ctx context.Context, client *http.Client, port int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://localhost:%d/config/%s", port, pool), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accepted)
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("it does not answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers with status %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxPayload+1))
	if err != nil {
		return nil, fmt.Errorf("reading its answer: %w", err)
	}
	if len(data) > maxPayload {
		return nil, errTooLarge
	}
	return data, nil
}
