package etcdinit

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// dialTimeout bounds the search for members that listen. A cluster that is being founded has none, and its start must not
	// wait for them; one that runs accepts a connection within milliseconds.
	dialTimeout = 500 * time.Millisecond
	// viewTimeout bounds the question to members that do listen. They answer at once, except while they are starting.
	viewTimeout = 5 * time.Second
	// requestTimeout bounds a request that changes members: it needs a leader, and an election takes a few seconds.
	requestTimeout = 15 * time.Second
	// maxView bounds the member list that a peer sends.
	maxView = 1 << 20
	// clientPort is where members serve clients.
	clientPort = "2379"
)

// remote is the cluster as the plan's execution needs it.
type remote interface {
	Members(ctx context.Context) ([]Member, error)
	Remove(ctx context.Context, id uint64) error
	// Add adds a voting member and returns the members after that.
	Add(ctx context.Context, peerURL string) ([]Member, error)
}

// listening returns the peers other than self that accept a connection within dialTimeout, all tried at once.
func listening(ctx context.Context, self Peer, founders []Peer) ([]Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	open := make([]bool, len(founders))
	var wg sync.WaitGroup
	for i, p := range founders {
		if p.URL == self.URL {
			continue
		}
		u, err := url.Parse(p.URL)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%s of the configuration: %q is not a URL", keyInitialCluster, p.URL)
		}
		wg.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
			if err == nil {
				open[i] = conn.Close() == nil
			}
		})
	}
	wg.Wait()
	var found []Peer
	for i, p := range founders {
		if open[i] {
			found = append(found, p)
		}
	}
	return found, nil
}

// view asks peers for the members that they know of. Peers tell that as soon as they run, without a leader or a quorum,
// which is how a cluster that is being founded is told from one that lost this member. Nil: nobody answered.
func view(ctx context.Context, peers []Peer, files TLSFiles) ([]Member, error) {
	tlsConfig, err := files.config()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	hc := &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}}
	answers := make(chan []Member, len(peers))
	for _, p := range peers {
		go func() { answers <- viewOf(ctx, hc, p) }()
	}
	for range peers {
		if members := <-answers; len(members) > 0 {
			return members, nil
		}
	}
	return nil, nil
}

// viewOf asks one peer until it answers or ctx ends; a peer that has just started refuses for a moment.
func viewOf(ctx context.Context, hc *http.Client, p Peer) []Member {
	for {
		members, err := getMembers(ctx, hc, p)
		if err == nil {
			return members
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func getMembers(ctx context.Context, hc *http.Client, p Peer) ([]Member, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.URL, "/")+"/members", nil)
	if err != nil {
		return nil, err
	}
	resp, err := hc.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", req.URL, resp.Status)
	}
	var members []Member
	return members, json.NewDecoder(io.LimitReader(resp.Body, maxView)).Decode(&members)
}

// clientEndpoints are the addresses of a running cluster's client API: the service of ready members, and the members that
// listen, because a service may lag behind them.
func clientEndpoints(service string, peers []Peer, known []Member) []string {
	endpoints := []string{}
	if service != "" {
		endpoints = append(endpoints, service)
	}
	for _, m := range known {
		endpoints = append(endpoints, m.ClientURLs...)
	}
	if len(endpoints) > 1 {
		return endpoints
	}
	for _, p := range peers {
		if u, err := url.Parse(p.URL); err == nil {
			endpoints = append(endpoints, u.Scheme+"://"+net.JoinHostPort(u.Hostname(), clientPort))
		}
	}
	return endpoints
}

// TLSFiles are the files of the etcd client's identity, which peers accept, too: its certificate is from the same signer and
// names no host that they could find wrong. No files at all means plain HTTP, which only tests use.
type TLSFiles struct{ CA, Cert, Key string }

func (f TLSFiles) config() (*tls.Config, error) {
	if f == (TLSFiles{}) {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the etcd client's certificate: %w", err)
	}
	ca, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of etcd: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("reading the CA of etcd: %s holds no certificate", f.CA)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}}, nil
}

// gateway is a remote over the JSON form of etcd's client API, which every member serves beside gRPC. A gRPC client would
// make this binary, and each of the processes that it is, twice as large for three requests at the start of a member.
type gateway struct {
	endpoints []string
	http      *http.Client
}

func newGateway(endpoints []string, files TLSFiles) (*gateway, error) {
	tlsConfig, err := files.config()
	if err != nil {
		return nil, err
	}
	return &gateway{endpoints: endpoints, http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}, Timeout: requestTimeout,
	}}, nil
}

// memberList is the answer to every request about members. IDs are strings, as JSON has no 64-bit numbers.
type memberList struct {
	Members []struct {
		ID         uint64   `json:"ID,string"`
		Name       string   `json:"name"`
		PeerURLs   []string `json:"peerURLs"`
		ClientURLs []string `json:"clientURLs"`
	} `json:"members"`
}

func (g *gateway) Members(ctx context.Context) ([]Member, error) {
	return g.post(ctx, "list", map[string]any{"linearizable": true})
}

func (g *gateway) Remove(ctx context.Context, id uint64) error {
	_, err := g.post(ctx, "remove", map[string]any{"ID": strconv.FormatUint(id, 10)})
	return err
}

func (g *gateway) Add(ctx context.Context, peerURL string) ([]Member, error) {
	return g.post(ctx, "add", map[string]any{"peerURLs": []string{peerURL}})
}

// post asks the endpoints in order until one answers. Only a request that was refused a connection goes to the next one:
// after anything else the change may have happened, and the caller looks at the members again before it repeats it.
func (g *gateway) post(ctx context.Context, verb string, in any) ([]Member, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encoding request: %w", err)
	}
	var errs []error
	for _, endpoint := range g.endpoints {
		members, err := g.postTo(ctx, endpoint+"/v3/cluster/member/"+verb, body)
		if err == nil {
			return members, nil
		}
		errs = append(errs, fmt.Errorf("asking etcd to %s members: %w", verb, err))
		var op *net.OpError
		if !errors.As(err, &op) || op.Op != "dial" {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func (g *gateway) postTo(ctx context.Context, target string, body []byte) ([]Member, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := g.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxView))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", target, err)
	}
	if resp.StatusCode != http.StatusOK {
		failure := struct{ Message string }{}
		_ = json.Unmarshal(raw, &failure) // without a message the status says enough
		return nil, fmt.Errorf("%s answers %s: %s", target, resp.Status, failure.Message)
	}
	list := memberList{}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("decoding the answer of %s: %w", target, err)
	}
	members := make([]Member, 0, len(list.Members))
	for _, m := range list.Members {
		members = append(members, Member(m))
	}
	return members, nil
}
