package packagecontroller

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/scope"
)

func TestOrigin(t *testing.T) {
	want := origin{spec: "spec", metadata: "m", environment: "e"}
	for recorded, tc := range map[string]struct{ satisfies, outdated bool }{
		"":           {false, false},
		"spec":       {true, false},
		"spec-e":     {true, false},
		"spec.m":     {true, false},
		"spec.m-e":   {true, false},
		"spec.x-e":   {false, true},
		"spec.m-x":   {false, true},
		"spec-x":     {false, true},
		"other.m-e":  {false, false},
		"other-e":    {false, false},
		"spec-m":     {false, true},
		"specific-e": {false, false},
	} {
		t.Run("When "+recorded+" was unpacked it should know whether to do it again", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(parseOrigin(recorded).satisfies(want)).To(Equal(tc.satisfies))
			g.Expect(parseOrigin(recorded).outdated(want)).To(Equal(tc.outdated))
			g.Expect(parseOrigin(recorded).String()).To(Equal(recorded))
		})
	}
}

func TestMentionsMetadata(t *testing.T) {
	for text, want := range map[string]bool{
		`{{ .package.metadata.labels.team }}`:                                true,
		`{{ index .package.metadata.annotations "example.com/a" }}`:          true,
		`{{ $m := .package.metadata }}{{ $m.labels.team }}`:                  true,
		`{{ with .package }}{{ .metadata.labels.team }}{{ end }}`:            true,
		`{{ toYaml .package }}`:                                              true,
		`{{ (index . "package").metadata.labels.team }}`:                     true,
		`package.metadata.labels["team"] == "a"`:                             true,
		`package["metadata"]["labels"]["team"] == "a"`:                       true,
		`{{ .package.metadata.name }}-{{ $.package.metadata.namespace }}`:    false,
		`{{ .package.image }}`:                                               false,
		"metadata: {annotations: {package-operator.run/phase: deploy}}":      false,
		"packages.package-operator.run/chunking-strategy: NoOp":              false,
		"# this package has labels\nmetadata: {labels: {app: my-package}}":   false,
		`{{ .config.packages }}{{ .config.subpackage.metadata.labels }}`:     false,
		`package.metadata.name.startsWith("a") && environment.proxy != null`: false,
	} {
		t.Run(text, func(t *testing.T) { NewWithT(t).Expect(mentionsMetadata(text)).To(Equal(want)) })
	}
}

func TestMetadataChanged(t *testing.T) {
	labelled := func(unpacked string, labels map[string]string, edit ...func(*v1alpha1.Package)) *v1alpha1.Package {
		p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Status: v1alpha1.PackageStatus{UnpackedHash: unpacked}}
		for _, f := range edit {
			f(p)
		}
		return p
	}
	rollout := func(p *v1alpha1.Package) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "package-operator.run/v1alpha1", Kind: "HostedClusterPackage", Name: "addon", Controller: ptr.To(true)}}
	}
	team := map[string]string{"team": "blue"}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.Package
		want          bool
	}{
		"When a label changes that templates may read it should pass":                     {labelled("spec.m-e", nil), labelled("spec.m-e", team), true},
		"When no template reads labels it should not":                                     {labelled("spec-e", nil), labelled("spec-e", team), false},
		"When only the status changes it should not":                                      {labelled("spec-e", team), labelled("spec.m-e", team), false},
		"When a label of ours changes it should not":                                      {labelled("spec.m-e", nil), labelled("spec.m-e", map[string]string{v1alpha1.PackageLabel: "web"}), false},
		"When a rollout has labelled it, which says itself when to render, it should not": {labelled("spec.m-e", nil, rollout), labelled("spec.m-e", team, rollout), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(metadataChanged(scope.Namespaced).Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after})).To(Equal(tc.want))
			cluster := event.UpdateEvent{ObjectOld: (*v1alpha1.ClusterPackage)(tc.before), ObjectNew: (*v1alpha1.ClusterPackage)(tc.after)}
			g.Expect(metadataChanged(scope.Cluster).Update(cluster)).To(Equal(tc.want))
		})
	}
}
