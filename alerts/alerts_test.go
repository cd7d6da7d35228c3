package alerts

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// rule is an alert as it stands in a PrometheusRule.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// installed are the alerts that install renders with every option: its golden files, which its own tests hold to the code.
func installed(t *testing.T) map[string]rule {
	t.Helper()
	found := map[string]rule{}
	for _, file := range []string{"monitoring.yaml", "monitoring-private-capi.yaml"} {
		raw, err := os.ReadFile("../internal/cli/install/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(raw), "\n---\n") {
			var object struct {
				Spec struct {
					Groups []struct {
						Rules []rule `json:"rules"`
					} `json:"groups"`
				} `json:"spec"`
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, g := range object.Spec.Groups {
				for _, r := range g.Rules {
					if r.Alert != "" {
						found[r.Alert] = r
					}
				}
			}
		}
	}
	return found
}

// every is how often rules are evaluated, and samples come.
const every = time.Minute

// firing evaluates a rule on series, every minute until a time has passed, and returns the labels of the alerts that fire then, sorted, without
// their names and severities. Texts of alerts that fire must be complete.
func firing(t *testing.T, r rule, series []string, after time.Duration) []string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.Join(series, "\n  ")+"\n")
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery), storage)
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
	if err != nil {
		t.Fatalf("%s: %v", r.Alert, err)
	}
	hold, err := model.ParseDuration(r.For)
	if err != nil {
		t.Fatalf("%s: %v", r.Alert, err)
	}
	alert := rules.NewAlertingRule(r.Alert, expr, time.Duration(hold), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations),
		labels.EmptyLabels(), "", true, promslog.NewNopLogger())
	for at := time.Duration(0); at <= after; at += every {
		if _, err := alert.Eval(t.Context(), 0, time.Unix(0, 0).Add(at), query, nil, 0); err != nil {
			t.Fatalf("%s at %v: %v", r.Alert, at, err)
		}
	}
	var found []string
	for _, a := range alert.ActiveAlerts() {
		if a.State != rules.StateFiring {
			continue
		}
		found = append(found, labels.NewBuilder(a.Labels).Del(labels.AlertName, "severity").Labels().String())
		a.Annotations.Range(func(l labels.Label) {
			if strings.Contains(l.Value, "{{") || strings.Contains(l.Value, "<no value>") || strings.Contains(l.Value, "<error") ||
				strings.Contains(l.Value, "cluster /") || strings.Contains(l.Value, "  ") {
				t.Errorf("%s: %s names a label that the alert doesn't have: %s", r.Alert, l.Name, l.Value)
			}
		})
	}
	slices.Sort(found)
	return found
}

// lost is how long a condition has been lost, of the hosted cluster demo, as one of two replicas of the operator tells it.
func lost(condition, replica, values string) string {
	return fmt.Sprintf(`hypershift_cluster_condition_lost_duration_seconds{namespace="clusters",name="demo",_id="1",condition=%q,pod=%q} %s`, condition, replica, values)
}

const demo = `{name="demo", namespace="clusters"}`

// played is what is told to Prometheus, and what becomes of it.
type played struct {
	series []string
	after  time.Duration
	// fires are the labels of the alerts; nil: none.
	fires []string
}

// lostFor has the cases of an alert about a lost condition that has to last for hold.
func lostFor(condition string, hold time.Duration) map[string]played {
	return map[string]played{
		"it is lost for long":                {[]string{lost(condition, "a", "1+60x60"), lost(condition, "b", "1+60x60")}, hold + 2*every, []string{demo}},
		"it is lost for a moment":            {[]string{lost(condition, "a", "1 61 stale")}, hold + 2*every, nil},
		"it is not lost for long yet":        {[]string{lost(condition, "a", "1+60x60")}, hold - every, nil},
		"the operator is replaced meanwhile": {[]string{lost(condition, "a", "1 61 121 stale"), lost(condition, "b", "_ _ 121+60x60")}, hold + 2*every, []string{demo}},
		"another condition is lost":          {[]string{lost("ValidReleaseImage", "a", "1+60x60")}, hold + 2*every, nil},
		"it is found again":                  {[]string{lost(condition, "a", fmt.Sprintf("1+60x%d stale", int((hold+2*every)/every)))}, hold + 10*every, nil},
	}
}
