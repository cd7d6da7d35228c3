package why

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule is a symptom of one kind of object, and where it leads.
type Rule struct {
	// ID is the heading of the rule in docs/why.md.
	ID string
	// On is the kind of object that has the symptom.
	On string
	// Condition with status Is, and one of Reasons unless these are empty, and a message that matches Says unless that is nil, is the symptom.
	Condition string
	Is        metav1.ConditionStatus
	Reasons   []string
	Says      *regexp.Regexp
	// See tells the symptom where no condition does; nil: Condition does. Sees says in words what it looks at.
	See  func(*scene, *item) *seen
	Sees string
	// While restricts the rule to objects that are being deleted; Always holds for both. The zero value is for objects that are to stay.
	While while
	// Ask are who may know more, in this order.
	Ask []edge
	// Leads: the symptom is no cause of its own, only a way to one.
	Leads bool
	// Whole: what those that it asks merely wait for, or are held at, is a part of it.
	Whole bool
	// State and Do are for when nobody knows more. Do is empty for a rule that only Leads.
	State State
	Do    string
	// Young tells, for as long as the object is coming up, that the symptom is a part of that: State is Waiting then, and Do begins with "wait". nil: never.
	Young func(*scene, *item) bool
	// Late is how long the symptom of a rule with State Waiting may last before it is Broken; 0: for ever.
	Late time.Duration
	// Knows: its remedy fits whatever error the condition tells of, such as a registry that refuses connections.
	Knows bool
	// Health is the word of tables for it; empty: that of State. Healthy: tables do without the rule.
	Health Health
}

// while says in which part of its life an object is looked at.
type while int

const (
	living while = iota
	dying
	always
)

// seen is a symptom as it was found.
type seen struct {
	field, text string
	// cause is the sentence for people; empty: text.
	cause string
	since time.Time
	// do replaces that of the rule.
	do string
	// state replaces that of the rule.
	state State
}

// step is a link on the way to a cause.
type step struct {
	link  Link
	cause string
	rule  string
	do    string
	state State
	// health replaces the word of tables.
	health Health
}

// edge finds who may know more.
type edge func(*scene, *item) []*item

// maxAsked bounds how many objects one edge leads to, maxDepth how far a walk goes.
const (
	maxAsked = 100
	maxDepth = 12
)

// match tells whether the object has the symptom.
func (r *Rule) match(s *scene, it *item) *seen {
	if r.On != it.Kind || r.While == living && it.deleted != nil || r.While == dying && it.deleted == nil {
		return nil
	}
	if r.See != nil {
		return r.See(s, it)
	}
	for _, c := range it.conditions {
		if c.Type != r.Condition || c.Status != r.Is || len(r.Reasons) > 0 && !slices.Contains(r.Reasons, c.Reason) || r.Says != nil && !r.Says.MatchString(c.Message) {
			continue
		}
		return ofCondition(c)
	}
	return nil
}

// ofCondition is a condition as evidence.
func ofCondition(c metav1.Condition) *seen {
	text, message := fmt.Sprintf("%s %s", c.Status, Clean(c.Reason)), Clean(c.Message)
	cause := message
	if message != "" {
		text += ": " + message
	} else {
		cause = fmt.Sprintf("condition %s is %s (%s)", c.Type, c.Status, Clean(c.Reason))
	}
	return &seen{field: "status.conditions[" + Clean(c.Type) + "]", text: text, cause: cause, since: c.LastTransitionTime.Time}
}

// ask finds the chain from an object to the root of what is wrong with it; nil: nothing is.
func (s *scene) ask(it *item) []step {
	if known, ok := s.asked[it]; ok {
		return known
	}
	if len(s.stack) >= maxDepth || slices.Contains(s.stack, it) {
		return nil
	}
	s.stack = append(s.stack, it)
	defer func() { s.stack = s.stack[:len(s.stack)-1] }()
	var best []step
	told := map[string]bool{} // conditions: of several rules about one, the first that fits knows most
	for i := range rules {
		r := &rules[i]
		if r.On != it.Kind || r.See == nil && told[r.Condition] || s.major && r.Health == Healthy {
			continue
		}
		saw := r.match(s, it)
		if saw == nil {
			continue
		}
		if r.See == nil {
			told[r.Condition] = true
		}
		if found := s.follow(r, it, saw); worse(found, best) {
			best = found
		}
		if root(best) == Broken {
			break // what stands first goes first
		}
	}
	s.asked[it] = best
	return best
}

// follow is the chain that begins with a symptom; nil: it leads nowhere.
func (s *scene) follow(r *Rule, it *item, saw *seen) []step {
	first := step{rule: r.ID, cause: saw.cause, do: r.Do, state: r.State, health: r.Health, link: Link{Object: it.shown(), Field: saw.field, Text: saw.text, Since: at(saw.since)}}
	if saw.do != "" {
		first.do = saw.do
	}
	if saw.state != "" {
		first.state = saw.state
	}
	var rest []step
	for _, e := range r.Ask {
		next := e(s, it)
		for _, n := range next[:min(len(next), maxAsked)] {
			if found := s.ask(n); worse(found, rest) && (!r.Whole || root(found) == Broken) {
				rest = found
			}
		}
		if rest != nil {
			return append([]step{first}, rest...)
		}
	}
	if r.Leads {
		return nil
	}
	if t := classify(saw.text); t != nil && r.See == nil && !r.Knows { // what a condition says may be an error that is known wherever it stands
		first.rule, first.do, first.state = t.ID, t.Do, t.State
		return []step{first}
	}
	switch {
	case first.state == Broken && r.Young != nil && r.Young(s, it):
		first.state, first.do = Waiting, "wait: it is coming up. If it stays so: "+first.do
	case first.state == Waiting && r.Late > 0 && !saw.since.IsZero() && s.Now.Sub(saw.since) > r.Late:
		first.state = Broken
	}
	return []step{first}
}

func root(chain []step) State {
	if len(chain) == 0 {
		return Well
	}
	return chain[len(chain)-1].state
}

// worse tells whether a is to be told rather than b, which stands before it.
func worse(a, b []step) bool { return root(a).rank() > root(b).rank() }

// IDs lists all rules by ID, those about texts included, in the order in which they are tried.
func IDs() []string {
	var out []string
	add := func(id string) {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	for i := range rules {
		add(rules[i].ID)
	}
	for i := range texts {
		add(texts[i].ID)
	}
	add("not-found")
	add("unreadable")
	return out
}
