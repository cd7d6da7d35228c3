package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

var variable = regexp.MustCompile(`\$[a-z_]+`)

// filled is a query with values in place of variables, as Grafana asks it.
func filled(query string, values map[string]string) string {
	return variable.ReplaceAllStringFunc(query, func(name string) string {
		if v, ok := values[name[1:]]; ok {
			return v
		}
		return name
	})
}

func TestDashboards(t *testing.T) {
	files, err := filepath.Glob("../internal/monitoring/testdata/*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("there are dashboards %v: %v", files, err)
	}
	for _, file := range files {
		t.Run("When Prometheus reads the queries of "+filepath.Base(file)+" it should understand each", func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var d struct {
				Panels []struct{ Targets []struct{ Expr string } }
			}
			if err := json.Unmarshal(raw, &d); err != nil {
				t.Fatal(err)
			}
			queries := 0
			for _, p := range d.Panels {
				for _, q := range p.Targets {
					queries++
					if _, err := parser.NewParser(parser.Options{}).ParseExpr(filled(q.Expr, nil)); err != nil {
						t.Errorf("%s: %v", q.Expr, err)
					}
				}
			}
			if queries < 10 {
				t.Errorf("it has %d queries", queries)
			}
		})
	}
}
