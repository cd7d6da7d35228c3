package upgrade

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/version"
)

// Report is what an upgrade would change. With -o json and yaml it is what scripts read: fields are added, and none goes.
type Report struct {
	// Image and Release are what would be upgraded to; one of them may be empty.
	Image   string `json:"hypershiftImage,omitempty"`
	Release string `json:"releaseImage,omitempty"`
	// Skew is between this program, which stands for the new version, and the installed one; nil: that is not known.
	Skew *version.Skew `json:"skew,omitempty"`
	// Definitions are versions of stored objects that the new version's definitions lack.
	Definitions []string  `json:"definitions,omitempty"`
	Clusters    []Cluster `json:"clusters"`
	Notes       []string  `json:"notes,omitempty"`
}

// Cluster is what would change in a hosted cluster.
type Cluster struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// From and To are versions of its release.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Refused is why the operator would refuse the release; empty: it would not.
	Refused string `json:"refused,omitempty"`
	// Changes are fields of objects of the control plane, and Restarts the workloads of it that get new pods.
	Changes  []Change `json:"changes,omitempty"`
	Restarts []string `json:"restarts,omitempty"`
	// Removed are API versions that somebody has asked its API server for and that the release lacks.
	Removed []string `json:"removedAPIs,omitempty"`
	Pools   []Pool   `json:"nodePools,omitempty"`
	// Problems are what could not be told.
	Problems []string `json:"problems,omitempty"`
}

// Pool is what would become of the machines of a NodePool.
type Pool struct {
	Name     string `json:"name"`
	Machines int    `json:"machines"`
	// Rolls: all of them would be replaced or changed. Held: the operator would hold that, as nobody asked for it.
	Rolls   bool     `json:"rolls"`
	Held    bool     `json:"held,omitempty"`
	Changes []string `json:"changes,omitempty"`
	// Unknown is why nothing can be told; empty: it can.
	Unknown string `json:"unknown,omitempty"`
}

// rolling is how many machines would be replaced, held ones included.
func (r Report) rolling() (machines, pools int) {
	for _, c := range r.Clusters {
		for _, p := range c.Pools {
			if p.Rolls {
				machines, pools = machines+p.Machines, pools+1
			}
		}
	}
	return machines, pools
}

// verdict is the error that the command ends with: nil when nothing speaks against the upgrade.
func (r Report) verdict() error {
	var against []string
	problems := 0
	for _, c := range r.Clusters {
		key := c.Namespace + "/" + c.Name
		if c.Refused != "" {
			against = append(against, key+" would refuse the release")
		}
		if len(c.Removed) > 0 {
			against = append(against, fmt.Sprintf("%s is asked for %d APIs that go", key, len(c.Removed)))
		}
		problems += len(c.Problems)
		for _, p := range c.Pools {
			if p.Unknown != "" {
				problems++
			}
		}
	}
	if machines, pools := r.rolling(); pools > 0 {
		against = append(against, fmt.Sprintf("%d machines of %d NodePools would be replaced", machines, pools))
	}
	if len(r.Definitions) > 0 {
		against = append(against, "objects are stored in versions that go")
	}
	switch {
	case r.Skew != nil && r.Skew.Verdict == version.Unsupported:
		return exit.With(exit.Skew, errors.New(r.Skew.Message))
	case len(against) > 0:
		return exit.With(exit.Held, errors.New("look at this before the upgrade: "+strings.Join(against, "; ")))
	case problems > 0:
		return fmt.Errorf("%d things could not be told; they stand in the report", problems)
	}
	return nil
}

// shownFields is how many fields of a cluster people are shown; -o json has all.
const shownFields = 20

func (r Report) print(w io.Writer, all bool) error {
	var b strings.Builder
	if r.Skew != nil {
		fmt.Fprintf(&b, "version skew: %s: %s\n", r.Skew.Verdict, r.Skew.Message)
	}
	for _, d := range r.Definitions {
		fmt.Fprintf(&b, "goes: %s\n", d)
	}
	for i := range r.Clusters {
		r.Clusters[i].print(&b, all)
	}
	restarts, changed := 0, 0
	for _, c := range r.Clusters {
		restarts += len(c.Restarts)
		if len(c.Changes) > 0 {
			changed++
		}
	}
	machines, _ := r.rolling()
	fmt.Fprintf(&b, "%d of %d hosted clusters change, %d workloads get new pods, %d machines are replaced\n", changed, len(r.Clusters), restarts, machines)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c Cluster) print(b *strings.Builder, all bool) {
	fmt.Fprintf(b, "HostedCluster %s/%s", c.Namespace, c.Name)
	if c.From != c.To {
		fmt.Fprintf(b, "  %s → %s", c.From, c.To)
	}
	if len(c.Changes)+len(c.Restarts)+len(c.Removed)+len(c.Problems) == 0 && c.Refused == "" {
		b.WriteString("  nothing changes")
	}
	b.WriteString("\n")
	line := func(label, text string) { fmt.Fprintf(b, "  %-9s%s\n", label, text) }
	if c.Refused != "" {
		line("refused", clip.Line(c.Refused))
	}
	for _, r := range c.Removed {
		line("API goes", r)
	}
	if len(c.Restarts) > 0 {
		line("new pods", strings.Join(c.Restarts, ", "))
	}
	shown := len(c.Changes)
	if !all {
		shown = min(shown, shownFields)
	}
	for _, change := range c.Changes[:shown] {
		line("changes", change.String())
	}
	if more := len(c.Changes) - shown; more > 0 {
		line("", fmt.Sprintf("and %d more fields: --show all, or -o json", more))
	}
	for _, p := range c.Pools {
		line("NodePool", p.String())
	}
	for _, p := range c.Problems {
		line("unknown", p)
	}
}

// String is the pool on a line.
func (p Pool) String() string {
	switch {
	case p.Unknown != "":
		return fmt.Sprintf("%s: can't be told: %s", p.Name, clip.Line(p.Unknown))
	case !p.Rolls:
		return fmt.Sprintf("%s: %d machines stay", p.Name, p.Machines)
	}
	text := fmt.Sprintf("%s: all %d machines would be replaced", p.Name, p.Machines)
	if p.Held {
		text += ", which the operator would hold (UnrequestedRollout)"
	}
	if len(p.Changes) > 0 {
		text += ": " + strings.Join(p.Changes, "; ")
	}
	return text
}
