package manager_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	. "hcp.internal/platform/internal/packages/packagestest"
)

// TestImmutable asks the API server which changes of a revision it takes, in both scopes.
func TestImmutable(t *testing.T) {
	probes := []v1alpha1.ObjectSetProbe{Probe("ConfigMap", ".a", ".b")}
	set := func(ns string) *v1alpha1.ObjectSet {
		os := ObjectSet(ns, "immutable", 1, Phase("a", ConfigMap("cm", nil)))
		os.Spec.LifecycleState = v1alpha1.LifecycleStatePaused // nobody is to work on it
		os.Spec.AvailabilityProbes, os.Spec.Previous = probes, []v1alpha1.PreviousRevisionReference{{Name: "x"}}
		os.Spec.SuccessDelaySeconds = 5
		return os
	}
	phase := func(ns string) *v1alpha1.ObjectSetPhase {
		return &v1alpha1.ObjectSetPhase{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "immutable", Labels: map[string]string{v1alpha1.PhaseClassLabel: "nobody"}},
			Spec: v1alpha1.ObjectSetPhaseSpec{
				Revision: 1, AvailabilityProbes: probes, Previous: []v1alpha1.PreviousRevisionReference{{Name: "x"}}, Objects: []v1alpha1.ObjectSetObject{ConfigMap("cm", nil)},
			},
		}
	}
	slice := func(ns string) *v1alpha1.ObjectSlice {
		return &v1alpha1.ObjectSlice{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "immutable"}, Objects: []v1alpha1.ObjectSetObject{ConfigMap("cm", nil)}}
	}
	changes := map[string]map[string]string{
		"ObjectSet": {
			`{"spec":{"phases":null}}`: "phases is immutable", `{"spec":{"phases":[]}}`: "phases is immutable",
			`{"spec":{"availabilityProbes":null}}`: "availabilityProbes is immutable", `{"spec":{"successDelaySeconds":6}}`: "successDelaySeconds is immutable",
			`{"spec":{"previous":[]}}`: "previous is immutable", `{"spec":{"revision":2}}`: "revision is immutable", `{"spec":{"revision":null}}`: "revision is immutable",
			`{"spec":{"lifecycleState":"Resting"}}`: "Unsupported value", `{"spec":{"lifecycleState":"Archived"}}`: "",
		},
		"ObjectSetPhase": {
			`{"spec":{"objects":[]}}`: "objects is immutable", `{"spec":{"availabilityProbes":null}}`: "availabilityProbes is immutable",
			`{"spec":{"previous":null}}`: "previous is immutable", `{"spec":{"previous":[]}}`: "previous is immutable",
			`{"spec":{"revision":2}}`: "revision is immutable", `{"spec":{"paused":true}}`: "",
		},
		"ObjectSlice": {`{"objects":[]}`: "objects is immutable"},
	}
	w := Serve(t)
	for _, prefix := range []string{"", "Cluster"} {
		ns := w.Namespace(t)
		if prefix != "" {
			ns = ""
		}
		objects := map[string]client.Object{"ObjectSet": set(ns), "ObjectSetPhase": phase(ns), "ObjectSlice": slice(ns)}
		if prefix != "" {
			objects = map[string]client.Object{
				"ObjectSet": (*v1alpha1.ClusterObjectSet)(set(ns)), "ObjectSetPhase": (*v1alpha1.ClusterObjectSetPhase)(phase(ns)), "ObjectSlice": (*v1alpha1.ClusterObjectSlice)(slice(ns)),
			}
		}
		for kind, obj := range objects {
			NewWithT(t).Expect(w.Client.Create(t.Context(), obj)).To(Succeed())
			for patch, want := range changes[kind] {
				t.Run(fmt.Sprintf("When a %s%s is changed by %s it should answer %q", prefix, kind, patch, want), func(t *testing.T) {
					u := &unstructured.Unstructured{}
					u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(prefix + kind))
					u.SetNamespace(ns)
					u.SetName("immutable")
					err := w.Client.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
					if want == "" {
						NewWithT(t).Expect(err).NotTo(HaveOccurred())
						return
					}
					NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
				})
			}
			NewWithT(t).Expect(w.Client.DeleteAllOf(t.Context(), obj, client.InNamespace(ns))).To(Succeed())
		}
	}
}
