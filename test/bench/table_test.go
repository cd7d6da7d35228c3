//go:build bench

package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

const mebi = 1 << 20

// table is printed with its columns aligned.
type table struct {
	title string
	rows  [][]string
}

func newTable(title string, header ...string) *table {
	return &table{title: title, rows: [][]string{header}}
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print() {
	fmt.Printf("\n%s\n\n", t.title)
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for i, row := range t.rows {
		fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
		if i == 0 {
			rule := make([]string, len(row))
			for j, cell := range row {
				rule[j] = strings.Repeat("-", len(cell))
			}
			fmt.Fprintf(w, "  %s\n", strings.Join(rule, "\t"))
		}
	}
	_ = w.Flush() // to standard output
	fmt.Println()
}

// figures compares what is measured with a floor.
func figures(title string) *table {
	return newTable(title, "figure", "measured", "floor", "ratio", "target")
}

// compare adds a figure with its floor; target is the largest ratio wanted, 0 when there is none.
func (t *table) compare(figure string, measured, floor float64, target float64, unit func(float64) string) {
	want := ""
	if target > 0 {
		want = fmt.Sprintf("at most %.2f ×", target)
	}
	t.add(figure, unit(measured), unit(floor), ratio(measured, floor), want)
}

// limit adds a figure that has no floor, but may have a limit.
func (t *table) limit(figure, measured, target string) {
	if target != "" {
		target = "at most " + target
	}
	t.add(figure, measured, "", "", target)
}

func ratio(measured, floor float64) string {
	if floor <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f ×", measured/floor)
}

func seconds(s float64) string             { return fmt.Sprintf("%.2f s", s) }
func mib(bytes float64) string             { return fmt.Sprintf("%.0f MiB", bytes/mebi) }
func percent(p float64) string             { return fmt.Sprintf("%.2f %%", p) }
func numbered(prefix string, n int) string { return fmt.Sprintf("%s%02d", prefix, n) }

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[mid-1] + sorted[mid]) / 2
	}
	return sorted[mid]
}
