package pause

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestAt(t *testing.T) {
	for name, tc := range map[string]struct {
		value *string
		want  Pause
		left  time.Duration
	}{
		"When it is unset it should pause nothing":               {},
		"When it is empty it should pause nothing":               {value: ptr.To("")},
		"When it is true it should pause without end":            {value: ptr.To("true"), want: Pause{Active: true}},
		"When it is True it should pause without end":            {value: ptr.To("True"), want: Pause{Active: true}},
		"When it is false it should pause nothing":               {value: ptr.To("false")},
		"When it is False it should pause nothing":               {value: ptr.To("False")},
		"When it is a time to come it should pause until then":   {value: ptr.To("2026-01-02T13:00:00Z"), want: Pause{Active: true, Until: noon.Add(time.Hour)}, left: time.Hour},
		"When it is a time gone by it should pause nothing":      {value: ptr.To("2026-01-02T11:00:00Z")},
		"When it is now it should pause nothing":                 {value: ptr.To("2026-01-02T12:00:00Z")},
		"When it has fractions it should count them":             {value: ptr.To("2026-01-02T12:00:00.5Z"), want: Pause{Active: true, Until: noon.Add(time.Second / 2)}, left: time.Second / 2},
		"When it is a word it should say that it is none":        {value: ptr.To("tomorrow"), want: Pause{Invalid: true}},
		"When it is a date only it should say that it is none":   {value: ptr.To("2026-01-03"), want: Pause{Invalid: true}},
		"When it has no time zone it should say that it is none": {value: ptr.To("2026-01-03T12:00:00"), want: Pause{Invalid: true}},
		"When it has blanks around it should say it is none":     {value: ptr.To(" true "), want: Pause{Invalid: true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := At(tc.value, noon)
			g.Expect(got).To(Equal(tc.want))
			g.Expect(got.Left(noon)).To(Equal(tc.left))
		})
	}
	t.Run("When it is in another time zone it should mean the same moment", func(t *testing.T) {
		got := At(ptr.To("2026-01-02T15:00:00+02:00"), noon)
		g := NewWithT(t)
		g.Expect(got.Active).To(BeTrue())
		g.Expect(got.Left(noon)).To(Equal(time.Hour))
	})
	t.Run("When it is anything it should not be active and invalid at once, nor have an end in the past", rapid.MakeCheck(func(t *rapid.T) {
		got := At(ptr.To(rapid.String().Draw(t, "value")), noon)
		if got.Active && got.Invalid || !got.Until.IsZero() && !got.Active || got.Left(noon) < 0 {
			t.Fatalf("%+v", got)
		}
	}))
}
