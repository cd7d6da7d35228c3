package fresh

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestOlder(t *testing.T) {
	for name, tc := range map[string]struct {
		version, than string
		want          bool
	}{
		"When it is from before it should be older":              {"9", "10", true},
		"When it is the same it should not be":                   {"10", "10", false},
		"When it is from after it should not be":                 {"11", "10", false},
		"When versions are no numbers they should not be judged": {"a", "b", false},
		"When there is none it should not be judged":             {"", "10", false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(Older(tc.version, tc.than)).To(Equal(tc.want)) })
	}
}
