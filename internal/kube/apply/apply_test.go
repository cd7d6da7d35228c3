package apply_test

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func newScheme(t testing.TB) *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func deployment(ns string, mutate ...func(*appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web", Labels: map[string]string{"team": "a"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "web:1",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")}},
				}}},
			},
		},
	}
	for _, m := range mutate {
		m(d)
	}
	return d
}

func TestApply(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, newScheme(t))

	for name, tc := range map[string]struct {
		// between happens after the first apply.
		between func(t *testing.T, live *appsv1.Deployment)
		second  func(*appsv1.Deployment)
		writes  int
		check   func(g Gomega, live *appsv1.Deployment)
	}{
		"When nothing changed it should send nothing": {},
		"When somebody else sets a field that we do not ask for it should leave it alone": {
			between: func(t *testing.T, live *appsv1.Deployment) {
				live.Annotations["theirs"] = "x"
				live.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"}
			},
			check: func(g Gomega, live *appsv1.Deployment) {
				g.Expect(live.Spec.Template.Spec.NodeSelector).To(HaveKeyWithValue("zone", "a"))
			},
		},
		"When somebody else changes a field of ours it should set it back": {
			between: func(t *testing.T, live *appsv1.Deployment) { live.Spec.Template.Spec.Containers[0].Image = "evil:1" },
			writes:  1,
			check: func(g Gomega, live *appsv1.Deployment) {
				g.Expect(live.Spec.Template.Spec.Containers[0].Image).To(Equal("web:1"))
			},
		},
		"When a label is no longer asked for it should remove it": {
			second: func(d *appsv1.Deployment) { d.Labels = nil },
			writes: 1,
			check:  func(g Gomega, live *appsv1.Deployment) { g.Expect(live.Labels).NotTo(HaveKey("team")) },
		},
		"When a zero is asked for and somebody scales up it should go back to zero": {
			between: func(t *testing.T, live *appsv1.Deployment) { live.Spec.Replicas = ptr.To[int32](3) },
			writes:  1,
			check:   func(g Gomega, live *appsv1.Deployment) { g.Expect(live.Spec.Replicas).To(HaveValue(BeZero())) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ns := env.Namespace(t)
			g.Expect(apply.New(c, "test").Apply(t.Context(), deployment(ns))).To(Succeed())
			live := &appsv1.Deployment{}
			key := client.ObjectKey{Namespace: ns, Name: "web"}
			g.Expect(c.Get(t.Context(), key, live)).To(Succeed())
			if tc.between != nil {
				tc.between(t, live)
				g.Expect(c.Update(t.Context(), live, client.FieldOwner("somebody"))).To(Succeed())
			}
			counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
			desired := deployment(ns)
			if tc.second != nil {
				tc.second(desired)
			}
			g.Expect(apply.New(counting, "test").Apply(t.Context(), desired)).To(Succeed())
			g.Expect(counting.Writes()).To(Equal(tc.writes), "write requests of the second apply")
			g.Expect(c.Get(t.Context(), key, live)).To(Succeed())
			if tc.check != nil {
				tc.check(g, live)
			}
		})
	}
}

func TestApplyIgnoresStatus(t *testing.T) {
	t.Run("When a controller counts in the status it should not write again", func(t *testing.T) {
		g := NewWithT(t)
		env := testenv.Start(t)
		c := env.Client(t, newScheme(t))
		pdb := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "web"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))},
		}
		g.Expect(apply.New(c, "test").Apply(t.Context(), pdb)).To(Succeed())
		live := &policyv1.PodDisruptionBudget{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(pdb), live)).To(Succeed())
		live.Status.ExpectedPods, live.Status.CurrentHealthy = 3, 2
		g.Expect(c.Status().Update(t.Context(), live)).To(Succeed())
		counting := testenv.NewFaultClient(c, testenv.FailWrite, 0)
		g.Expect(apply.New(counting, "test").Apply(t.Context(), pdb)).To(Succeed())
		g.Expect(counting.Writes()).To(BeZero())
	})
}

func TestApplyLocked(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, newScheme(t))
	applier := apply.New(c, "test")
	secret := func(ns, version, value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "keys", ResourceVersion: version}, Data: map[string][]byte{"k": []byte(value)}}
	}
	live := func(t *testing.T, ns string) *corev1.Secret {
		s := &corev1.Secret{}
		NewWithT(t).Expect(c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "keys"}, s)).To(Succeed())
		return s
	}
	t.Run("When nothing was there it should create, once", func(t *testing.T) {
		g := NewWithT(t)
		ns := env.Namespace(t)
		g.Expect(applier.ApplyLocked(t.Context(), secret(ns, "", "a"))).To(Succeed())
		g.Expect(apierrors.IsConflict(applier.ApplyLocked(t.Context(), secret(ns, "", "b")))).To(BeTrue())
		g.Expect(live(t, ns).Data).To(HaveKeyWithValue("k", []byte("a")))
	})
	t.Run("When the object is another one by now it should leave it", func(t *testing.T) {
		g := NewWithT(t)
		ns := env.Namespace(t)
		g.Expect(applier.ApplyLocked(t.Context(), secret(ns, "", "a"))).To(Succeed())
		seen := live(t, ns).ResourceVersion
		g.Expect(applier.ApplyLocked(t.Context(), secret(ns, seen, "b"))).To(Succeed())
		g.Expect(apierrors.IsConflict(applier.ApplyLocked(t.Context(), secret(ns, seen, "c")))).To(BeTrue())
		g.Expect(live(t, ns).Data).To(HaveKeyWithValue("k", []byte("b")))
	})
}

func TestDelete(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, newScheme(t))
	applier := apply.New(c, "test")

	t.Run("When the object is not there it should succeed", func(t *testing.T) {
		NewWithT(t).Expect(applier.Delete(t.Context(), deployment(env.Namespace(t)))).To(Succeed())
	})
	t.Run("When only the metadata is known it should delete the object, too", func(t *testing.T) {
		g := NewWithT(t)
		d := deployment(env.Namespace(t))
		g.Expect(applier.Apply(t.Context(), d)).To(Succeed())
		known := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
		known.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		g.Expect(applier.Delete(t.Context(), known)).To(Succeed())
		g.Expect(apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(d), &appsv1.Deployment{}))).To(BeTrue())
	})
	t.Run("When a successor of the same name has taken its place it should leave the successor", func(t *testing.T) {
		g := NewWithT(t)
		ns := env.Namespace(t)
		g.Expect(applier.Apply(t.Context(), deployment(ns))).To(Succeed())
		old := deployment(ns)
		old.UID = "00000000-0000-0000-0000-000000000000"
		g.Expect(applier.Delete(t.Context(), old)).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(old), &appsv1.Deployment{})).To(Succeed())
	})
}
