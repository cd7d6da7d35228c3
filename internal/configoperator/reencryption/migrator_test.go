package reencryption

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"hcp.internal/platform/internal/testenv"
)

// serveMigrations makes the API server know the API of the stand-alone migrator, on which nobody works.
func serveMigrations(t *testing.T) {
	t.Helper()
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name:        "storageversionmigrations.migration.k8s.io",
		Annotations: map[string]string{"api-approved.kubernetes.io": "https://github.com/kubernetes/community/pull/2524"},
	}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "migration.k8s.io", Scope: apiextensionsv1.ClusterScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "storageversionmigrations", Singular: "storageversionmigration", Kind: "StorageVersionMigration", ListKind: "StorageVersionMigrationList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1alpha1", Served: true, Storage: true,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}},
	}
	options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}, MaxTime: 3 * time.Minute}
	if _, err := envtest.InstallCRDs(testenv.Start(t).Config, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(testenv.Start(t).Config, options); err != nil {
			t.Error(err)
		}
	})
}

func TestMigrate(t *testing.T) {
	t.Run("When nobody serves migrations it should say so", func(t *testing.T) {
		w := newWorld(t)
		r := &Reconciler{Hosted: w.client, Clock: clocktesting.NewFakePassiveClock(time.Now())}
		NewWithT(t).Expect(r.migrate(t.Context(), "fp", "1")).To(Equal(notServed))
	})
	t.Run("When the API is served it should ask for a migration, believe its verdict, and not wait for ever", func(t *testing.T) {
		g := NewWithT(t)
		serveMigrations(t)
		w := newWorld(t) // after the API: its client has looked what there is
		ask := func(rotation string, later time.Duration) verdict {
			r := &Reconciler{Hosted: w.client, Clock: clocktesting.NewFakePassiveClock(time.Now().Add(later))}
			v, err := r.migrate(t.Context(), "fp", rotation)
			g.Expect(err).NotTo(HaveOccurred())
			return v
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(migrationKinds[1])
		say := func(kind string) {
			g.Expect(w.client.Get(t.Context(), client.ObjectKey{Name: migrationName}, live)).To(Succeed())
			live.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True"}}}
			g.Expect(w.client.Status().Update(t.Context(), live)).To(Succeed())
		}
		g.Expect(ask("1", 0)).To(Equal(running))
		g.Expect(w.client.Get(t.Context(), client.ObjectKey{Name: migrationName}, live)).To(Succeed())
		g.Expect(live.Object["spec"]).To(Equal(map[string]any{"resource": map[string]any{"group": "", "version": "v1", "resource": "secrets"}}))
		g.Expect(live.GetAnnotations()).To(HaveKeyWithValue(writeKeyAnnotation, "encryption-key-fp"))
		g.Expect(ask("1", startPatience/2)).To(Equal(running))
		g.Expect(ask("1", startPatience+time.Minute)).To(Equal(notServed), "nobody looked at it")
		say("Running")
		g.Expect(ask("1", startPatience+time.Minute)).To(Equal(running))
		g.Expect(ask("1", workPatience+time.Minute)).To(Equal(notServed), "it takes too long")
		say("Failed")
		g.Expect(ask("1", 0)).To(Equal(failed))
		say("Succeeded")
		g.Expect(ask("1", 0)).To(Equal(succeeded))
		g.Expect(ask("2", 0)).To(Equal(running), "the verdict is about another rotation")
	})
}
