package kubectlpackage

import (
	"cmp"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/exit"
)

func TestProgress(t *testing.T) {
	const generation = 3
	condition := func(of, status string, generation int64) metav1.Condition {
		return metav1.Condition{Type: of, Status: metav1.ConditionStatus(status), Reason: "Reason", Message: "as it is", ObservedGeneration: generation}
	}
	rolledOut := []metav1.Condition{condition(v1alpha1.ConditionProgressing, "False", generation), condition(v1alpha1.ConditionAvailable, "True", generation)}
	for name, tc := range map[string]struct {
		list   []metav1.Condition
		kind   string // objectdeployment by default
		paused bool
		line   string
		done   bool
		held   string
	}{
		"When nothing was said yet it should wait": {line: "waiting for the rollout to begin"},
		"When all was rolled out it should be over": {
			list: rolledOut, line: "objectdeployment web successfully rolled out, revision 2", done: true},
		"When a package was unpacked and rolled out it should be over": {
			kind: packages, list: append(rolledOut[:2:2], condition(v1alpha1.ConditionUnpacked, "True", generation)),
			line: "package web successfully rolled out, revision 2", done: true},
		"When a package was changed and only what it was before is unpacked it should wait": {
			kind: packages, list: append(rolledOut[:2:2], condition(v1alpha1.ConditionUnpacked, "True", generation-1)), line: "waiting for the image to be unpacked"},
		"When nothing of a package was unpacked yet it should wait": {
			kind: clusterPackages, list: rolledOut, line: "waiting for the image to be unpacked"},
		"When it is paused it should be held": {
			list: append(rolledOut[:2:2], condition(v1alpha1.ConditionPaused, "True", generation)), paused: true, held: "`kubectl package unpause` resumes it"},
		"When its pause was ended and its newest revision is still paused it should wait": {
			list: append(rolledOut[:2:2], condition(v1alpha1.ConditionPaused, "True", generation)), line: "waiting until the pause is over"},
		"When a pause was ended and nobody has looked since it should wait": {
			list: []metav1.Condition{condition(v1alpha1.ConditionProgressing, "False", generation-1), condition(v1alpha1.ConditionAvailable, "True", generation-1),
				condition(v1alpha1.ConditionPaused, "True", generation-1)},
			line: "waiting for the rollout to begin"},
		"When it is invalid it should be held with the reason": {
			list: []metav1.Condition{condition(v1alpha1.ConditionInvalid, "True", generation)}, held: "is invalid: Reason: as it is"},
		"When an earlier generation was invalid it should wait": {
			list: []metav1.Condition{condition(v1alpha1.ConditionInvalid, "True", generation-1)}, line: "waiting for the rollout to begin"},
		"When the image does not come it should say why": {
			list: []metav1.Condition{condition(v1alpha1.ConditionUnpacked, "False", generation)}, line: "waiting for the image: as it is"},
		"When it goes on it should say how far": {
			list: []metav1.Condition{condition(v1alpha1.ConditionProgressing, "True", generation), condition(v1alpha1.ConditionAvailable, "False", generation)},
			line: "revision 2: as it is"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kind := cmp.Or(tc.kind, "objectdeployment")
			line, done, err := observed{kind: kind, name: "web", unpacks: tc.kind != "", generation: generation, revision: 2, paused: tc.paused, conditions: tc.list}.progress()
			g.Expect(line).To(Equal(tc.line))
			g.Expect(done).To(Equal(tc.done))
			if tc.held == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.held)))
			g.Expect(exit.Code(err)).To(Equal(exit.Held))
		})
	}
}
