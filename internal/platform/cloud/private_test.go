package cloud

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPrivate(t *testing.T) {
	p := Private{Kind: "Link", Types: []string{"Whole", "Part"}, Good: "Success", Bad: "Error", Remedy: "Nobody makes links: make none."}
	link := func(name string, whole, part metav1.ConditionStatus) Link {
		l := Link{Name: name}
		for t, status := range map[string]metav1.ConditionStatus{"Whole": whole, "Part": part} {
			if status != "" {
				l.Conditions = append(l.Conditions, metav1.Condition{Type: t, Status: status, Message: "it broke"})
			}
		}
		return l
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		links       []Link
		whole, part metav1.Condition
	}{
		"When there is no link the first condition should say what to do": {nil,
			metav1.Condition{Status: no, Reason: "Error", Message: "Nobody makes links: make none."},
			metav1.Condition{Status: metav1.ConditionUnknown, Reason: "StatusUnknown", Message: "There is no Link"}},
		"When nobody says anything of a link the first condition should say what to do": {[]Link{link("a", "", "")},
			metav1.Condition{Status: no, Reason: "Error", Message: "Nobody makes links: make none."},
			metav1.Condition{Status: metav1.ConditionUnknown, Reason: "StatusUnknown", Message: "Nothing is known yet of a"}},
		"When one of several is wrong it should be named": {[]Link{link("a", yes, yes), link("b", no, yes)},
			metav1.Condition{Status: no, Reason: "Error", Message: "b: it broke"},
			metav1.Condition{Status: yes, Reason: "Success", Message: "All is well"}},
		"When all are well it should say so": {[]Link{link("a", yes, yes)},
			metav1.Condition{Status: yes, Reason: "Success", Message: "All is well"},
			metav1.Condition{Status: yes, Reason: "Success", Message: "All is well"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tc.whole.Type, tc.part.Type = "Whole", "Part"
			g.Expect(p.Conditions(tc.links)).To(Equal([]metav1.Condition{tc.whole, tc.part}))
		})
	}
}
