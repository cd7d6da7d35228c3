package packagecontroller

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
)

func TestSaid(t *testing.T) {
	const generation = 2
	concluded := conditions.False(v1alpha1.ConditionProgressing, v1alpha1.ReasonIdle, "Update concluded.")
	deployment := func(edit ...func(*v1alpha1.ObjectDeployment)) *v1alpha1.ObjectDeployment {
		od := &v1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
		od.Status.Conditions = []metav1.Condition{{Type: concluded.Type, Status: concluded.Status, Reason: concluded.Reason, Message: concluded.Message, ObservedGeneration: 7}}
		for _, f := range edit {
			f(od)
		}
		return od
	}
	silent := func(od *v1alpha1.ObjectDeployment) { od.Generation++ }
	waits := conditions.True(v1alpha1.ConditionProgressing, v1alpha1.ReasonProgressing, "What spec asks for is not unpacked yet. What is installed stays.")
	for name, tc := range map[string]struct {
		unpacked metav1.ConditionStatus
		at       int64
		paused   bool
		od       *v1alpha1.ObjectDeployment
		want     []metav1.Condition
	}{
		"When what spec says is unpacked it should say what the deployment does":                       {unpacked: "True", at: generation, od: deployment(), want: []metav1.Condition{concluded}},
		"When the deployment was changed and has said nothing since it should leave what was said":     {unpacked: "True", at: generation, od: deployment(silent)},
		"When what spec said before is unpacked it should progress":                                    {unpacked: "True", at: generation - 1, od: deployment(), want: []metav1.Condition{waits}},
		"When it can't be unpacked it should progress":                                                 {unpacked: "False", at: generation, od: deployment(), want: []metav1.Condition{waits}},
		"When it is not unpacked and the deployment says nothing it should progress":                   {unpacked: "True", at: generation - 1, od: deployment(silent), want: []metav1.Condition{waits}},
		"When it is paused it should say what the deployment does, as nothing is going to be unpacked": {unpacked: "True", at: generation - 1, paused: true, od: deployment(), want: []metav1.Condition{concluded}},
		"When its deployment is gone it should progress": {unpacked: "True", at: generation,
			want: []metav1.Condition{conditions.True(v1alpha1.ConditionProgressing, v1alpha1.ReasonProgressing, "Progressing to a new ObjectSet.")}},
		"When its deployment is gone and it is paused it should say that it is paused": {unpacked: "True", at: generation, paused: true,
			want: []metav1.Condition{conditions.True(v1alpha1.ConditionPaused, v1alpha1.ReasonPaused, "Nothing is installed while spec.paused is true.")}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Generation: generation}, Spec: v1alpha1.PackageSpec{Paused: tc.paused}}
			p.Status.UnpackedHash = "hash"
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUnpacked, Status: tc.unpacked, ObservedGeneration: tc.at}}
			set, _ := said(p, tc.od)
			NewWithT(t).Expect(set).To(Equal(tc.want))
		})
	}
	t.Run("When nothing was ever installed it should say nothing before it says why", func(t *testing.T) {
		set, _ := said(&v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, nil)
		NewWithT(t).Expect(set).To(BeEmpty())
	})
}
