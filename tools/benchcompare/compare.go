package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/aclements/go-moremath/stats"
)

// figure is one number that a benchmark prints, such as Single and available-s.
type figure struct{ Benchmark, Unit string }

// runs are the values of each figure, one of each run.
type runs map[figure][]float64

// read adds what a run printed in the format of Go's benchmarks, "BenchmarkName-2 1 12.3 available-s 890 rss-MiB"; other lines are left out.
func (r runs) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		if _, err := strconv.Atoi(fields[1]); err != nil {
			continue // a sentence that begins so
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "-") // without the number of processors
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("%q: %w", lines.Text(), err)
			}
			if math.IsNaN(value) || math.IsInf(value, 0) {
				continue // a stage that was not reached while it was watched
			}
			key := figure{name, fields[i+1]}
			r[key] = append(r[key], value)
		}
	}
	return lines.Err()
}

// maxLine is the longest line that is read, in bytes.
const maxLine = 1 << 20

// alpha is how probable a difference by chance may be that counts all the same.
const alpha = 0.05

// verdict on a figure.
type verdict string

const (
	worse   verdict = "WORSE"
	better  verdict = "better"
	same    verdict = "same"    // closer than the bound
	noise   verdict = "noise"   // further apart than the bound, but runs of one side differ as much
	tooFew  verdict = "too few" // no difference could be told from noise with so few runs
	onlyOne verdict = "one side only"
)

// row is one line of the table.
type row struct {
	figure
	base, head float64 // medians
	change     float64 // of the median, 0.1 is 10 % more
	p          float64 // how probable such a difference is when nothing changed
	runs       [2]int
	verdict    verdict
}

// rate tells that more is better.
func (f figure) rate() bool {
	return strings.HasSuffix(f.Unit, "/s") || strings.HasSuffix(f.Unit, "/sec")
}

// compare judges each figure. A difference counts when medians are further apart than bound (0.1 is 10 %), and when the ranks of single runs say, by the
// test of Mann and Whitney, that it is no chance.
func compare(base, head runs, bound float64) []row {
	all := map[figure]bool{}
	for _, side := range []runs{base, head} {
		for f := range side {
			all[f] = true
		}
	}
	figures := slices.SortedFunc(maps.Keys(all), func(a, b figure) int {
		return cmp.Or(cmp.Compare(a.Benchmark, b.Benchmark), cmp.Compare(a.Unit, b.Unit))
	})
	var rows []row
	for _, f := range figures {
		rows = append(rows, judge(f, base[f], head[f], bound))
	}
	return rows
}

func judge(f figure, base, head []float64, bound float64) row {
	r := row{figure: f, runs: [2]int{len(base), len(head)}, p: 1, verdict: onlyOne}
	if len(base) == 0 || len(head) == 0 {
		return r
	}
	r.base, r.head = median(base), median(head)
	r.change = change(r.base, r.head)
	if test, err := stats.MannWhitneyUTest(base, head, stats.LocationDiffers); err == nil { // else all values are equal
		r.p = test.P
	}
	switch {
	case math.Abs(r.change) <= bound:
		r.verdict = same
	case leastP(len(base), len(head)) > alpha:
		r.verdict = tooFew
	case r.p > alpha:
		r.verdict = noise
	case r.change > 0 == f.rate():
		r.verdict = better
	default:
		r.verdict = worse
	}
	return r
}

func median(values []float64) float64 {
	return stats.Sample{Xs: slices.Clone(values)}.Quantile(0.5)
}

// change is how much more b is than a. From nothing to something is infinitely more.
func change(a, b float64) float64 {
	switch {
	case a == b:
		return 0
	case a == 0:
		return math.Inf(1)
	}
	return b/a - 1
}

// leastP is the smallest probability that the test can give: that of all runs of one side being above all of the other.
func leastP(n, m int) float64 {
	ways := 1.0 // n+m over n
	for i := 1; i <= n; i++ {
		ways *= float64(m+i) / float64(i)
	}
	return min(1, 2/ways)
}

// write prints the table.
func write(out io.Writer, rows []row) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "benchmark\tfigure\tbase\thead\tchange\tp\truns\tverdict")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%.4g\t%.4g\t%+.1f %%\t%.3f\t%d+%d\t%s\n", r.Benchmark, r.Unit, r.base, r.head, 100*r.change, r.p, r.runs[0], r.runs[1], r.verdict)
	}
	return w.Flush()
}

// gate is the error that names what got worse; nil when nothing did.
func gate(rows []row, bound float64) error {
	if len(rows) == 0 {
		return errors.New("neither side has a figure: the runs printed no line of a benchmark")
	}
	var names []string
	for _, r := range rows {
		if r.verdict == worse {
			names = append(names, fmt.Sprintf("%s %s (%+.1f %%)", r.Benchmark, r.Unit, 100*r.change))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("more than %.0f %% worse, beyond noise: %s", 100*bound, strings.Join(names, ", "))
}
