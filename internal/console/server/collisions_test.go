package server

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
)

func TestOwnerOf(t *testing.T) {
	controlledBy := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: "Node", Name: "n"}, {Kind: kind, Name: name, Controller: ptr.To(true)}}
	}
	early, late := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	for name, c := range map[string]struct {
		meta metav1.ObjectMeta
		want string
	}{
		"When a controller has it, it should be named":           {metav1.ObjectMeta{OwnerReferences: controlledBy("Deployment", "web")}, "Deployment web"},
		"When another package has it, that should be named":      {metav1.ObjectMeta{OwnerReferences: controlledBy("ObjectSet", "other-1"), Labels: map[string]string{packagesv1.InstanceLabel: "other"}}, "Package other, by its ObjectSet other-1"},
		"When a revision without a package has it, it should be": {metav1.ObjectMeta{OwnerReferences: controlledBy("ObjectSet", "other-1")}, "ObjectSet other-1"},
		"When Helm made it, the release should be named":         {metav1.ObjectMeta{Annotations: map[string]string{"meta.helm.sh/release-name": "agent", "meta.helm.sh/release-namespace": "tools"}}, "Helm release tools/agent"},
		"When Argo CD made it, the application should be named":  {metav1.ObjectMeta{Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:a/b"}}, "Argo CD application shop"},
		"When a label says who manages it, they should be":       {metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": "kustomize"}}, "nobody controls it; its label says that kustomize manages it"},
		"When nobody has it, who wrote it first should be": {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "late", Time: &late}, {Manager: "kubectl-create", Time: &early}}},
			"nobody controls it; kubectl-create wrote it"},
		"When nothing is known, that should be said": {metav1.ObjectMeta{}, "nobody controls it"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ownerOf(&metav1.PartialObjectMetadata{ObjectMeta: c.meta})).To(Equal(c.want))
		})
	}
	t.Run("When a name means harm it should be on one line, and bounded", func(t *testing.T) {
		got := ownerOf(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": strings.Repeat("x\n\u202e", 5000)}}})
		g := NewWithT(t)
		g.Expect(got).NotTo(ContainSubstring("\n"))
		g.Expect(len(got)).To(BeNumerically("<", 4096))
	})
}

func TestRefuses(t *testing.T) {
	const message = "object a/web kind:Service: refusing adoption, object /v1, Kind=Service a/web not owned by previous revision, object /roles kind:ClusterRole: refusing adoption"
	for name, c := range map[string]struct {
		of   object
		want bool
	}{
		"When an object is named it should be in the way":        {object{Kind: "Service", Namespace: "a", Name: "web"}, true},
		"When it has no namespace it should be, too":             {object{Kind: "ClusterRole", Namespace: "a", Name: "roles"}, true},
		"When only the beginning of its name is it should not":   {object{Kind: "Service", Namespace: "a", Name: "we"}, false},
		"When it is of another kind it should not":               {object{Kind: "Deployment", Namespace: "a", Name: "web"}, false},
		"When it is of another namespace it should not":          {object{Kind: "Service", Namespace: "b", Name: "web"}, false},
		"When its name ends with the one that is, it should not": {object{Kind: "Service", Namespace: "a", Name: "my-web"}, false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(refuses(message, c.of)).To(Equal(c.want)) })
	}
}
