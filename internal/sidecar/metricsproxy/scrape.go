package metricsproxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"hcp.internal/platform/internal/sidecar/endpointresolver"
	"hcp.internal/platform/internal/sidecar/tlsserver"
)

// Bounds of a scrape.
const (
	scrapeTimeout  = 10 * time.Second
	resolveTimeout = 5 * time.Second
	maxPods        = 50
	maxAnswer      = 1 << 20
	maxMetrics     = 32 << 20 // of one pod: kube-apiserver's are some 10 MiB
	maxAtOnce      = 5
)

// resolve asks where the pods of a component are; none is no error.
func resolve(ctx context.Context, c config, selector map[string]string) ([]endpointresolver.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	pool, err := tlsserver.Pool(c.EndpointResolver.CAFile)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(endpointresolver.Question{Selector: selector})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.EndpointResolver.URL+endpointresolver.Path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking where pods are: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking where pods are: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking where pods are: the answer is %d", resp.StatusCode)
	}
	var answer endpointresolver.Answer
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("asking where pods are: %w", err)
	}
	return answer.Pods[:min(len(answer.Pods), maxPods)], nil
}

// client follows no redirect and keeps no connection: scrapes are rare.
func client(config *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: resolveTimeout}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// scraped is what a pod has told, or why not.
type scraped struct {
	pod  endpointresolver.Pod
	text []byte
	err  error
}

// scrapeAll asks all pods at once, and gives the answers in their order.
func scrapeAll(ctx context.Context, t target, pods []endpointresolver.Pod) []scraped {
	out := make([]scraped, len(pods))
	slots := make(chan struct{}, maxAtOnce)
	var wg sync.WaitGroup
	for i, pod := range pods {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			text, err := scrape(ctx, t, pod)
			out[i] = scraped{pod, text, err}
		})
	}
	wg.Wait()
	return out
}

// scrape reads the metrics of one pod.
func scrape(ctx context.Context, t target, pod endpointresolver.Pod) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	address, err := netip.ParseAddr(pod.IP)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	config, err := tlsConfig(t)
	if err != nil {
		return nil, err
	}
	url := t.MetricsScheme + "://" + net.JoinHostPort(address.String(), strconv.Itoa(int(t.MetricsPort))) + t.MetricsPath
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("scraping pod %s: %w", pod.Name, err)
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	resp, err := client(config).Do(req)
	if err != nil {
		return nil, fmt.Errorf("scraping pod %s: %w", pod.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scraping pod %s: the answer is %d", pod.Name, resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMetrics+1))
	if err == nil && len(text) > maxMetrics {
		err = fmt.Errorf("its metrics are more than %d bytes", maxMetrics)
	}
	if err != nil {
		return nil, fmt.Errorf("scraping pod %s: %w", pod.Name, err)
	}
	return text, nil
}

// tlsConfig is nil for plain HTTP.
func tlsConfig(t target) (*tls.Config, error) {
	switch t.MetricsScheme {
	case "http":
		return nil, nil
	case "https":
	default:
		return nil, fmt.Errorf("component %s has the scheme %q: http or https is wanted", t.Name, t.MetricsScheme)
	}
	if t.CAFile == "" {
		return nil, errors.New("component " + t.Name + " has no authority to verify its servers by")
	}
	pool, err := tlsserver.Pool(t.CAFile)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: t.TLSServerName}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate for %s: %w", t.Name, err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return config, nil
}
