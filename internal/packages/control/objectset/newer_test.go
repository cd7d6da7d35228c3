package objectset

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/owner"
	"hcp.internal/platform/internal/packages/engine/scope"
)

// revisionOf is an ObjectSet whose UID is its name.
func revisionOf(name, deployment string, number int64, previous ...string) *v1alpha1.ObjectSet {
	os := &v1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Spec: v1alpha1.ObjectSetSpec{Revision: number}}
	if deployment != "" {
		os.Labels = map[string]string{v1alpha1.ObjectDeploymentLabel: deployment}
	}
	for _, p := range previous {
		os.Spec.Previous = append(os.Spec.Previous, v1alpha1.PreviousRevisionReference{Name: p})
	}
	return os
}

func phaseOf(os *v1alpha1.ObjectSet) *v1alpha1.ObjectSetPhase {
	return &v1alpha1.ObjectSetPhase{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: os.Name + "-a", UID: os.UID + "-a",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(os, v1alpha1.GroupVersion.WithKind("ObjectSet"))},
	}}
}

func TestNewer(t *testing.T) {
	second, stranger := revisionOf("web-2", "web", 2, "web-1"), revisionOf("db-7", "db", 7)
	alone := []client.Object{revisionOf("alone-1", "", 1), revisionOf("alone-2", "", 2, "alone-1"), revisionOf("alone-3", "", 3, "alone-2", "gone")}
	all := append([]client.Object{revisionOf("web-1", "web", 1), second, stranger, phaseOf(second), phaseOf(stranger)}, alone...)
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	entry := func(kind, name, uid string) owner.Entry {
		return owner.Entry{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: types.UID(uid)}
	}
	for name, tc := range map[string]struct {
		of         *v1alpha1.ObjectSet
		controller owner.Entry
		want       bool
	}{
		"When a later revision of the deployment has an object it should be newer":    {revisionOf("web-1", "web", 1), entry("ObjectSet", "web-2", "web-2"), true},
		"When a phase of a later revision has an object it should be newer":           {revisionOf("web-1", "web", 1), entry("ObjectSetPhase", "web-2-a", "web-2-a"), true},
		"When an earlier revision of the deployment has an object it should not be":   {second, entry("ObjectSet", "web-1", "web-1"), false},
		"When another deployment has an object it should not be":                      {revisionOf("web-1", "web", 1), entry("ObjectSet", "db-7", "db-7"), false},
		"When a phase of another deployment has an object it should not be":           {revisionOf("web-1", "web", 1), entry("ObjectSetPhase", "db-7-a", "db-7-a"), false},
		"When something else has an object it should not be":                          {revisionOf("web-1", "web", 1), owner.Entry{APIVersion: "apps/v1", Kind: "ObjectSet", Name: "web-2", UID: "web-2"}, false},
		"When what had an object is gone it should not be":                            {revisionOf("web-1", "web", 1), entry("ObjectSet", "web-3", "web-3"), false},
		"When another one has the name by now it should not be":                       {revisionOf("web-1", "web", 1), entry("ObjectSet", "web-2", "before"), false},
		"When a revision without a deployment follows by spec.previous it should be":  {revisionOf("alone-1", "", 1), entry("ObjectSet", "alone-2", "alone-2"), true},
		"When it follows one that follows it should be, too":                          {revisionOf("alone-1", "", 1), entry("ObjectSet", "alone-3", "alone-3"), true},
		"When revisions without a deployment have nothing in common it should not be": {revisionOf("other", "", 1), entry("ObjectSet", "alone-3", "alone-3"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build()
			behind := fake.NewClientBuilder().WithScheme(scheme).Build()
			for _, cached := range []client.Client{live, behind} {
				r := &Reconciler{Scope: scope.Namespaced, Client: cached, Live: live}
				got, err := r.newer(t.Context(), tc.of, tc.controller)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(got).To(Equal(tc.want))
			}
		})
	}
}

func TestSuperseded(t *testing.T) {
	with := func(os *v1alpha1.ObjectSet, change func(*v1alpha1.ObjectSet)) *v1alpha1.ObjectSet {
		change(os)
		return os
	}
	archived := func(os *v1alpha1.ObjectSet) { os.Spec.LifecycleState = v1alpha1.LifecycleStateArchived }
	paused := func(os *v1alpha1.ObjectSet) { os.Spec.LifecycleState = v1alpha1.LifecycleStatePaused }
	goes := func(os *v1alpha1.ObjectSet) {
		now := metav1.Now()
		os.DeletionTimestamp, os.Finalizers = &now, []string{v1alpha1.OrphanFinalizer}
	}
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	for name, tc := range map[string]struct {
		of     *v1alpha1.ObjectSet
		others []client.Object
		want   bool
	}{
		"When it is alone it should not be":                                    {of: revisionOf("web-1", "web", 1)},
		"When a later revision of the deployment is there it should be":        {revisionOf("web-1", "web", 1), []client.Object{revisionOf("web-3", "web", 3)}, true},
		"When that one is paused it should be":                                 {revisionOf("web-1", "web", 1), []client.Object{with(revisionOf("web-3", "web", 3), paused)}, true},
		"When that one is archived it should not be":                           {revisionOf("web-1", "web", 1), []client.Object{with(revisionOf("web-3", "web", 3), archived)}, false},
		"When that one is being deleted it should not be":                      {revisionOf("web-1", "web", 1), []client.Object{with(revisionOf("web-3", "web", 3), goes)}, false},
		"When an earlier revision is there it should not be":                   {revisionOf("web-3", "web", 3), []client.Object{revisionOf("web-1", "web", 1)}, false},
		"When another deployment has a higher number it should not be":         {revisionOf("web-1", "web", 1), []client.Object{revisionOf("db-7", "db", 7)}, false},
		"When one without a deployment follows it should be":                   {revisionOf("alone-1", "", 1), []client.Object{revisionOf("alone-2", "", 2, "alone-1")}, true},
		"When one without a deployment has nothing in common it should not be": {revisionOf("alone-1", "", 1), []client.Object{revisionOf("other-2", "", 2, "other-1")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.others, tc.of)...).Build()
			r := &Reconciler{Scope: scope.Namespaced, Client: fake.NewClientBuilder().WithScheme(scheme).Build(), Live: live}
			got, err := r.superseded(t.Context(), tc.of)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
