// Package tokenminter keeps a file with a fresh token of a hosted cluster's ServiceAccount, for programs that run on the
// management side but act as that account: towards the hosted API, or towards a cloud that trusts its issuer.
package tokenminter

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"time"

	"hcp.internal/platform/internal/atomicfile"
	"hcp.internal/platform/internal/sidecar/kubeapi"
)

const (
	// tokenLifetime is what is asked for. One hour is short enough for a leaked token to be of little use, and leaves 12
	// minutes of an unreachable API server between the renewal time and the end.
	tokenLifetime = time.Hour
	// renewAt is the part of a token's life after which the next one is fetched.
	renewAt = 0.8
	// Bounds on the time between renewals, whatever the server says about a token's end.
	minRenewal, maxRenewal = 10 * time.Second, 24 * time.Hour
	// Bounds of the wait between failed attempts: an API server that starts is a few seconds away.
	minBackoff, maxBackoff = 500 * time.Millisecond, 15 * time.Second
	// tokenFileMode lets the group read: the reader may run as another user of the same pod.
	tokenFileMode = 0o640
)

// Minter writes tokens.
type Minter struct {
	Namespace, Name, Audience string // the ServiceAccount, and for whom the token is
	File                      string
	// Connect returns a client of the hosted cluster; it is called for every token, so that a rotated kubeconfig is used.
	Connect func(ctx context.Context) (*kubeapi.Client, error)
	Log     io.Writer
	Now     func() time.Time
}

// Run keeps the file fresh until ctx ends, or returns after the first token when once is set.
func (m Minter) Run(ctx context.Context, once bool) error {
	backoff := minBackoff
	for {
		wait, err := m.mint(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fmt.Fprintf(m.Log, "no token yet, next try in %s: %v\n", backoff, err)
			wait, backoff = backoff, min(2*backoff, maxBackoff)
		case once:
			return nil
		default:
			backoff = minBackoff
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(jitter(wait)):
		}
	}
}

// mint fetches and stores one token and returns how long it stays fresh.
func (m Minter) mint(ctx context.Context) (time.Duration, error) {
	client, err := m.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	request := func() (*tokenRequest, error) {
		in, out := newTokenRequest(m.Audience), &tokenRequest{}
		return out, client.Post(ctx, m.accountsPath()+"/"+url.PathEscape(m.Name)+"/token", in, out)
	}
	got, err := request()
	if kubeapi.IsNotFound(err) {
		if err := m.createAccount(ctx, client); err != nil {
			return 0, err
		}
		got, err = request()
	}
	if err != nil {
		return 0, fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", m.Namespace, m.Name, err)
	}
	if got.Status.Token == "" {
		return 0, fmt.Errorf("requesting a token of ServiceAccount %s/%s: the answer has none", m.Namespace, m.Name)
	}
	if err := atomicfile.Write(m.File, []byte(got.Status.Token), tokenFileMode); err != nil {
		return 0, err
	}
	fresh := freshFor(m.Now(), got.Status.Expiration)
	fmt.Fprintf(m.Log, "wrote %s, next token in %s\n", m.File, fresh.Round(time.Second))
	return fresh, nil
}

// tokenRequest is the part of authentication.k8s.io/v1 TokenRequest that is used here.
type tokenRequest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Audiences         []string `json:"audiences"`
		ExpirationSeconds int64    `json:"expirationSeconds"`
	} `json:"spec"`
	Status struct {
		Token      string    `json:"token"`
		Expiration time.Time `json:"expirationTimestamp"`
	} `json:"status,omitzero"`
}

func newTokenRequest(audience string) tokenRequest {
	r := tokenRequest{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
	r.Spec.Audiences = []string{audience}
	r.Spec.ExpirationSeconds = int64(tokenLifetime / time.Second)
	return r
}

func (m Minter) accountsPath() string {
	return "/api/v1/namespaces/" + url.PathEscape(m.Namespace) + "/serviceaccounts"
}

// createAccount creates the ServiceAccount. Its namespace is created by whoever owns it; until then this fails and is tried again.
func (m Minter) createAccount(ctx context.Context, client *kubeapi.Client) error {
	account := map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount",
		"metadata": map[string]any{"namespace": m.Namespace, "name": m.Name},
	}
	err := client.Post(ctx, m.accountsPath(), account, nil)
	if err != nil && !kubeapi.IsAlreadyExists(err) {
		return fmt.Errorf("creating ServiceAccount %s/%s: %w", m.Namespace, m.Name, err)
	}
	return nil
}

// freshFor is how long after now a token that ends at expiry needs no successor.
func freshFor(now, expiry time.Time) time.Duration {
	life := time.Duration(float64(expiry.Sub(now)) * renewAt)
	return min(max(life, minRenewal), maxRenewal)
}

// jitter spreads the renewals of many control planes: up to 10 % earlier, never later.
func jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/10+1))
}
