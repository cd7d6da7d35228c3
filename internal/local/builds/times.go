package builds

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// timesFile remembers how long builds took on this machine, relative to the root. It is only good for forecasts: it may be lost.
const timesFile = "bin/build-times.json"

// took is one build in timesFile.
type took struct {
	Seconds  float64 `json:"seconds"`
	Packages int     `json:"packages"` // compiled
}

// Times forecasts how long builds take.
type Times struct {
	root   string
	builds map[string]took
}

// ReadTimes reads what is remembered.
func ReadTimes(root string) *Times {
	t := &Times{root: root, builds: map[string]took{}}
	if data, err := os.ReadFile(filepath.Join(root, timesFile)); err == nil {
		_ = json.Unmarshal(data, &t.builds) // a torn file is as good as none
	}
	if t.builds == nil {
		t.builds = map[string]took{}
	}
	return t
}

// Note remembers a build that compiled something: the largest one, as that is what is forecast.
func (t *Times) Note(target Target, p Progress, d time.Duration) {
	if p.Compiled == 0 || p.Compiled < t.builds[target.Name].Packages {
		return
	}
	t.builds[target.Name] = took{Seconds: d.Seconds(), Packages: p.Compiled}
	if data, err := json.MarshalIndent(t.builds, "", "  "); err == nil {
		_ = os.WriteFile(filepath.Join(t.root, timesFile), append(data, '\n'), 0o644)
	}
}

// Expected is how long a target takes from nothing, as far as is known.
func (t *Times) Expected(target Target) time.Duration {
	if known, ok := t.builds[target.Name]; ok {
		return max(time.Duration(known.Seconds*float64(time.Second)), target.Typical/10)
	}
	return target.Typical
}

const (
	// upToDate is how long a target takes of which everything is in the cache.
	upToDate = 2 * time.Second
	// enough packages tell how fast the others will be.
	enough = 5
)

// Left forecasts how long it will take until all targets are built. The first of them has been under way for a time and is as far as p
// says; the others haven't begun.
func (t *Times) Left(targets []Target, p Progress, since time.Duration) time.Duration {
	var left time.Duration
	for i, target := range targets {
		expected := t.Expected(target)
		if (i > 0 || p.Compiled == 0) && target.There(t.root) {
			expected = min(expected, upToDate)
		}
		if i > 0 {
			left += expected
			continue
		}
		if p.Compiled >= enough && p.Packages > 0 {
			left += time.Duration(float64(since) / float64(p.Compiled) * float64(p.Packages-p.Compiled))
			continue
		}
		left += max(expected-since, upToDate)
	}
	return left
}

// About says a forecast to a person: "less than a minute left", "about 4 min left".
func About(left time.Duration) string {
	if left < time.Minute {
		return "less than a minute left"
	}
	return fmt.Sprintf("about %d min left", int(left.Round(time.Minute)/time.Minute))
}
