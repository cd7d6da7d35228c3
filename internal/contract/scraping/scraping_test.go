package scraping

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		text   string
	}{
		"When there are none it should be empty":        {map[string]string{}, ""},
		"When there are several it should be sorted":    {map[string]string{"release": "kps", "a.b/c": ""}, "a.b/c=,release=kps"},
		"When a value is empty it should be read again": {map[string]string{"x": ""}, "x="},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(FormatLabels(tc.labels)).To(Equal(tc.text))
			g.Expect(ParseLabels(tc.text)).To(Equal(tc.labels))
		})
	}
}
