package etcdinit

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
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
	defer resp.Body.Close() //nolint:errcheck // only read
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

// TLSFiles are the files of the etcd client's identity. No files at all means plain HTTP, which only tests use.
type TLSFiles struct{ CA, Cert, Key string }

func (f TLSFiles) config() (*tls.Config, error) {
	if f == (TLSFiles{}) {
		return nil, nil
	}
	cfg, err := transport.TLSInfo{TrustedCAFile: f.CA, CertFile: f.Cert, KeyFile: f.Key}.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the etcd client's certificates: %w", err)
	}
	return cfg, nil
}

// etcdRemote is a remote over etcd's client.
type etcdRemote struct{ client *clientv3.Client }

func dial(endpoints []string, files TLSFiles) (*etcdRemote, error) {
	tlsConfig, err := files.config()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: tlsConfig, DialTimeout: requestTimeout, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	return &etcdRemote{client: client}, nil
}

func (r *etcdRemote) Members(ctx context.Context) ([]Member, error) {
	resp, err := r.client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing etcd members: %w", err)
	}
	return membersOf(resp.Members), nil
}

func (r *etcdRemote) Remove(ctx context.Context, id uint64) error {
	if _, err := r.client.MemberRemove(ctx, id); err != nil {
		return fmt.Errorf("removing etcd member %x: %w", id, err)
	}
	return nil
}

func (r *etcdRemote) Add(ctx context.Context, peerURL string) ([]Member, error) {
	resp, err := r.client.MemberAdd(ctx, []string{peerURL})
	if err != nil {
		return nil, fmt.Errorf("adding etcd member %s: %w", peerURL, err)
	}
	return membersOf(resp.Members), nil
}

func membersOf(in []*pb.Member) []Member {
	members := make([]Member, 0, len(in))
	for _, m := range in {
		members = append(members, Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs})
	}
	return members
}
