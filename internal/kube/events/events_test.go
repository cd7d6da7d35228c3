package events

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

type heard []string

func (h *heard) Eventf(_, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	*h = append(*h, fmt.Sprintf("%s %s %s: %s", eventType, reason, action, fmt.Sprintf(note, args...)))
}

func condition(kind string, status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: "text of " + reason}}
}

func TestTransitions(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	valid := Rule{Condition: "Valid", Status: no, Warning: true, Action: "Validate", Over: "Valid"}
	available := Rule{Condition: "Available", Status: no, Warning: true, Action: "Serve", Lost: true, Over: "Available"}
	blocked := Rule{Condition: "Progressing", Status: no, Reason: "Blocked", Warning: true, Action: "RollOut"}
	for name, tc := range map[string]struct {
		rule          Rule
		before, after []metav1.Condition
		want          []string
	}{
		"When it is wrong from the start it should tell":          {valid, nil, condition("Valid", no, "Bad"), []string{"Warning Bad Validate: text of Bad"}},
		"When it is well from the start it should tell nothing":   {valid, nil, condition("Valid", yes, "AsExpected"), nil},
		"When it stays wrong it should tell nothing":              {valid, condition("Valid", no, "Bad"), condition("Valid", no, "Bad"), nil},
		"When it is wrong for another reason it should tell":      {valid, condition("Valid", no, "Bad"), condition("Valid", no, "Worse"), []string{"Warning Worse Validate: text of Worse"}},
		"When it is put right it should tell":                     {valid, condition("Valid", no, "Bad"), condition("Valid", yes, "AsExpected"), []string{"Normal Valid Validate: text of AsExpected"}},
		"When it is not known any more it should tell nothing":    {valid, condition("Valid", no, "Bad"), condition("Valid", unknown, "Unknown"), nil},
		"When the condition goes it should tell nothing":          {valid, condition("Valid", no, "Bad"), nil, nil},
		"When it starts it should not tell that it is not there":  {available, nil, condition("Available", no, "Starting"), nil},
		"When it waits for something else it should tell nothing": {available, condition("Available", no, "Starting"), condition("Available", no, "Waiting"), nil},
		"When it has started it should tell":                      {available, condition("Available", no, "Starting"), condition("Available", yes, "AsExpected"), []string{"Normal Available Serve: text of AsExpected"}},
		"When it is lost it should tell":                          {available, condition("Available", yes, "AsExpected"), condition("Available", no, "Down"), []string{"Warning Down Serve: text of Down"}},
		"When it is False for an innocent reason it should not":   {blocked, condition("Progressing", yes, "Progressing"), condition("Progressing", no, "AsExpected"), nil},
		"When it is False for the reason of the rule it should":   {blocked, condition("Progressing", no, "AsExpected"), condition("Progressing", no, "Blocked"), []string{"Warning Blocked RollOut: text of Blocked"}},
		"When the rule has a reason of its own it should use it": {Rule{Condition: "Updating", Status: yes, Action: "RollOut", Begins: "Updating"},
			condition("Updating", no, "AsExpected"), condition("Updating", yes, "AsExpected"), []string{"Normal Updating RollOut: text of AsExpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			var h heard
			Transitions(&h, &hyperv1.HostedCluster{}, []Rule{tc.rule}, tc.before, tc.after)
			NewWithT(t).Expect([]string(h)).To(Equal(tc.want))
		})
	}
	t.Run("When nothing changes it should tell nothing, whatever the conditions", rapid.MakeCheck(func(t *rapid.T) {
		list := condition(rapid.SampledFrom([]string{"Valid", "Available", "Progressing"}).Draw(t, "type"),
			rapid.SampledFrom([]metav1.ConditionStatus{yes, no, unknown}).Draw(t, "status"), rapid.SampledFrom([]string{"Bad", "Blocked"}).Draw(t, "reason"))
		var h heard
		Transitions(&h, &hyperv1.HostedCluster{}, []Rule{valid, available, blocked}, list, list)
		if len(h) > 0 {
			t.Fatal(h)
		}
	}))
	t.Run("When nobody listens it should do nothing", func(t *testing.T) {
		Transitions(nil, &hyperv1.HostedCluster{}, []Rule{valid}, nil, condition("Valid", no, "Bad"))
		Event(nil, &hyperv1.HostedCluster{}, true, "a", "b", "c")
	})
}

func TestEvent(t *testing.T) {
	t.Run("When the text is long it should be cut between characters", rapid.MakeCheck(func(t *rapid.T) {
		var h heard
		Event(&h, &hyperv1.HostedCluster{}, false, "R", "A", strings.Repeat("ä€", rapid.IntRange(0, 400).Draw(t, "n"))+"x")
		if len(h[0]) > 1024 || !utf8.ValidString(h[0]) {
			t.Fatalf("%d bytes: %q", len(h[0]), h[0])
		}
	}))
	t.Run("When there is no text it should say the reason", func(t *testing.T) {
		var h heard
		Event(&h, &hyperv1.HostedCluster{}, false, "R", "A", "")
		NewWithT(t).Expect([]string(h)).To(Equal([]string{"Normal R A: R"}))
	})
}

func TestLimiter(t *testing.T) {
	g := NewWithT(t)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var l Limiter
	g.Expect(l.Allow("a", noon, time.Minute)).To(BeTrue())
	g.Expect(l.Allow("a", noon.Add(59*time.Second), time.Minute)).To(BeFalse())
	g.Expect(l.Allow("b", noon.Add(59*time.Second), time.Minute)).To(BeTrue(), "another key")
	g.Expect(l.Allow("a", noon.Add(time.Minute), time.Minute)).To(BeTrue(), "a minute later")
	g.Expect(l.told).To(HaveLen(2))
	g.Expect(l.Allow("c", noon.Add(time.Hour), time.Minute)).To(BeTrue())
	g.Expect(l.told).To(HaveLen(1), "what is old is forgotten")
}
