package support

import (
	"slices"
	"strings"
)

// Verdict says what becomes of what a user writes.
type Verdict string

const (
	// Heeded: it does what the API reference says.
	Heeded Verdict = "heeded"
	// Refused: a new object that has it is not acted on, and a condition names the field and the remedy. On one that has been acted on before
	// it is only told, as if it were NotHeeded: an upgrade of the operator must not stop what runs.
	Refused Verdict = "refused"
	// NotHeeded: nothing reads it. A condition says so while it is set to something else than its default.
	NotHeeded Verdict = "not heeded"
	// Written: by operators, for operators. What a user puts there is overwritten or means nothing.
	Written Verdict = "written by operators"
)

// Entry is what is known about a field and all below it, or about an annotation.
type Entry struct {
	// Path is like spec.etcd.managed.shards[].name. The element of a list whose elements have a name may be picked, as in
	// spec.services[OAuthServer], and a value, as in spec.networking.networkType=Calico. For an annotation it is the key; one that ends in *
	// stands for all that begin so.
	Path    string
	Verdict Verdict
	// None is the verdict on platform None where it is another.
	None Verdict
	// Payload is the verdict for OpenShift payloads where it is another than for releases of Kubernetes. PayloadText is then what Text is for these.
	Payload     Verdict
	PayloadText string
	// PayloadBy is By for OpenShift payloads.
	PayloadBy string
	// Text says why, and what to do instead; a clause without a full stop. Required unless the verdict is Heeded.
	Text string
	// Default is what the definition or our tools write when the user says nothing. That is never told.
	Default string
	// Quiet: it is in the reference, and no condition tells of it, because tools write it unasked and leaving it out changes nothing.
	Quiet bool
	// Needs is the switch of an installation without which nobody heeds it; empty: none.
	Needs Switch
	// By says who heeds it: packages below internal/ whose tests prove it by changing the field and rendering, separated by spaces; or, where no
	// rendering can show it, "test " and the name of the test that does.
	By string
}

// Switch is a part of an installation that can be off, as its flag of `hypershift install`.
type Switch string

// SizeTagging gives hosted clusters sizes.
const SizeTagging Switch = "--enable-size-tagging"

// AuditLogPersistence keeps audit logs of hosted API servers on volumes.
const AuditLogPersistence Switch = "--enable-audit-log-persistence"

// On is the verdict on a platform.
func (e Entry) On(platform string) Verdict {
	if platform == platformNone && e.None != "" {
		return e.None
	}
	return e.Verdict
}

const platformNone = "None"

// Table is what is known about a kind.
type Table struct {
	Kind    string
	Entries []Entry
	// Rules are about fields that are heeded only beside others.
	Rules []Rule
}

// Rule tells when a field that is heeded in general is not. The path of its entry says when, for the reference.
type Rule struct {
	Entry Entry
	// Applies finds the field in a spec as JSON has it.
	Applies func(spec map[string]any) (field string, applies bool)
}

// Of is the table of a kind, nil when the kind as a whole has a verdict, see Kinds.
func Of(kind string) *Table {
	switch kind {
	case hostedClusters.Kind:
		return &hostedClusters
	case nodePools.Kind:
		return &nodePools
	}
	return nil
}

// Tables are all tables of fields.
func Tables() []*Table { return []*Table{&hostedClusters, &nodePools} }

// Lookup finds the entry of a field by its path in the definition, with [] for lists: the longest that covers it. value may be empty.
func (t *Table) Lookup(path, value string) (Entry, bool) { return t.lookup([]string{path}, value) }

// lookup finds the longest entry that covers one of several spellings of the same path, the more special first.
func (t *Table) lookup(spellings []string, value string) (Entry, bool) {
	for _, path := range spellings {
		if e, ok := t.at(path + "=" + value); ok {
			return e, true
		}
	}
	for length := strings.Count(spellings[0], "."); length >= 0; length-- {
		for _, path := range spellings {
			segments := strings.Split(path, ".")
			if length >= len(segments) {
				continue
			}
			prefix := strings.Join(segments[:length+1], ".")
			if e, ok := t.at(prefix); ok {
				return e, true
			}
			if bare, list := strings.CutSuffix(prefix, "[]"); list {
				if e, ok := t.at(bare); ok {
					return e, true
				}
			}
		}
	}
	return Entry{}, false
}

func (t *Table) at(path string) (Entry, bool) {
	i := slices.IndexFunc(t.Entries, func(e Entry) bool { return e.Path == path })
	if i < 0 {
		return Entry{}, false
	}
	return t.Entries[i], true
}

// Annotation finds what is known about an annotation or label of ours.
func Annotation(key string) (Entry, bool) {
	best := Entry{}
	for _, e := range annotations {
		prefix, open := strings.CutSuffix(e.Path, "*")
		if e.Path == key {
			return e, true
		}
		if open && strings.HasPrefix(key, prefix) && len(e.Path) > len(best.Path) {
			best = e
		}
	}
	return best, best.Path != ""
}

// Annotations are all entries about annotations.
func Annotations() []Entry { return slices.Clone(annotations) }

// ForPayloads is the entry as it is for OpenShift payloads.
func (e Entry) ForPayloads() Entry {
	if e.Payload != "" {
		e.Verdict, e.None, e.Text, e.By = e.Payload, "", e.PayloadText, e.PayloadBy
	}
	return e
}
