package install

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestChooseCAPI(t *testing.T) {
	one, other := []string{"clusters/one"}, []string{"clusters/other"}
	for name, tc := range map[string]struct {
		evidence capiEvidence
		want     capiChoice // why is not compared
		err      string
	}{
		"When there are no hosted clusters it should install private types": {
			evidence: capiEvidence{asked: CAPIAuto}, want: capiChoice{Private: true}},
		"When there are hosted clusters from before it should not change anything by itself": {
			evidence: capiEvidence{asked: CAPIAuto, standard: one}, want: capiChoice{}},
		"When it was installed with private types it should stay so": {
			evidence: capiEvidence{asked: CAPIAuto, recorded: "private"}, want: capiChoice{Private: true}},
		"When it was installed with standard types it should stay so, also without hosted clusters": {
			evidence: capiEvidence{asked: CAPIAuto, recorded: "standard"}, want: capiChoice{}},
		"When it was installed with both it should keep both going": {
			evidence: capiEvidence{asked: CAPIAuto, recorded: "private", private: one, standard: other}, want: capiChoice{Private: true, Legacy: true}},
		"When the last of the old hosted clusters is gone it should keep private types only": {
			evidence: capiEvidence{asked: CAPIAuto, recorded: "private", private: one}, want: capiChoice{Private: true}},
		"When the record is lost private hosted clusters should show what to do": {
			evidence: capiEvidence{asked: CAPIAuto, private: one, standard: other}, want: capiChoice{Private: true, Legacy: true}},
		"When the record is lost private objects alone should show what to do": {
			evidence: capiEvidence{asked: CAPIAuto, privateObjects: true}, want: capiChoice{Private: true}},
		"When the record contradicts the hosted clusters it should ask": {
			evidence: capiEvidence{asked: CAPIAuto, recorded: "standard", private: one}, err: "--private-capi-types=true"},
		"When private types are asked for it should keep old hosted clusters going": {
			evidence: capiEvidence{asked: CAPIPrivate, recorded: "standard", standard: one}, want: capiChoice{Private: true, Legacy: true}},
		"When private types are asked for on an empty cluster it should install nothing else": {
			evidence: capiEvidence{asked: CAPIPrivate}, want: capiChoice{Private: true}},
		"When standard types are asked for on an empty cluster it should install them": {
			evidence: capiEvidence{asked: CAPIStandard, recorded: "private"}, want: capiChoice{}},
		"When standard types are asked for beside private hosted clusters it should refuse and name them": {
			evidence: capiEvidence{asked: CAPIStandard, private: one}, err: "clusters/one"},
		"When standard types are asked for and private objects are left it should refuse": {
			evidence: capiEvidence{asked: CAPIStandard, privateObjects: true}, err: "destroy these hosted clusters first"},
		"When a newer version has recorded something else it should refuse": {
			evidence: capiEvidence{asked: CAPIPrivate, recorded: "v2"}, err: "newer version"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := chooseCAPI(tc.evidence)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.why).NotTo(BeEmpty())
			got.why = ""
			g.Expect(got).To(Equal(tc.want))
		})
	}
}

func TestNoHostedClusterIsStranded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a/a", "b/b", "c/c", "d/d", "e/e"}), 0, 5)
		e := capiEvidence{
			asked:    rapid.SampledFrom([]string{CAPIAuto, CAPIPrivate, CAPIStandard}).Draw(t, "asked"),
			recorded: rapid.SampledFrom([]string{"", capiModeStored, capiModeOld}).Draw(t, "recorded"),
			private:  names.Draw(t, "private"), standard: names.Draw(t, "standard"), privateObjects: rapid.Bool().Draw(t, "privateObjects"),
		}
		choice, err := chooseCAPI(e)
		if err != nil {
			return // nothing is changed
		}
		if (len(e.private) > 0 || e.privateObjects) && !choice.Private {
			t.Fatalf("%+v strands private ones: %+v", e, choice)
		}
		if len(e.standard) > 0 && !choice.standard() {
			t.Fatalf("%+v strands standard ones: %+v", e, choice)
		}
		if choice.Legacy && !choice.Private {
			t.Fatalf("%+v: a second operator for the same: %+v", e, choice)
		}
		e.asked, e.recorded = CAPIAuto, map[bool]string{true: capiModeStored, false: capiModeOld}[choice.Private]
		again, err := chooseCAPI(e)
		if err != nil || again.Private != choice.Private || again.Legacy != choice.Legacy {
			t.Fatalf("%+v: installing again gives %+v, %v instead of %+v", e, again, err, choice)
		}
	})
}

func TestStorageOf(t *testing.T) {
	const private, lock = hyperv1.PrivateCAPITypesAnnotation, hyperv1.PrivateCAPIMigrationInProgressAnnotation
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339) }
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        capiChoice // of an installation that follows
	}{
		"When a hosted cluster is from before its operator should stay":                   {nil, capiChoice{Private: true, Legacy: true}},
		"When it is being moved, and not committed, both kinds should stay":               {map[string]string{lock: "true"}, capiChoice{Private: true, Legacy: true}},
		"When it is being moved, and committed, both kinds should stay":                   {map[string]string{lock: "true", private: "true"}, capiChoice{Private: true, Legacy: true}},
		"When it was moved an hour ago the way back should stay":                          {map[string]string{private: "true", hyperv1.PrivateCAPIMovedAnnotation: at(time.Hour)}, capiChoice{Private: true, Legacy: true}},
		"When it was moved two days ago standard types should go":                         {map[string]string{private: "true", hyperv1.PrivateCAPIMovedAnnotation: at(48 * time.Hour)}, capiChoice{Private: true}},
		"When it is asked back two days later the operator for standard types comes back": {map[string]string{private: "true", hyperv1.PrivateCAPIMovedAnnotation: at(48 * time.Hour), hyperv1.PrivateCAPIRollbackAnnotation: "true"}, capiChoice{Private: true, Legacy: true}},
		"When it has always been private nothing else should be installed":                {map[string]string{private: "true"}, capiChoice{Private: true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := capiEvidence{asked: CAPIAuto, recorded: capiModeStored}
			e.storageOf(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Annotations: tc.annotations, Finalizers: []string{hyperv1.HostedClusterFinalizer}}}, now)
			got, err := chooseCAPI(e)
			g.Expect(err).NotTo(HaveOccurred())
			got.why = ""
			g.Expect(got).To(Equal(tc.want))
			e.asked = CAPIStandard
			if _, err = chooseCAPI(e); len(tc.annotations) > 0 {
				g.Expect(err).To(HaveOccurred(), "private objects are stranded")
			}
		})
	}
}
