package conformance

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"hcp.internal/platform/internal/atomicfile"
	"hcp.internal/platform/internal/clip"
)

// maxMessage bounds what is kept of a failure.
const maxMessage = 600

// Case is one spec of the suite.
type Case struct {
	Name string
	// Seconds is how long it took; 0 when it was not run.
	Seconds float64
	// Failure is what it failed with; empty when it passed or was not run.
	Failure string
	// Skipped is why it was not run, in the suite's own words or ours; empty when it was.
	Skipped string
}

// notRun is the reason of a spec that nobody has run yet, filtered what the suite says of one that it was told to leave out. One that leaves
// itself out says why.
const (
	notRun   = "not run yet"
	filtered = "skipped"
)

// junit is the part of a JUnit file that is read and written.
type junit struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Status  string        `xml:"status,attr,omitempty"`
	Time    float64       `xml:"time,attr"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
	Skipped *junitMessage `xml:"skipped"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// labels are what newer versions of the suite put behind a name, and the kind of the node before it.
var labels = regexp.MustCompile(`^\[It\] | \[[A-Za-z-]+(, [A-Za-z-]+)+\]$`)

// Read returns the conformance specs of a JUnit file, sorted by name; none when there is no such file.
func Read(file string) ([]Case, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	var j junit
	if err := xml.Unmarshal(data, &j); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", file, err)
	}
	var out []Case
	for _, s := range j.Suites {
		for _, c := range s.Cases {
			if strings.Contains(c.Name, "[Conformance]") {
				out = append(out, c.toCase())
			}
		}
	}
	slices.SortFunc(out, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (c junitCase) toCase() Case {
	out := Case{Name: labels.ReplaceAllString(c.Name, ""), Seconds: c.Time}
	switch {
	case c.Status == "interrupted":
		// Somebody ended the suite while the spec ran: nobody knows.
		out.Skipped, out.Seconds = notRun, 0
	case c.Failure != nil:
		out.Failure = c.Failure.short()
	case c.Error != nil:
		out.Failure = c.Error.short()
	case c.Skipped != nil:
		out.Skipped, out.Seconds = c.Skipped.short(), 0
		if out.Skipped == filtered {
			out.Skipped = notRun
		}
	}
	return out
}

// short is never empty.
func (m junitMessage) short() string {
	for _, text := range []string{m.Message, m.Text, "no message"} {
		if text = strings.TrimSpace(text); text != "" {
			return clip.Over(text, maxMessage, "…")
		}
	}
	return ""
}

// Merge puts what a run told over what is known. Each of names, those of the suite, has a case afterwards. A spec that this run left out keeps
// what is known of it.
func Merge(names []string, known, run []Case) []Case {
	byName := map[string]Case{}
	for _, c := range known {
		byName[c.Name] = c
	}
	for _, c := range run {
		if before, ok := byName[c.Name]; c.Skipped == "" || !ok || before.Skipped == notRun {
			byName[c.Name] = c
		}
	}
	out := make([]Case, 0, len(names))
	for _, n := range names {
		if _, ok := byName[n]; !ok {
			byName[n] = Case{Name: n, Skipped: notRun}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[n])
	}
	return out
}

// Rest is a regular expression on the specs of names that have not passed yet and that focus matches, if it isn't empty; "" when there are none.
func Rest(names []string, known []Case, focus string) (string, error) {
	match, err := regexp.Compile(focus)
	if err != nil {
		return "", fmt.Errorf("the focus %q is no regular expression: %w", focus, err)
	}
	var rest []string
	for _, c := range Merge(names, known, nil) {
		if (c.Failure != "" || c.Skipped != "") && match.MatchString(c.Name) {
			rest = append(rest, regexp.QuoteMeta(c.Name))
		}
	}
	return strings.Join(rest, "|"), nil
}

// Write writes cases as a JUnit file.
func Write(file string, cases []Case) error {
	s := junitSuite{Name: "Kubernetes conformance", Tests: len(cases)}
	for _, c := range cases {
		out := junitCase{Name: c.Name, Class: Group(c.Name), Time: c.Seconds}
		switch {
		case c.Failure != "":
			s.Failures++
			out.Failure = &junitMessage{Message: c.Failure}
		case c.Skipped != "":
			s.Skipped++
			out.Skipped = &junitMessage{Message: c.Skipped}
		}
		s.Cases = append(s.Cases, out)
	}
	data, err := xml.MarshalIndent(junit{Suites: []junitSuite{s}}, "", " ")
	if err != nil {
		return fmt.Errorf("encoding results: %w", err)
	}
	return atomicfile.Write(file, append([]byte(xml.Header), append(data, '\n')...), 0o644)
}

var group = regexp.MustCompile(`^\[(sig-[a-z-]+)\]`)

// Group is the group of developers that a spec belongs to, e.g. "sig-network".
func Group(name string) string {
	if m := group.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return "other"
}
