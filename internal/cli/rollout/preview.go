package rollout

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/packages/control/rollout"
)

// preview is the answer of "rollout plan". Clusters are namespace/name, times are seconds.
type preview struct {
	Name       string `json:"name"`
	Clusters   int    `json:"clusters"`
	UpToDate   int    `json:"upToDate"`
	PerCluster int64  `json:"secondsPerCluster"`
	// Used of Budget Packages are unavailable, in flight or missing now; a Budget of -1 has no limit.
	Used     int        `json:"used"`
	Budget   int        `json:"budget"`
	Now      []decision `json:"now"`
	Forecast forecast   `json:"forecast"`
	Warnings []string   `json:"warnings,omitempty"`
}

type forecast struct {
	// Awaited are in flight now, and assumed to become available.
	Awaited  []string   `json:"awaited,omitempty"`
	Waves    []wave     `json:"waves"`
	Seconds  int64      `json:"seconds"`
	Finished bool       `json:"finished"`
	Rest     []decision `json:"rest,omitempty"`
}

// wave is what is started at one moment. Used of Budget count as unavailable then.
type wave struct {
	After    int64    `json:"afterSeconds"`
	Group    string   `json:"group,omitempty"`
	Clusters []string `json:"clusters"`
	Returned bool     `json:"returned,omitempty"` // to the last good version
	Used     int      `json:"used"`
	Budget   int      `json:"budget"`
}

type decision struct {
	Cluster string         `json:"cluster"`
	Group   string         `json:"group,omitempty"`
	Action  rollout.Action `json:"action"`
	Reason  string         `json:"reason"`
}

func newPreview(name string, perCluster time.Duration, clusters int, plan rollout.Plan, f rollout.Forecast) *preview {
	p := &preview{
		Name: name, Clusters: clusters, UpToDate: int(plan.Status.UpdatedPackages), Used: plan.Used, Budget: plan.Budget, PerCluster: seconds(perCluster),
		Now:      decisions(plan.Decisions),
		Forecast: forecast{Awaited: keys(f.Awaited), Waves: []wave{}, Seconds: seconds(f.Duration), Finished: f.Finished, Rest: decisions(f.Rest)},
	}
	for _, w := range f.Waves {
		p.Forecast.Waves = append(p.Forecast.Waves, wave{seconds(w.After), w.Group, keys(w.Clusters), w.Returned, w.Used, w.Budget})
	}
	return p
}

func seconds(d time.Duration) int64 { return int64(d.Round(time.Second) / time.Second) }

func keys(list []types.NamespacedName) []string {
	var out []string
	for _, n := range list {
		out = append(out, n.String())
	}
	return out
}

func decisions(list []rollout.Decision) []decision {
	var out []decision
	for _, d := range list {
		out = append(out, decision{d.Cluster.String(), d.Group, d.Action, d.Reason})
	}
	return out
}

func (p *preview) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "HostedClusterPackage %s: %d hosted clusters, %d up to date; %s.\n", p.Name, p.Clusters, p.UpToDate, budget(p.Used, p.Budget))
	for _, warning := range p.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n", warning)
	}
	f := p.Forecast
	if len(f.Awaited) > 0 {
		fmt.Fprintf(&b, "In flight: %s, assumed to be available in %s; --fail NAMESPACE/NAME assumes that one is not.\n", few(f.Awaited), human(p.PerCluster))
	}
	if len(f.Waves) > 0 {
		rows := [][]string{{"WAVE", "AFTER", "GROUP", "UNAVAILABLE", "CLUSTERS"}}
		for i, wave := range f.Waves {
			clusters := few(wave.Clusters)
			if wave.Returned {
				clusters += " (back to the last good version)"
			}
			rows = append(rows, []string{fmt.Sprint(i + 1), human(wave.After), orDash(wave.Group), share(wave.Used, wave.Budget), clusters})
		}
		b.WriteString("\n")
		if err := output.Table(&b, rows); err != nil {
			return err
		}
	}
	if len(f.Rest) > 0 {
		rows := [][]string{{"CLUSTER", "GROUP", "WHY IT IS LEFT"}}
		for _, d := range f.Rest {
			rows = append(rows, []string{d.Cluster, orDash(d.Group), d.Reason})
		}
		b.WriteString("\n")
		if err := output.Table(&b, rows); err != nil {
			return err
		}
	}
	b.WriteString("\n")
	switch {
	case f.Finished && len(f.Waves) == 0 && f.Seconds == 0:
		b.WriteString("Nothing to do" + later(len(f.Rest)) + ".\n")
	case f.Finished:
		fmt.Fprintf(&b, "Ends after %s, at %s for each cluster%s.\n", human(f.Seconds), human(p.PerCluster), later(len(f.Rest)))
	default:
		fmt.Fprintf(&b, "Stops with wave %d, after %s: %d hosted clusters are left.\n", len(f.Waves), human(f.Seconds), len(f.Rest))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// later speaks of clusters that nobody can reach now.
func later(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 hosted cluster follows when it can"
	}
	return fmt.Sprintf("; %d hosted clusters follow when they can", n)
}

// human is a time without what is zero in it: 1h5m, 90s is 1m30s.
func human(seconds int64) string {
	text := (time.Duration(seconds) * time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func budget(used, of int) string {
	if of == rollout.Unlimited {
		return "all at once"
	}
	return fmt.Sprintf("%d may be unavailable, %d are", of, used)
}

func share(used, of int) string {
	if of == rollout.Unlimited {
		return fmt.Sprint(used)
	}
	return fmt.Sprintf("%d/%d", used, of)
}

// shownClusters bounds how many names of a wave are printed.
const shownClusters = 8

func few(list []string) string {
	if len(list) > shownClusters {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:shownClusters], ", "), len(list)-shownClusters)
	}
	return strings.Join(list, ", ")
}
