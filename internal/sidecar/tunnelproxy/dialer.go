package tunnelproxy

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"

	"hcp.internal/platform/internal/konnectivity"
	"hcp.internal/platform/internal/sidecar/kubeapi"
)

// DialFunc connects to host:port.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer decides how a target is reached, and connects to it.
type Dialer struct {
	// Tunnel connects from a node of the hosted cluster, Direct from here.
	Tunnel, Direct DialFunc
	// ConnectDirectlyToCloudAPIs has the APIs of clouds be reached from here, by the proxy of the management cluster if there is one.
	ConnectDirectlyToCloudAPIs bool
	// ManagementProxy is that proxy.
	ManagementProxy httpproxy.Config
	// GuestProxy is the proxy of the hosted cluster, which is reached by the tunnel.
	GuestProxy httpproxy.Config

	// DisableResolver leaves names to the other end of the tunnel.
	DisableResolver bool
	// ResolveFromGuestClusterDNS asks the DNS of the hosted cluster, ResolveFromManagementClusterDNS that of this pod when the first knows nothing.
	// Without either only names of Services are resolved, by the hosted API.
	ResolveFromGuestClusterDNS, ResolveFromManagementClusterDNS bool
	PreferIPv4                                                  bool
	// API is the hosted API.
	API func() (*kubeapi.Client, error)
	// LookupHost asks the DNS of this pod.
	LookupHost func(ctx context.Context, host string) ([]string, error)

	mu  sync.Mutex
	dns string    // the address of the hosted cluster's DNS
	at  time.Time // when it was found
}

// dnsFor is how long the address of the hosted cluster's DNS counts.
const dnsFor = time.Minute

// DialContext connects to host:port. scheme is that of the request, http or https, for the choice of a proxy; for connections of other kinds https.
func (d *Dialer) DialContext(ctx context.Context, scheme, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q is not host:port", address)
	}
	if d.ConnectDirectlyToCloudAPIs && cloudAPI(host) {
		return dialBy(ctx, d.Direct, d.ManagementProxy, scheme, address)
	}
	return dialBy(ctx, func(ctx context.Context, network, to string) (net.Conn, error) {
		if to != address { // the proxy of the hosted cluster
			if host, port, err = net.SplitHostPort(to); err != nil {
				return nil, err
			}
		}
		resolved, err := d.resolve(ctx, host)
		if err != nil {
			return nil, err
		}
		return d.Tunnel(ctx, network, net.JoinHostPort(resolved, port))
	}, d.GuestProxy, scheme, address)
}

// dialBy connects to a target, or to the proxy that is for it and through that to the target.
func dialBy(ctx context.Context, dial DialFunc, proxies httpproxy.Config, scheme, address string) (net.Conn, error) {
	proxy, err := proxies.ProxyFunc()(&url.URL{Scheme: scheme, Host: address})
	if err != nil {
		return nil, err
	}
	if proxy == nil {
		return dial(ctx, "tcp", address)
	}
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[proxy.Scheme]
	}
	if port == "" {
		port = "80"
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), port))
	if err != nil {
		return nil, fmt.Errorf("connecting to the proxy %s: %w", proxy.Host, err)
	}
	if proxy.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: proxy.Hostname()})
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("connecting to the proxy %s: %w", proxy.Host, err)
		}
		conn = secure
	}
	header := http.Header{}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	return konnectivity.RequestConnect(ctx, conn, address, header)
}

// resolve turns a name into an address of the hosted cluster, or leaves it to the other end of the tunnel.
func (d *Dialer) resolve(ctx context.Context, host string) (string, error) {
	if isAddress(host) || d.DisableResolver {
		return host, nil
	}
	if !d.ResolveFromGuestClusterDNS && !d.ResolveFromManagementClusterDNS {
		name, namespace, ok := service(host)
		if !ok {
			return host, nil
		}
		address, err := d.clusterIP(ctx, namespace, name)
		if err != nil {
			return "", fmt.Errorf("finding Service %s/%s: %w", namespace, name, err)
		}
		return address, nil
	}
	var errs []error
	if d.ResolveFromGuestClusterDNS {
		addresses, err := d.guestLookup(ctx, host)
		if address, ok := choose(addresses, d.PreferIPv4); ok && err == nil {
			return address, nil
		}
		errs = append(errs, err)
	}
	if d.ResolveFromManagementClusterDNS {
		addresses, err := d.LookupHost(ctx, host)
		if address, ok := choose(addresses, d.PreferIPv4); ok && err == nil {
			return address, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("resolving %s: %w", host, errors.Join(errs...))
}

func (d *Dialer) guestLookup(ctx context.Context, host string) ([]string, error) {
	server, err := d.guestDNS(ctx)
	if err != nil {
		return nil, err
	}
	resolver := &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.Tunnel(ctx, "tcp", net.JoinHostPort(server, "53")) // tunnels carry no datagrams
	}}
	return resolver.LookupHost(ctx, host+".") // as it is: search domains are those of this pod
}

// guestServices are where a hosted cluster has its DNS: that of an OpenShift cluster, and that of others.
var guestServices = [][2]string{{"openshift-dns", "dns-default"}, {"kube-system", "kube-dns"}}

func (d *Dialer) guestDNS(ctx context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dns != "" && time.Since(d.at) < dnsFor {
		return d.dns, nil
	}
	var errs []error
	for _, s := range guestServices {
		address, err := d.clusterIP(ctx, s[0], s[1])
		if err == nil {
			d.dns, d.at = address, time.Now()
			return address, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("finding the DNS of the hosted cluster: %w", errors.Join(errs...))
}

func (d *Dialer) clusterIP(ctx context.Context, namespace, name string) (string, error) {
	api, err := d.API()
	if err != nil {
		return "", fmt.Errorf("connecting to the hosted API: %w", err)
	}
	defer api.Close()
	var svc struct {
		Spec struct {
			ClusterIP  string   `json:"clusterIP"`
			ClusterIPs []string `json:"clusterIPs"`
		} `json:"spec"`
	}
	if err := api.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/services/"+url.PathEscape(name), &svc); err != nil {
		return "", err
	}
	addresses := svc.Spec.ClusterIPs
	if len(addresses) == 0 {
		addresses = []string{svc.Spec.ClusterIP}
	}
	address, _ := choose(addresses, d.PreferIPv4)
	if !isAddress(address) {
		return "", fmt.Errorf("service %s/%s has no address", namespace, name)
	}
	return address, nil
}
