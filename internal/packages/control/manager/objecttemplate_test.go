package manager_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	. "hcp.internal/platform/internal/packages/packagestest"
)

func objectTemplate(ns, text string, sources ...v1alpha1.ObjectTemplateSource) *v1alpha1.ObjectTemplate {
	return &v1alpha1.ObjectTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "template"},
		Spec:       v1alpha1.ObjectTemplateSpec{Template: text, Sources: sources},
	}
}

func source(kind, name, key string, optional bool) v1alpha1.ObjectTemplateSource {
	return v1alpha1.ObjectTemplateSource{
		APIVersion: "v1", Kind: kind, Name: name, Optional: optional,
		Items: []v1alpha1.ObjectTemplateSourceItem{{Key: key, Destination: ".value"}},
	}
}

const madeFromValue = `
apiVersion: v1
kind: ConfigMap
metadata: {name: made}
data: {value: {{ .config.value | b64dec | quote }}, kubernetes: {{ .environment.kubernetes.version }}}`

func TestObjectTemplate(t *testing.T) {
	t.Run("When a source appears and changes it should follow, and take its object along when it goes", func(t *testing.T) {
		t.Parallel()
		g, w := NewWithT(t), Start(t)
		ns := w.Namespace(t)
		ot := objectTemplate(ns, madeFromValue, source("Secret", "source", "data.value", false))
		g.Expect(w.Client.Create(t.Context(), ot)).To(Succeed())
		w.Eventually(t, ot, HasCondition(ot, &ot.Status.Conditions, v1alpha1.ConditionTemplateInvalid, "True", "SourceError", "for source Secret "+ns+`/source: secrets "source" not found`))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "source"}, Data: map[string][]byte{"value": []byte("one")}}
		g.Expect(w.Client.Create(t.Context(), secret)).To(Succeed())
		made := configMap(ns, "made")
		is := func(value string) func() error {
			return func() error {
				if made.Data["value"] != value {
					return fmt.Errorf("value is %q", made.Data["value"])
				}
				return nil
			}
		}
		w.Eventually(t, made, is("one"))
		g.Expect(made.Data["kubernetes"]).To(HavePrefix("v1."))
		g.Expect(made.Annotations).NotTo(HaveKey(v1alpha1.RevisionAnnotation))
		g.Expect(get(w, t, secret)).To(Succeed())
		secret.Data["value"] = []byte("two")
		g.Expect(w.Client.Update(t.Context(), secret)).To(Succeed())
		w.Eventually(t, made, is("two"))
		made.Data["value"] = "theirs"
		g.Expect(w.Client.Update(t.Context(), made)).To(Succeed())
		w.Eventually(t, made, is("two"))
		w.Eventually(t, ot, func() error {
			if meta.FindStatusCondition(ot.Status.Conditions, v1alpha1.ConditionTemplateInvalid) != nil {
				return errors.New("still invalid")
			}
			return nil
		})
		g.Expect(ot.Status.ControllerOf).To(HaveValue(Equal(v1alpha1.ControlledObjectReference{Kind: "ConfigMap", Version: "v1", Name: "made", Namespace: ns})))
		version := made.ResourceVersion
		g.Consistently(func() string { _ = get(w, t, made); return made.ResourceVersion }, quiet).Should(Equal(version))
		g.Expect(w.Client.Delete(t.Context(), ot)).To(Succeed())
		w.Gone(t, ot)
		w.Gone(t, made)
	})
	for name, tc := range map[string]struct{ text, reason, message string }{
		"When a template fails it should say why":                            {`{{ .config.nope }}`, "TemplateError", `map has no entry for key "nope"`},
		"When a template loops it should be stopped":                         {`{{ range until 200000 }}{{ range until 200000 }}{{ end }}{{ end }}`, "TemplateError", "takes longer than 2 s"},
		"When a template calls itself it should be stopped":                  {`{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}`, "TemplateError", "exceeded max include recursion depth"},
		"When a template explodes it should be stopped":                      {`{{ range until 100 }}{{ repeat 100000 "a" }}{{ end }}`, "TemplateError", "more than 4 MiB"},
		"When a template reads the environment of the process it should not": {`{{ env "HOME" }}`, "TemplateError", `function "env" not defined`},
		"When an object is cluster-scoped it should be refused": {
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}}", "SourceError", "Must be namespaced scoped"},
		"When an object belongs to somebody else it should be left alone": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}, data: {a: b}}", "SourceError", "refusing adoption"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, w := NewWithT(t), Start(t)
			ns := w.Namespace(t)
			foreign := configMap(ns, "foreign")
			g.Expect(w.Client.Create(t.Context(), foreign)).To(Succeed())
			ot := objectTemplate(ns, tc.text, source("ConfigMap", "missing", "data.value", true))
			g.Expect(w.Client.Create(t.Context(), ot)).To(Succeed())
			w.Eventually(t, ot, HasCondition(ot, &ot.Status.Conditions, v1alpha1.ConditionTemplateInvalid, "True", tc.reason, ""))
			g.Expect(meta.FindStatusCondition(ot.Status.Conditions, v1alpha1.ConditionTemplateInvalid).Message).To(
				// On a machine that is busy with other things the limit of time can be the first.
				Or(ContainSubstring(tc.message), ContainSubstring("takes longer than 2 s")))
			version := foreign.ResourceVersion
			g.Expect(get(w, t, foreign)).To(Succeed())
			g.Expect(foreign.ResourceVersion).To(Equal(version))
		})
	}
}

// rename gives a template that makes an empty ConfigMap of another name.
func rename(t *testing.T, w *World, ot *v1alpha1.ObjectTemplate, name string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":%q}}`, emptyMap(name))
	NewWithT(t).Expect(w.Client.Patch(t.Context(), ot, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

func emptyMap(name string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}"
}

func TestRenamedObject(t *testing.T) {
	start := func(t *testing.T) (*World, *v1alpha1.ObjectTemplate) {
		t.Helper()
		w := Start(t)
		ot := objectTemplate(w.Namespace(t), emptyMap("db-a"), source("ConfigMap", "missing", "data.value", true))
		NewWithT(t).Expect(w.Client.Create(t.Context(), ot)).To(Succeed())
		w.Eventually(t, ot, func() error {
			if ref := ot.Status.ControllerOf; ref == nil || ref.Name != "db-a" {
				return fmt.Errorf("controls %v", ref)
			}
			return nil
		})
		return w, ot
	}
	t.Run("When an object gets a name that somebody else has it should keep the one it made", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		w, ot := start(t)
		made := configMap(ot.Namespace, "db-a")
		g.Expect(get(w, t, made)).To(Succeed())
		uid := made.UID
		g.Expect(w.Client.Create(t.Context(), configMap(ot.Namespace, "db-b"))).To(Succeed())
		rename(t, w, ot, "db-b")
		w.Eventually(t, ot, HasCondition(ot, &ot.Status.Conditions, v1alpha1.ConditionTemplateInvalid, "True", "SourceError", ""))
		g.Expect(get(w, t, made)).To(Succeed())
		g.Expect(made.UID).To(Equal(uid))
		g.Expect(made.DeletionTimestamp.IsZero()).To(BeTrue())
		g.Expect(ot.Status.ControllerOf).To(HaveValue(HaveField("Name", "db-a")))
		rename(t, w, ot, "db-c")
		w.Gone(t, made)
		g.Expect(get(w, t, configMap(ot.Namespace, "db-c"))).To(Succeed())
	})
	t.Run("When an object gets a name that is free it should remove the one it made", func(t *testing.T) {
		t.Parallel()
		g := NewWithT(t)
		w, ot := start(t)
		rename(t, w, ot, "db-b")
		w.Gone(t, configMap(ot.Namespace, "db-a"))
		g.Expect(get(w, t, configMap(ot.Namespace, "db-b"))).To(Succeed(), "the new one comes first")
		w.Eventually(t, ot, func() error {
			if ref := ot.Status.ControllerOf; ref == nil || ref.Name != "db-b" {
				return fmt.Errorf("controls %v", ref)
			}
			return nil
		})
	})
}
