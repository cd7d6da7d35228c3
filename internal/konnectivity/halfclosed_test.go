package konnectivity

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestLull(t *testing.T) {
	// Each look is after what happened: m, bytes moved; e, a side ended; g, the client has gone.
	for name, tc := range map[string]struct {
		before []string
		due    []bool
	}{
		"When nobody has gone it should never be due":                  {[]string{"", "", "m", "", ""}, []bool{false, false, false, false, false}},
		"When a side has ended it should be due at the second look":    {[]string{"e", ""}, []bool{false, true}},
		"When the client has gone it should be due at the second look": {[]string{"g", "g"}, []bool{false, true}},
		"When bytes move after the end it should begin anew":           {[]string{"e", "m", "m", "", ""}, []bool{false, false, false, false, true}},
		"When a long silence was before the end it should not count":   {[]string{"", "", "", "e", ""}, []bool{false, false, false, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			l, due := &Lull{}, []bool{}
			for _, what := range tc.before {
				switch what {
				case "m":
					l.Moved()
				case "e":
					l.Ended()
				}
				due = append(due, l.look(what == "g"))
			}
			NewWithT(t).Expect(due).To(Equal(tc.due))
		})
	}
}
