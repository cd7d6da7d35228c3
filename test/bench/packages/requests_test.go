//go:build bench

package packages

import (
	"bufio"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// requests counts what an API server has answered, by verb and resource.
type requests map[string]int

// kindsCounted are the resources that a rollout has to do with. Others belong to whatever else runs.
var kindsCounted = regexp.MustCompile(`^(configmaps|objectdeployments|objectsets|objectsetphases|objectslices|events)$`)

// label finds a label's value in a line of metrics.
var label = regexp.MustCompile(`(verb|resource|subresource|dry_run)="([^"]*)"`)

// countRequests asks the API server. Watches count once each, when they end, and are left out.
func countRequests(b *testing.B, cfg *rest.Config) requests {
	b.Helper()
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		b.Fatal(err)
	}
	resp, err := httpClient.Get(cfg.Host + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	total := requests{}
	scanner := bufio.NewScanner(resp.Body)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := scanner.Text()
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		labels := map[string]string{}
		for _, found := range label.FindAllStringSubmatch(line, -1) {
			labels[found[1]] = found[2]
		}
		if labels["verb"] == "WATCH" || !kindsCounted.MatchString(labels["resource"]) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			b.Fatal(err)
		}
		name := labels["verb"] + " " + labels["resource"]
		if labels["subresource"] != "" {
			name += "/" + labels["subresource"]
		}
		if labels["dry_run"] != "" {
			name += " (dry run)"
		}
		total[name] += int(value)
	}
	return total
}

func (r requests) since(before requests) requests {
	out := requests{}
	for name, count := range r {
		if more := count - before[name]; more > 0 {
			out[name] = more
		}
	}
	return out
}

// writes are all that are not reads, dry runs included.
func (r requests) writes() int {
	total := 0
	for name, count := range r {
		if !strings.HasPrefix(name, "GET ") && !strings.HasPrefix(name, "LIST ") {
			total += count
		}
	}
	return total
}

// each says how many there were for each of n.
func (r requests) each(n int) string {
	total := 0
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		total += r[name]
		parts = append(parts, fmt.Sprintf("%.2f %s", float64(r[name])/float64(n), name))
	}
	return fmt.Sprintf("%.2f (%s)", float64(total)/float64(n), strings.Join(parts, ", "))
}
