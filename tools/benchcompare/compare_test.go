package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var available = figure{"Single", "available-s"}

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		figure     figure
		base, head []float64
		want       verdict
	}{
		"When all runs take longer by more than the bound it should be worse":     {base: []float64{10, 10.2, 9.9, 10.1}, head: []float64{12, 12.1, 11.9, 12.3}, want: worse},
		"When all runs are shorter by more than the bound it should be better":    {base: []float64{12, 12.1, 11.9, 12.3}, head: []float64{10, 10.2, 9.9, 10.1}, want: better},
		"When the difference is below the bound it should be the same":            {base: []float64{10, 10.01, 10.02, 10.03}, head: []float64{10.5, 10.51, 10.52, 10.53}, want: same},
		"When runs of one side differ as much as the sides it should be noise":    {base: []float64{8, 10, 12, 14}, head: []float64{9, 12, 13, 15}, want: noise},
		"When there are three runs it should say that they are too few":           {base: []float64{10, 10, 10}, head: []float64{20, 20, 20}, want: tooFew},
		"When there is one run more on one side it should be enough":              {base: []float64{10, 10.1, 10.2}, head: []float64{20, 20.1, 20.2, 20.3, 20.4}, want: worse},
		"When a figure is new it should be no reason to fail":                     {head: []float64{1, 2, 3, 4}, want: onlyOne},
		"When a figure was taken out it should be no reason to fail":              {base: []float64{1, 2, 3, 4}, want: onlyOne},
		"When something is used that was not used before it should be worse":      {base: []float64{0, 0, 0, 0}, head: []float64{1, 1.1, 1.2, 1.3}, want: worse},
		"When more per second is done it should be better":                        {figure: figure{"Packages", "objects/s"}, base: []float64{10, 11, 10.5, 10.1}, head: []float64{20, 21, 22, 23}, want: better},
		"When less per second is done it should be worse":                         {figure: figure{"Packages", "objects/s"}, base: []float64{20, 21, 22, 23}, head: []float64{10, 11, 10.5, 10.1}, want: worse},
		"When nothing changed at all it should be the same":                       {base: []float64{3, 3, 3, 3}, head: []float64{3, 3, 3, 3}, want: same},
		"When one run of the head was disturbed it should not be held against it": {base: []float64{10, 10.1, 10.2, 10.3}, head: []float64{10, 10.1, 10.2, 40}, want: same},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.figure
			if f.Unit == "" {
				f = available
			}
			if got := judge(f, tc.base, tc.head, 0.1); got.verdict != tc.want {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}

func TestJudgeNoise(t *testing.T) {
	t.Run("When nothing changed it should seldom say that something got worse", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		draw := func() []float64 {
			values := make([]float64, 5)
			for i := range values {
				values[i] = 10 * math.Exp(random.NormFloat64()/3) // now and then something else runs
			}
			return values
		}
		wrong := 0
		const plays = 2000
		for range plays {
			if judge(available, draw(), draw(), 0.1).verdict == worse {
				wrong++
			}
		}
		if share := float64(wrong) / plays; share > 0.03 { // half of 5 %, for one of two sides
			t.Errorf("%.1f %% of the plays", 100*share)
		}
	})
}

func TestLeastP(t *testing.T) {
	t.Run("When four runs of each side are apart it should be enough for 5 %, with three not", func(t *testing.T) {
		if p := leastP(4, 4); math.Abs(p-2.0/70) > 1e-9 {
			t.Error(p)
		}
		if p := leastP(3, 3); p != 0.1 {
			t.Error(p)
		}
	})
}

const printed = `single: run 1 of 1

Stages, since the HostedCluster was stored
  stage  run 1
goos: linux
BenchmarkSingle-2   	       1	         VALUE available-s	       890.0 rss-MiB
PASS
`

func TestRun(t *testing.T) {
	file := func(values ...string) string {
		var all strings.Builder
		for _, v := range values {
			all.WriteString(strings.Replace(printed, "VALUE", v, 1))
		}
		path := filepath.Join(t.TempDir(), "runs.txt")
		if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	base := file("12.1", "12.2", "12.0", "+Inf", "12.3")
	t.Run("When nothing got worse it should print the table and succeed", func(t *testing.T) {
		var out bytes.Buffer
		if err := run([]string{base, file("12.2", "12.1", "12.3", "12.0")}, &out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"available-s", "rss-MiB", "same", "4+4", "5+4"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	})
	t.Run("When a figure got worse it should name it and fail", func(t *testing.T) {
		err := run([]string{base, file("14.2", "14.1", "14.3", "14.0")}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "Single available-s (+16") {
			t.Fatal(err)
		}
	})
	t.Run("When more is allowed it should succeed", func(t *testing.T) {
		if err := run([]string{"-worse", "25", base, file("14.2", "14.1", "14.3", "14.0")}, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("When nothing was printed it should fail", func(t *testing.T) {
		if err := run([]string{file(), file()}, &bytes.Buffer{}); err == nil {
			t.Fatal("it did not")
		}
	})
	t.Run("When a file is missing it should say which", func(t *testing.T) {
		if err := run([]string{base, "nowhere.txt"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "nowhere.txt") {
			t.Fatal(err)
		}
		if err := run([]string{base}, &bytes.Buffer{}); err == nil {
			t.Fatal("one file is not enough")
		}
	})
}
