package conditiontype

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestValid(t *testing.T) {
	for name, tc := range map[string]struct {
		conditionType string
		want          bool
	}{
		"When a type is a name it should be valid":                      {"Ready", true},
		"When a type has a prefix it should be valid":                   {"example.com/Ready", true},
		"When a name has dots and dashes it should be valid":            {"a-b.example/Ready.for_use-1", true},
		"When a type has the greatest length it should be valid":        {strings.Repeat("a", MaxLength), true},
		"When a type is empty it should be invalid":                     {"", false},
		"When a prefix has an upper case letter it should be invalid":   {"Example.com/Ready", false},
		"When a type has two slashes it should be invalid":              {"example.com/web/Available", false},
		"When a type has spaces it should be invalid":                   {"Ready for use", false},
		"When a type has nothing before the slash it should be invalid": {"/Ready", false},
		"When a type has nothing after the slash it should be invalid":  {"example.com/", false},
		"When a type ends with a line it should be invalid":             {"Ready\n", false},
		"When a type is longer than a status takes it should be invalid": {
			strings.Repeat("a", MaxLength+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Valid(tc.conditionType)).To(Equal(tc.want))
		})
	}
}
