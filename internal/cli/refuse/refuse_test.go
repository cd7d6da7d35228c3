package refuse

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func TestFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string // empty: accepted
	}{
		"When no such flag is given it should accept":               {[]string{"--other", "x"}, ""},
		"When a switch is off it should accept":                     {[]string{"--switch=false"}, ""},
		"When a switch is on it should name it with the reason":     {[]string{"--switch"}, "--switch: none here"},
		"When a value is given it should name it with the reason":   {[]string{"--value", "x"}, "--value: none here"},
		"When an empty value is given it should name it as well":    {[]string{"--value", ""}, "--value: none here"},
		"When a value isn't needed it should accept with a note":    {[]string{"--creds", "x"}, ""},
		"When several are refused it should name the first one":     {[]string{"--value", "x", "--switch"}, "--switch: none here"},
		"When several are refused it should name the other as well": {[]string{"--value", "x", "--switch"}, "--value: none here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			fs.String("other", "", "")
			var r Flags
			var u Unneeded
			r.Switches(fs, "none here", "switch")
			r.Values(fs, "none here", "value")
			u.Values(fs, "creds")
			g.Expect(fs.Parse(tc.args)).To(Succeed())
			if tc.want == "" {
				g.Expect(r.Check(fs)).To(Succeed())
			} else {
				g.Expect(r.Check(fs)).To(MatchError(ContainSubstring(tc.want)))
			}
			if fs.Changed("creds") {
				g.Expect(u.Notes(fs)).To(ConsistOf(ContainSubstring("--creds isn't used")))
			} else {
				g.Expect(u.Notes(fs)).To(BeEmpty())
			}
			g.Expect(fs.Lookup("value").Hidden).To(BeTrue())
		})
	}
}
