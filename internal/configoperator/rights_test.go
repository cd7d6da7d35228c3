package configoperator

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/testenv"
)

// The Role is another package's; what it is for is here.
func TestRights(t *testing.T) {
	g := NewWithT(t)
	env := testenv.Start(t)
	scheme, err := newScheme()
	g.Expect(err).NotTo(HaveOccurred())
	admin, ns := env.Client(t, scheme), env.Namespace(t)
	data, err := os.ReadFile("../controlplane/configoperator/assets/role.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.Role{}
	g.Expect(yaml.UnmarshalStrict(data, role)).To(Succeed())
	role.Namespace = ns
	g.Expect(admin.Create(t.Context(), role)).To(Succeed())
	g.Expect(admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "config-operator"}},
	})).To(Succeed())
	cfg := rest.CopyConfig(env.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "config-operator", Groups: []string{"system:authenticated"}}
	operator, err := ctrlclient.New(cfg, ctrlclient.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	object := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

	t.Run("When it notes how far a re-encryption is it should make, change and delete that ConfigMap", func(t *testing.T) {
		g := NewWithT(t)
		progress := func(text string) *corev1.ConfigMap {
			return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: object("secret-reencryption-progress"), Data: map[string]string{"x": text}}
		}
		for _, text := range []string{"1", "2"} {
			g.Eventually(func() error { return apply.New(operator, names.ConfigOperator).Apply(t.Context(), progress(text)) }).Should(Succeed()) // rights take a moment
		}
		g.Expect(operator.Delete(t.Context(), progress(""))).To(Succeed())
	})
	t.Run("When it looks around it should be let", func(t *testing.T) {
		g := NewWithT(t)
		for _, list := range []ctrlclient.ObjectList{&corev1.SecretList{}, &corev1.PodList{}, &hyperv1.HostedControlPlaneList{}, &clusterv1.MachineList{}, &clusterv1.MachineSetList{}} {
			g.Expect(operator.List(t.Context(), list, ctrlclient.InNamespace(ns))).To(Succeed(), "%T", list)
		}
		for _, o := range []ctrlclient.Object{&appsv1.Deployment{ObjectMeta: object("kube-apiserver")}, &corev1.ConfigMap{ObjectMeta: object("konnectivity-ca-bundle")}} {
			g.Expect(operator.Get(t.Context(), ctrlclient.ObjectKeyFromObject(o), o)).To(MatchError(apierrors.IsNotFound, "not found"), "%T", o)
		}
	})
	t.Run("When it marks a Machine it should be let, and not to delete it", func(t *testing.T) {
		g := NewWithT(t)
		m := &clusterv1.Machine{ObjectMeta: object("m-1")}
		err := operator.Patch(t.Context(), m, ctrlclient.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"a":"b"}}}`)))
		g.Expect(err).To(MatchError(apierrors.IsNotFound, "not found"))
		g.Expect(operator.Delete(t.Context(), m)).To(MatchError(apierrors.IsForbidden, "forbidden"))
	})
	t.Run("When it would change what isn't its own it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		forbidden := func(err error) { t.Helper(); g.Expect(err).To(MatchError(apierrors.IsForbidden, "forbidden")) }
		secret := &corev1.Secret{ObjectMeta: object("root-ca")}
		g.Expect(admin.Create(t.Context(), secret)).To(Succeed())
		forbidden(operator.Update(t.Context(), secret))
		forbidden(operator.Delete(t.Context(), secret))
		forbidden(operator.Create(t.Context(), &corev1.Secret{ObjectMeta: object("another")}))
		forbidden(operator.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: object("root-ca")}))
		forbidden(operator.Create(t.Context(), &corev1.Pod{ObjectMeta: object("p"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}))
		forbidden(operator.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: object("kube-apiserver")}))
	})
}
