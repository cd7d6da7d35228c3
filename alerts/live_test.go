//go:build e2e

package alerts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// TestLive runs a real Prometheus against the local cluster that STATE names (default /tmp/hcp-e2e), with the files that `hypershift install
// prometheus` writes: each target answers, each rule can be evaluated, no alert fires, and each query of each dashboard returns data.
func TestLive(t *testing.T) {
	l := newLive(t)
	dir := t.TempDir()
	run(t, l.hypershift, "install", "prometheus", "--package-operator", "--output-dir", dir)
	l.configure(t, dir)
	p := startPrometheus(t, l.prometheus, dir)

	t.Run("When programs are found by the files that install writes each should answer", func(t *testing.T) {
		p.eventually(t, 3*time.Minute, func() error {
			up, err := p.targets()
			if err != nil {
				return err
			}
			for _, job := range []string{"hypershift-operator", "hypershift-capi-proxies", "hypershift-control-planes", "package-operator", "hosted-kube-apiserver"} {
				if len(up[job]) == 0 {
					return fmt.Errorf("job %s has no targets", job)
				}
				for target, trouble := range up[job] {
					if trouble != "" {
						return fmt.Errorf("%s of job %s: %s", target, job, trouble)
					}
				}
			}
			return nil
		})
	})
	t.Run("When rules are evaluated none should fail, and no alert should fire in a cluster that is well", func(t *testing.T) {
		p.eventually(t, 2*time.Minute, p.rulesAreWell)
	})
	values := map[string]string{"operator": "hypershift", "namespace": "clusters", "name": "demo", "control_plane": "clusters-demo", "rollout": l.rollout}
	files, err := filepath.Glob(filepath.Join(dir, "dashboards", "*.json"))
	if err != nil || len(files) != 3 {
		t.Fatalf("install wrote dashboards %v: %v", files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run("When somebody looks at dashboard "+name+" every query should return data", func(t *testing.T) {
			d := readDashboard(t, file)
			if len(d.queries) == 0 || len(d.choices) == 0 {
				t.Fatal("it has no queries or no variables")
			}
			p.eventually(t, 3*time.Minute, func() error {
				var empty []error
				for _, q := range append(slices.Clone(d.queries), d.choices...) {
					empty = append(empty, p.returnsData(filled(q, values)))
				}
				return errors.Join(empty...)
			})
			t.Logf("%d queries, and %d of variables, return data", len(d.queries), len(d.choices))
		})
	}
}

// live is the local cluster.
type live struct {
	hypershift, kubectl, kubeconfig, prometheus string
	rollout                                     string // a HostedClusterPackage
}

func newLive(t *testing.T) *live {
	t.Helper()
	state := os.Getenv("STATE")
	if state == "" {
		state = "/tmp/hcp-e2e"
	}
	abs := func(path string) string {
		full, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return full
	}
	l := &live{hypershift: abs("../bin/hypershift"), kubectl: abs("../bin/kubectl"), kubeconfig: filepath.Join(state, "kubeconfig"), prometheus: os.Getenv("PROMETHEUS")}
	if l.prometheus == "" {
		l.prometheus = filepath.Join(t.TempDir(), "prometheus")
		run(t, "go", "build", "-tags", "remove_all_sd,enable_kubernetes_sd", "-o", l.prometheus, "github.com/prometheus/prometheus/cmd/prometheus")
	}
	l.rollout = "monitored"
	l.rollOut(t)
	return l
}

// rollOut rolls the add-on of local mode out over the fleet, so that there is a rollout to be shown.
func (l *live) rollOut(t *testing.T) {
	t.Helper()
	l.get(t, "label", "hostedcluster", "-n", "clusters", "demo", "--overwrite", "fleet="+l.rollout)
	file := filepath.Join(t.TempDir(), "rollout.yaml")
	text := fmt.Sprintf(`apiVersion: package-operator.run/v1alpha1
kind: HostedClusterPackage
metadata: {name: %s}
spec:
  hostedClusterSelector: {matchLabels: {fleet: %[1]s}}
  strategy: {rollingUpgrade: {maxUnavailable: 1}}
  template:
    spec:
      image: 10.244.0.1:5000/examples/hello:1.0.0
      config: {image: "10.244.0.1:5000/hypershift/webapp", tag: "1.0.0"}
`, l.rollout)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l.get(t, "apply", "-f", file)
	l.get(t, "wait", "hostedclusterpackage/"+l.rollout, "--for=condition=Available", "--timeout=4m")
}

func (l *live) get(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, l.kubectl, append([]string{"--kubeconfig", l.kubeconfig}, args...)...)
}

// configure completes what install wrote: this Prometheus is outside of the cluster, in a hurry, and asks the hosted API servers, too.
func (l *live) configure(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "prometheus.yml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	config["global"] = map[string]any{"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}
	config["scrape_configs"] = append(config["scrape_configs"].([]any), l.hostedAPI(t, dir))
	for _, job := range config["scrape_configs"].([]any) {
		for _, sd := range job.(map[string]any)["kubernetes_sd_configs"].([]any) {
			sd.(map[string]any)["kubeconfig_file"] = l.kubeconfig
		}
	}
	if raw, err = yaml.Marshal(config); err != nil {
		t.Fatal(err)
	}
	write(t, path, raw)
}

// hostedAPI is the job of the hosted API servers of one control plane, as docs/monitoring.md says.
func (l *live) hostedAPI(t *testing.T, dir string) map[string]any {
	t.Helper()
	secret := func(key string) []byte {
		raw, err := base64.StdEncoding.DecodeString(l.get(t, "get", "secret", "metrics-client", "-n", "clusters-demo", "-o", "jsonpath={.data."+key+"}"))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	write(t, filepath.Join(dir, "tls.crt"), secret(`tls\.crt`))
	write(t, filepath.Join(dir, "tls.key"), secret(`tls\.key`))
	write(t, filepath.Join(dir, "ca.crt"), []byte(l.get(t, "get", "configmap", "root-ca", "-n", "clusters-demo", "-o", `jsonpath={.data.ca\.crt}`)))
	keep := func(label, value string) any {
		return map[string]any{"source_labels": []any{"__meta_kubernetes_" + label}, "action": "keep", "regex": value}
	}
	return map[string]any{
		"job_name": "hosted-kube-apiserver", "scheme": "https", "kubernetes_sd_configs": []any{map[string]any{"role": "pod", "namespaces": map[string]any{"names": []any{"clusters-demo"}}}},
		"tls_config": map[string]any{"ca_file": "ca.crt", "cert_file": "tls.crt", "key_file": "tls.key", "server_name": "kube-apiserver"},
		"relabel_configs": []any{keep("pod_label_app", "kube-apiserver"), keep("pod_container_port_name", "client"),
			map[string]any{"source_labels": []any{"__meta_kubernetes_namespace"}, "target_label": "namespace"}},
	}
}

// server is a Prometheus that runs.
type server struct{ url string }

// startPrometheus runs until the test ends.
func startPrometheus(t *testing.T, program, dir string) server {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", addr)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			raw, _ := os.ReadFile(log.Name())
			t.Logf("Prometheus said:\n%s", raw[max(0, len(raw)-8000):])
		}
	})
	s := server{"http://" + addr}
	s.eventually(t, time.Minute, func() error { return s.ask("/-/ready", nil, nil) })
	return s
}

// eventually waits until a look has no error.
func (s server) eventually(t *testing.T, within time.Duration, look func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		err := look()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %v: %v", within, err)
		case <-tick.C:
		}
	}
}

// ask reads the answer's data into out, unless it is nil.
func (s server) ask(path string, query url.Values, out any) error {
	response, err := http.Get(s.url + path + "?" + query.Encode()) //nolint:noctx // because a test's end ends the server
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if out == nil {
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", path, response.Status)
		}
		return nil
	}
	answer := struct {
		Error string
		Data  any
	}{Data: out}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if answer.Error != "" {
		return fmt.Errorf("%s %v: %s", path, query, answer.Error)
	}
	return nil
}

// targets are what is wrong with each, by job and URL; empty when nothing is.
func (s server) targets() (map[string]map[string]string, error) {
	var data struct {
		ActiveTargets []struct {
			ScrapePool, ScrapeURL, Health, LastError string
		}
	}
	if err := s.ask("/api/v1/targets", url.Values{"state": {"active"}}, &data); err != nil {
		return nil, err
	}
	found := map[string]map[string]string{}
	for _, target := range data.ActiveTargets {
		if found[target.ScrapePool] == nil {
			found[target.ScrapePool] = map[string]string{}
		}
		trouble := target.LastError
		if target.Health != "up" && trouble == "" {
			trouble = target.Health
		}
		found[target.ScrapePool][target.ScrapeURL] = trouble
	}
	return found, nil
}

func (s server) rulesAreWell() error {
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State, Type string }
		}
	}
	if err := s.ask("/api/v1/rules", nil, &data); err != nil {
		return err
	}
	rules := 0
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			rules++
			if r.Health != "ok" {
				return fmt.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError)
			}
			if r.State == "firing" {
				return fmt.Errorf("alert %s fires", r.Name)
			}
		}
	}
	if rules < 30 {
		return fmt.Errorf("there are %d rules", rules)
	}
	return nil
}

// returnsData says what is wrong with a query.
func (s server) returnsData(query string) error {
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := s.ask("/api/v1/query", url.Values{"query": {query}}, &data); err != nil {
		return err
	}
	if len(data.Result) == 0 {
		return fmt.Errorf("no data: %s", query)
	}
	for _, r := range data.Result {
		if r.Value[1] != "NaN" {
			return nil
		}
	}
	return fmt.Errorf("no number: %s", query)
}

// board is what a dashboard asks.
type board struct{ queries, choices []string }

var labelValues = regexp.MustCompile(`^label_values\((.*), [a-z_]+\)$`)

func readDashboard(t *testing.T, file string) (b board) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels     []struct{ Targets []struct{ Expr string } }
		Templating struct {
			List []struct{ Type, Query string }
		}
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			b.queries = append(b.queries, q.Expr)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Query)
		if m == nil {
			t.Fatalf("%s: variable asks %s", file, v.Query)
		}
		b.choices = append(b.choices, m[1])
	}
	return b
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
