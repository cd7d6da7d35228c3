package acceptance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/process"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/control/metrics"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
	"hcp.internal/platform/internal/packages/engine/scope"
	"hcp.internal/platform/internal/packages/engine/status"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

// shelf has the files of images.
type shelf map[string]load.Files

func (s shelf) Ask(_ context.Context, _ client.ObjectKey, image string) (images.Pulled, error) {
	if files, ok := s[image]; ok {
		return images.Pulled{Files: files, Digest: digestOf(files)}, nil
	}
	return images.Pulled{}, fmt.Errorf("%s: not found", image)
}

// digestOf is another one for files of other names.
func digestOf(files load.Files) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(files)), "/"))))
}

// server is an environment: the version of the API server.
type server string

func (s server) Get(context.Context, string) (manifests.PackageEnvironment, error) {
	return manifests.PackageEnvironment{Kubernetes: manifests.PackageEnvironmentKubernetes{Version: string(s)}}, nil
}

type nothingWatched struct{}

func (nothingWatched) Kinds() []schema.GroupVersionKind                   { return nil }
func (nothingWatched) Count(context.Context, schema.GroupVersionKind) int { return 0 }

// reconcile makes a fresh reconciler and calls it until a package has settled.
func reconcile(ctx context.Context, c client.WithWatch, mapper meta.RESTMapper, images packagecontroller.Puller, key client.ObjectKey) error {
	return reconcileWith(ctx, c, mapper, images, "v1.36.3", key)
}

func reconcileWith(ctx context.Context, c client.WithWatch, mapper meta.RESTMapper, images packagecontroller.Puller, environment server, key client.ObjectKey) error {
	s := scope.Namespaced
	recorder, err := metrics.New(prometheus.NewRegistry(), nothingWatched{})
	if err != nil {
		return err
	}
	r := &packagecontroller.Reconciler{
		Scope: s, Client: c, Live: testenv.Uncached(c), Mapper: mapper, Clock: clock.RealClock{}, Puller: images, Environments: environment, Metrics: recorder,
		Status:      &status.Writer{Client: c, Kind: s.GroupVersionKind("Package")},
		Deployments: &status.Writer{Client: c, Kind: s.GroupVersionKind("ObjectDeployment")},
	}
	for range 4 {
		if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
			return err
		}
	}
	return nil
}

// files is a package of ConfigMaps.
func files(names ...string) load.Files {
	out := load.Files{"manifest.yaml": manifest("web", "")}
	for _, name := range names {
		out[name+".yaml"] = []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  annotations: {package-operator.run/phase: a}\n")
	}
	return out
}

// TestCrashOfPackages interrupts the installation, the change and the repair of a package whose objects are in slices at each write.
func TestCrashOfPackages(t *testing.T) {
	w := packagestest.Serve(t)
	httpClient, err := rest.HTTPClientFor(w.Env.Config)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := process.NewMapper(w.Env.Config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	images := shelf{"web:v1": files("one", "two"), "web:v2": files("two", "three", "four")}
	prepare := func(t testing.TB) client.ObjectKey {
		p := &v1alpha1.Package{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace(t), Name: "web", Annotations: map[string]string{v1alpha1.ChunkingStrategyAnnotation: "EachObject"}},
			Spec:       v1alpha1.PackageSpec{Image: "web:v1"},
		}
		NewWithT(t).Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		return client.ObjectKeyFromObject(p)
	}
	change := func(t testing.TB, key client.ObjectKey) {
		p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		g := NewWithT(t)
		g.Expect(reconcile(t.Context(), w.Client, kinds, images, key)).To(Succeed())
		g.Expect(w.Client.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"image":"web:v2"}}`)))).To(Succeed())
	}
	remove := func(t testing.TB, key client.ObjectKey) {
		g := NewWithT(t)
		g.Expect(reconcile(t.Context(), w.Client, kinds, images, key)).To(Succeed())
		od := &v1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		g.Expect(w.Client.Delete(t.Context(), od)).To(Succeed())
		w.Gone(t, od)
		g.Eventually(func(g Gomega) {
			list := &v1alpha1.ObjectSliceList{}
			g.Expect(w.Client.List(t.Context(), list, client.InNamespace(key.Namespace))).To(Succeed())
			g.Expect(list.Items).To(BeEmpty())
		}, packagestest.Timeout).Should(Succeed(), "the slices of a deployment should go with it")
	}
	check := func(t testing.TB, key client.ObjectKey, revision string, names ...string) {
		g := NewWithT(t)
		p, od := &v1alpha1.Package{}, &v1alpha1.ObjectDeployment{}
		g.Expect(w.Client.Get(t.Context(), key, p)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(p.Status.Conditions, "Unpacked")).To(BeTrue())
		g.Expect(meta.FindStatusCondition(p.Status.Conditions, "Invalid")).To(BeNil())
		g.Expect(p.Status.UnpackedHash).NotTo(BeEmpty())
		g.Expect(p.Finalizers).To(ConsistOf(v1alpha1.MetricsFinalizer))
		g.Expect(w.Client.Get(t.Context(), key, od)).To(Succeed())
		g.Expect(metav1.IsControlledBy(od, p)).To(BeTrue())
		g.Expect(od.Annotations).To(HaveKeyWithValue(v1alpha1.PackageSourceImageAnnotation, "web:"+revision))
		g.Expect(od.Spec.Template.Spec.Phases).NotTo(BeEmpty(), "the deployment should have what the package gives")
		var have, used []string
		for _, name := range od.Spec.Template.Spec.Phases[0].Slices {
			slice := &v1alpha1.ObjectSlice{}
			g.Expect(w.Client.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: name}, slice)).To(Succeed())
			have, used = append(have, slice.Objects[0].Object.GetName()), append(used, name)
		}
		g.Expect(have).To(ConsistOf(names))
		list := &v1alpha1.ObjectSliceList{}
		g.Expect(w.Client.List(t.Context(), list, client.InNamespace(key.Namespace))).To(Succeed())
		var there []string
		for i := range list.Items {
			there = append(there, list.Items[i].Name)
		}
		g.Expect(there).To(ConsistOf(used), "slices that nobody uses are removed")
	}
	t.Run("install", func(t *testing.T) {
		fresh := func(t testing.TB) testenv.CrashCase {
			key := prepare(t)
			return testenv.CrashCase{
				Client: w.Client,
				Run:    func(c client.WithWatch) error { return reconcile(t.Context(), c, kinds, images, key) },
				Check:  func(t testing.TB) { check(t, key, "v1", "one", "two") },
			}
		}
		testenv.CrashAtEveryWrite(t, 1, fresh)
		testenv.Storm(t, 2, fresh)
	})
	t.Run("change", func(t *testing.T) {
		fresh := func(t testing.TB) testenv.CrashCase {
			key := prepare(t)
			change(t, key)
			return testenv.CrashCase{
				Client: w.Client,
				Run:    func(c client.WithWatch) error { return reconcile(t.Context(), c, kinds, images, key) },
				Check:  func(t testing.TB) { check(t, key, "v2", "two", "three", "four") },
			}
		}
		testenv.CrashAtEveryWrite(t, 1, fresh)
		testenv.Storm(t, 2, fresh)
	})
	t.Run("repair", func(t *testing.T) {
		fresh := func(t testing.TB) testenv.CrashCase {
			key := prepare(t)
			remove(t, key)
			return testenv.CrashCase{
				Client: w.Client,
				Run:    func(c client.WithWatch) error { return reconcile(t.Context(), c, kinds, images, key) },
				Check:  func(t testing.TB) { check(t, key, "v1", "one", "two") },
			}
		}
		testenv.CrashAtEveryWrite(t, 1, fresh)
		testenv.Storm(t, 2, fresh)
	})
	t.Run("When nothing changes it should write nothing, also after a restart", func(t *testing.T) {
		key := prepare(t)
		NewWithT(t).Expect(reconcile(t.Context(), w.Client, kinds, images, key)).To(Succeed())
		testenv.ExpectQuiet(t, w.Client, func(c client.WithWatch) error { return reconcile(t.Context(), c, kinds, images, key) })
	})
}
