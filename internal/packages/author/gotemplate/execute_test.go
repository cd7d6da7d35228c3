package gotemplate_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/packages/author/gotemplate"
)

// TestFriendly has what real templates do, beside the bounds.
func TestFriendly(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"When a text is padded it should be":                {`{{ printf "%-5s|%05d|%.2f" "a" 3 1.5 }}`, "a    |00003|1.50"},
		"When numbers count it should give them":            {`{{ until 3 }}{{ untilStep 3 0 -2 }}{{ until -2 }}{{ untilStep 0 5 0 }}`, "[0 1 2][3 1][0 -1][]"},
		"When a sequence is wanted it should be as sprig's": {`{{ seq 5 }},{{ seq -3 }},{{ seq 0 2 10 }},{{ seq 0 -2 -5 }},{{ seq 2 4 }},{{ seq 5 2 0 }},{{ seq }}`, "1 2 3 4 5,1 0 -1 -2 -3,0 2 4 6 8 10,0 -2 -4,2 3 4,,"},
		"When versions are compared it should":              {`{{ (semver "1.2.3-rc.1").Minor }}{{ semverCompare ">=1.2" "1.3.0" }}{{ (semver "1.2.3").LessThan (semver "1.3.0") }}{{ semver "v1.2.3" }}`, "2truetrue1.2.3"},
		"When expressions match it should":                  {`{{ regexFindAll "[a-c]+" "ab-ca-x" -1 }}{{ regexReplaceAll "(a)(b)?" "ab-a" "<${1}>" }}{{ regexReplaceAllLiteral "a" "aa" "$1" }}{{ regexSplit "-" "a-b-c" 2 }}{{ regexMatch "(" "x" }}{{ regexFind "b+" "abbc" }}{{ regexFindAll "a*" "baac" -1 | len }}`, "[ab ca]<a>-<a>$1$1[a b-c]falsebb3"},
		"When a list is made unique it should":              {`{{ uniq (list "a" "b" "a") }}{{ without (list 1 2 3) 2 }}`, "[a b][1 3]"},
		"When templates nest it should go through them":     {`{{ define "x" }}{{ if gt . 0 }}{{ include "x" (sub . 1) }}{{ else }}end{{ end }}{{ end }}{{ include "x" 500 }}`, "end"},
		"When a value is large it should be taken":          {`{{ $x := repeat 1000000 "a" }}{{ $y := printf "%s" $x | quote | indent 4 | trim | fromYAML }}{{ len $y }}`, "1000000"},
		"When text has many lines it should be indented":    {`{{ len (nindent 8 (repeat 10000 "some line\n")) }}`, "180009"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := gotemplate.Execute(t.Context(), tc.text, map[string]any{})
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(out)).To(Equal(tc.want))
		})
	}
}
