package upgrade

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/kubeconfig"
)

// Bounds of what a hosted cluster is asked, which may be dead or mean.
const (
	hostedTime = 10 * time.Second
	maxMetrics = 64 << 20
	maxRemoved = 50
)

// requested are API versions that clients of a hosted cluster have asked for since its API server started, and that the release to lacks. The API server
// counts them itself. Releases that are no Kubernetes releases say nothing about it.
func requested(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, to string) ([]string, error) {
	if !strings.HasPrefix(to, "1.") || hc.Status.KubeConfig == nil {
		return nil, nil
	}
	raw, err := kubeconfig.Kubeconfig(ctx, c, kubeconfig.Options{Name: hc.Name, Namespace: hc.Namespace}, nil)
	if err != nil {
		return nil, fmt.Errorf("removed APIs: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("removed APIs: the kubeconfig of the hosted cluster can't be used")
	}
	config.Timeout, config.UserAgent = hostedTime, "hypershift-cli"
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("removed APIs: %w", err)
	}
	defer httpClient.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(config.Host, "/")+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("removed APIs: %w", err)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("removed APIs: the hosted cluster could not be asked: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("removed APIs: the hosted cluster answered %s", resp.Status)
	}
	return removedIn(io.LimitReader(resp.Body, maxMetrics), to)
}

var (
	deprecated = regexp.MustCompile(`^apiserver_requested_deprecated_apis\{(.*)\} 1(\.0+)?$`)
	label      = regexp.MustCompile(`(\w+)="([^"]{0,200})"`)
)

// removedIn reads the metric that counts requests for deprecated APIs.
func removedIn(metrics io.Reader, to string) ([]string, error) {
	var out []string
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := deprecated.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(m[1], -1) {
			labels[l[1]] = l[2]
		}
		if since := labels["removed_release"]; since == "" || minor(since) > minor(to) {
			continue
		}
		group := labels["version"]
		if labels["group"] != "" {
			group = labels["group"] + "/" + group
		}
		out = append(out, fmt.Sprintf("%s of %s, removed in %s", labels["resource"], group, labels["removed_release"]))
		if len(out) >= maxRemoved {
			break
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("removed APIs: reading the metrics of the hosted cluster: %w", err)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// minor is the minor version of 1.36 and 1.36.3; -1 for what is none.
func minor(v string) int {
	parts := strings.SplitN(v, ".", 3)
	if len(parts) < 2 {
		return -1
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return -1
	}
	return n
}
