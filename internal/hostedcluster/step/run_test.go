package step

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRunSteps(t *testing.T) {
	all := []Step{{Name: "c1", Class: Critical}, {Name: "s1", Class: Supporting}, {Name: "b1", Class: Blockable}, {Name: "c2", Class: Critical}, {Name: "b2", Class: Blockable}}
	for name, tc := range map[string]struct {
		fails []string
		ran   string
		err   string
	}{
		"When all is well it should run all":                                            {ran: "c1 s1 b1 c2 b2"},
		"When a supporting step fails it should run all and say so":                     {fails: []string{"s1"}, ran: "c1 s1 b1 c2 b2", err: "s1: boom"},
		"When a critical step fails it should block what depends, and return only that": {fails: []string{"c1", "s1"}, ran: "c1 s1 c2", err: "c1: boom\nblocked by this: b1, b2"},
		"When a later critical step fails it should block only what comes after":        {fails: []string{"c2", "b1"}, ran: "c1 s1 b1 c2", err: "c2: boom\nblocked by this: b2"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &recorder{fails: map[string]bool{}}
			for _, f := range tc.fails {
				r.fails[f] = true
			}
			err := Run(t.Context(), r, all)
			g.Expect(strings.Join(r.ran, " ")).To(Equal(tc.ran))
			if tc.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(tc.err))
			}
		})
	}
}

type recorder struct {
	fails map[string]bool
	ran   []string
}

func (r *recorder) execute(_ context.Context, s Step) error {
	r.ran = append(r.ran, s.Name)
	if r.fails[s.Name] {
		return errors.New("boom")
	}
	return nil
}
