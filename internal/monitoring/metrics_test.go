package monitoring

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
)

// tellers are the programs that tell the metrics of a folder.
var tellers = map[string]string{
	"internal/hostedcluster":              "hypershift-operator",
	"internal/nodepool":                   "hypershift-operator",
	"internal/etcdbackup":                 "hypershift-operator",
	"internal/fleet":                      "hypershift-operator",
	"internal/operator":                   "hypershift-operator",
	"internal/sharedingress":              "shared-ingress",
	"internal/capigroup/conversion":       "hypershift-operator",
	"internal/capigroup/proxy":            "capi-proxy, in the pods of programs that know Cluster API",
	"internal/configoperator":             "hosted-cluster-config-operator",
	"internal/controlplane/etcd":          "control-plane-operator",
	"internal/pki":                        "control-plane-operator",
	"internal/ignition":                   "ignition-server",
	"internal/kube":                       "each of our operators",
	"internal/packages":                   "package-operator-manager",
	"internal/hostedcontrolplane":         "control-plane-operator",
	"internal/pkioperator":                "control-plane-pki-operator",
	"internal/autoscaler":                 "cluster-autoscaler",
	"internal/controlplane/kubeapiserver": "control-plane-operator",
}

func teller(folder string) string {
	for f := folder; f != "."; f = path.Dir(f) {
		if who := tellers[f]; who != "" {
			return who
		}
	}
	return ""
}

const reference = "../../docs/reference/metrics.md"

// TestReference writes docs/reference/metrics.md with UPDATE=true.
func TestReference(t *testing.T) {
	metrics := declared(t)
	g := NewWithT(t)
	g.Expect(len(metrics)).To(BeNumerically(">", 60))
	for _, m := range metrics {
		g.Expect(m.help).To(MatchRegexp(`^[A-Z0-9].{9,}\.$`), "%s: the help text should be a sentence", m.name)
		g.Expect(teller(m.folder)).NotTo(BeEmpty(), "%s: say in tellers which program tells the metrics of %s", m.name, m.folder)
		for _, unbounded := range []string{"pod", "uid", "error", "message", "user", "path", "url"} {
			g.Expect(m.labels).NotTo(ContainElement(unbounded), "%s: label %s has any number of values", m.name, unbounded)
		}
	}
	want := page(metrics)
	if os.Getenv("UPDATE") == "true" {
		g.Expect(os.WriteFile(reference, []byte(want), 0o644)).To(Succeed())
		return
	}
	have, err := os.ReadFile(reference)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cmp.Diff(string(have), want)).To(BeEmpty(), "docs/reference/metrics.md has not every metric as it is; UPDATE=true go test ./internal/monitoring writes it")
}

func page(metrics []found) string {
	var b strings.Builder
	b.WriteString(`# Metrics

What our programs tell Prometheus, written from the code by ` + "`UPDATE=true go test ./internal/monitoring`" + `. How it is scraped is in [monitoring.md](../monitoring.md), what fires in
[alerts.md](../alerts.md). Series of an object go when it goes. Histograms also have the suffixes _bucket, _sum and _count.

Times are in seconds, sizes in bytes. Where two replicas of an operator run, both tell of the same objects: take ` + "`max by (namespace, name)`" + `, not ` + "`sum`" + `.
Labels namespace, name and _id are those of the HostedCluster and its spec.clusterID; in metrics of a control plane, namespace is that of the control plane.
`)
	groups := map[string][]found{}
	for _, m := range metrics {
		groups[teller(m.folder)] = append(groups[teller(m.folder)], m)
	}
	for _, who := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | what it tells |\n|---|---|---|---|\n", strings.ToUpper(who[:1])+who[1:])
		for _, m := range groups[who] {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(m.labels, ", "), m.help)
		}
	}
	b.WriteString("\n## Metrics of others\n\nDashboards, alerts and recording rules also ask for these.\n\n| metric | who tells it |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(Foreign)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, Foreign[name])
	}
	return b.String()
}

// asked are the names of metrics in an expression.
var asked = regexp.MustCompile(`\b(?:ALERTS|up|(?:hypershift|package_operator|ign|apiserver|controller_runtime|workqueue|rest_client|process|container|kube)_[a-z0-9_]+)\b`)

// within are strings and lists of labels of an expression, in which no metric is named.
var within = regexp.MustCompile(`"[^"]*"|\b(?:by|on|group_left|without|ignoring)\s*\([^)]*\)`)

func TestDashboards(t *testing.T) {
	known := map[string]bool{}
	for _, m := range declared(t) {
		known[m.name] = true
		if m.kind == "histogram" {
			known[m.name+"_bucket"], known[m.name+"_sum"], known[m.name+"_count"] = true, true, true
		}
	}
	for name := range Foreign {
		known[name] = true
	}
	dashboards := Dashboards()
	for name, d := range dashboards {
		t.Run("When "+name+" is made it should be as it was, and ask for metrics that are told", func(t *testing.T) {
			g := NewWithT(t)
			raw, err := d.JSON()
			g.Expect(err).NotTo(HaveOccurred())
			again, err := Dashboards()[name].JSON()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(again)).To(Equal(string(raw)), "twice the same")
			golden := "testdata/" + name + ".json"
			if os.Getenv("UPDATE") == "true" {
				g.Expect(os.WriteFile(golden, raw, 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(golden)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cmp.Diff(string(want), string(raw))).To(BeEmpty(), "UPDATE=true go test ./internal/monitoring writes it")

			g.Expect(len(d.UID)).To(BeNumerically("<=", 40))
			var queries []string
			for _, v := range d.Variables {
				queries = append(queries, v.Query)
			}
			for _, row := range d.Rows {
				for _, p := range row.Panels {
					g.Expect(p.Queries).NotTo(BeEmpty(), p.Title)
					for _, q := range p.Queries {
						queries = append(queries, q.Expr)
					}
				}
			}
			for _, q := range queries {
				names := asked.FindAllString(within.ReplaceAllString(q, ""), -1)
				g.Expect(names).NotTo(BeEmpty(), q)
				for _, metric := range names {
					g.Expect(known[metric]).To(BeTrue(), "%s asks for %s, which nobody tells", q, metric)
				}
			}
		})
	}
	t.Run("When they are made they should be three, which Grafana tells apart", func(t *testing.T) {
		g, uids := NewWithT(t), map[string]bool{}
		for _, d := range dashboards {
			uids[d.UID] = true
		}
		g.Expect(uids).To(HaveLen(3))
	})
}
