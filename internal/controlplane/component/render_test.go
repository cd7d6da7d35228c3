package component

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/release"
)

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: web
        resources: {requests: {cpu: 10m}}
      volumes:
      - name: config
        configMap: {name: settings}
      - name: cert
        secret: {secretName: cert}
`

// folder is the assets of a component: a Deployment, and what else the test needs.
func folder(files map[string]string) fs.FS {
	all := fstest.MapFS{"assets/deployment.yaml": {Data: []byte(deploymentYAML)}}
	for name, content := range files {
		all["assets/"+name] = &fstest.MapFile{Data: []byte(content)}
	}
	return all
}

func contextOf(t testing.TB, mutate func(*hyperv1.HostedControlPlane), objs ...client.Object) WorkloadContext {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, hyperv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", UID: "1", Annotations: map[string]string{}}}
	hcp.Spec.Platform.Type = hyperv1.NonePlatform
	hcp.Spec.ControllerAvailabilityPolicy = hyperv1.SingleReplica
	hcp.Spec.ReleaseImage = "release:1"
	hcp.Spec.IssuerURL = "https://issuer"
	if mutate != nil {
		mutate(hcp)
	}
	return WorkloadContext{
		Context: t.Context(), HCP: hcp, Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build(),
		Release: &release.Release{Kubernetes: true, Version: "1.36.3", Image: "release:1", Images: map[string]string{"web": "registry/web:1", "controlplane-operator": "registry/hcp:1"}},
	}
}

func deploymentOf(t testing.TB, c *WorkloadComponent, ctx WorkloadContext) *appsv1.Deployment {
	t.Helper()
	out, err := c.Render(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return out.Workload.(*appsv1.Deployment)
}

func highlyAvailable(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
}

func annotate(key, value string) func(*hyperv1.HostedControlPlane) {
	return func(hcp *hyperv1.HostedControlPlane) { hcp.Annotations[key] = value }
}

func both(fs ...func(*hyperv1.HostedControlPlane)) func(*hyperv1.HostedControlPlane) {
	return func(hcp *hyperv1.HostedControlPlane) {
		for _, f := range fs {
			f(hcp)
		}
	}
}

func TestConfigHash(t *testing.T) {
	settings := func(value string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "settings"}, Data: map[string]string{"a": value, "b": "fixed"}}
	}
	cert := func(value string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cert"}, Data: map[string][]byte{"tls.crt": []byte(value)}}
	}
	hash := func(t *testing.T, b *Builder[*appsv1.Deployment], objs ...client.Object) string {
		return deploymentOf(t, b.Build(), contextOf(t, nil, objs...)).Spec.Template.Annotations[ConfigHashAnnotation]
	}
	plain := func() *Builder[*appsv1.Deployment] { return NewDeploymentComponent("web", folder(nil), Options{}) }
	base := hash(t, plain(), settings("1"), cert("1"))

	t.Run("When nothing changes it should stay", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(base).To(HaveLen(64))
		g.Expect(hash(t, plain(), cert("1"), settings("1"))).To(Equal(base))
	})
	t.Run("When a mounted object changes it should change", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(hash(t, plain(), settings("2"), cert("1"))).NotTo(Equal(base))
		g.Expect(hash(t, plain(), settings("1"), cert("2"))).NotTo(Equal(base))
		g.Expect(hash(t, plain(), settings("1"))).NotTo(Equal(base), "an absent object counts as empty")
	})
	t.Run("When the program reads the files again it should stay", func(t *testing.T) {
		g := NewWithT(t)
		reloading := func() *Builder[*appsv1.Deployment] { return plain().ReloadsFilesOf("cert") }
		g.Expect(hash(t, reloading(), settings("1"), cert("2"))).To(Equal(hash(t, reloading(), settings("1"), cert("1"))))
		g.Expect(hash(t, reloading(), settings("2"), cert("1"))).NotTo(Equal(hash(t, reloading(), settings("1"), cert("1"))))
	})
	t.Run("When only some keys are mounted it should look at no others", func(t *testing.T) {
		g := NewWithT(t)
		some := func() *Builder[*appsv1.Deployment] {
			return plain().WithAdaptFunction(func(_ WorkloadContext, d *appsv1.Deployment) error {
				d.Spec.Template.Spec.Volumes[0].ConfigMap.Items = []corev1.KeyToPath{{Key: "b", Path: "b"}}
				return nil
			})
		}
		g.Expect(hash(t, some(), settings("2"), cert("1"))).To(Equal(hash(t, some(), settings("1"), cert("1"))))
	})
	t.Run("When the component makes the object itself it should hash what it makes and not what was there", func(t *testing.T) {
		g := NewWithT(t)
		making := func() *Builder[*appsv1.Deployment] {
			return NewDeploymentComponent("web", folder(map[string]string{
				"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: made}\n",
			}), Options{})
		}
		g.Expect(hash(t, making())).To(Equal(hash(t, making(), settings("old"))), "or creating it would restart the pods")
	})
	t.Run("When a pod of a payload reads nothing that is there it should bear an empty hash", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, nil)
		ctx.Release.Kubernetes = false
		annotations := deploymentOf(t, plain().Build(), ctx).Spec.Template.Annotations
		g.Expect(annotations).To(HaveKeyWithValue(ConfigHashAnnotation, ""))
	})
	t.Run("When it is the CA bundle of clients it should never count", func(t *testing.T) {
		pod := &corev1.PodSpec{Volumes: []corev1.Volume{ConfigMapVolume("ca", clientCA), ConfigMapVolume("x", "x")}}
		NewWithT(t).Expect(configRefs(pod, func(string) bool { return false })).To(HaveLen(1))
	})
}

func TestManifests(t *testing.T) {
	files := map[string]string{
		"pdb.yaml":            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n",
		"serviceaccount.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n",
		"monitor.yaml":        "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: web}\n",
		"rolebinding.yaml":    "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: web}\nroleRef: {kind: Role, name: web}\nsubjects: [{kind: ServiceAccount, name: web}, {kind: User, name: u}]\n",
	}
	namesOf := func(objs []client.Object) []string {
		var kinds []string
		for _, o := range objs {
			kinds = append(kinds, o.GetObjectKind().GroupVersionKind().Kind)
		}
		return kinds
	}
	available := func(hcp *hyperv1.HostedControlPlane) {
		hcp.Status.Conditions = []metav1.Condition{{Type: clusterVersionAvailable, Status: metav1.ConditionTrue}}
	}
	for name, tc := range map[string]struct {
		options  []ManifestOption // of pdb.yaml
		hcp      func(*hyperv1.HostedControlPlane)
		monitors bool
		want     []string
		unwanted []string
		err      string
	}{
		"When nothing is said it should make everything but monitors":                         {want: []string{"PodDisruptionBudget", "RoleBinding", "ServiceAccount"}},
		"When monitors are served but the cluster was never complete it should not make them": {monitors: true, want: []string{"PodDisruptionBudget", "RoleBinding", "ServiceAccount"}},
		"When monitors are served and the cluster was complete it should make them":           {monitors: true, hcp: available, want: []string{"ServiceMonitor", "PodDisruptionBudget", "RoleBinding", "ServiceAccount"}},
		"When a manifest is skipped it should neither make nor delete it":                     {options: []ManifestOption{SkipManifest()}, want: []string{"RoleBinding", "ServiceAccount"}},
		"When an annotation disables it it should be deleted":                                 {options: []ManifestOption{DisableIfAnnotationExist("off")}, hcp: annotate("off", ""), want: []string{"RoleBinding", "ServiceAccount"}, unwanted: []string{"PodDisruptionBudget"}},
		"When it is for another platform it should be deleted":                                {options: []ManifestOption{EnableForPlatform(hyperv1.AWSPlatform)}, want: []string{"RoleBinding", "ServiceAccount"}, unwanted: []string{"PodDisruptionBudget"}},
		"When one of two predicates does not hold it should be deleted":                       {options: []ManifestOption{EnableForPlatform(hyperv1.NonePlatform), DisableIfAnnotationExist("off")}, hcp: annotate("off", ""), want: []string{"RoleBinding", "ServiceAccount"}, unwanted: []string{"PodDisruptionBudget"}},
		"When a predicate fails it should say in which file":                                  {options: []ManifestOption{When(func(WorkloadContext) (bool, error) { return false, errors.New("cannot tell") })}, err: "pdb.yaml: cannot tell"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := NewDeploymentComponent("web", folder(files), Options{})
			b.WithManifestAdapter("pdb.yaml", tc.options...)
			ctx := contextOf(t, tc.hcp)
			ctx.Capabilities = served(tc.monitors)
			out, err := b.Build().Render(ctx)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(namesOf(out.Manifests)).To(Equal(tc.want))
			g.Expect(namesOf(out.Unwanted)).To(Equal(tc.unwanted))
			for _, obj := range out.Manifests {
				g.Expect(obj.GetNamespace()).To(Equal("ns"))
				g.Expect(metav1.IsControlledBy(obj, ctx.HCP)).To(BeTrue())
			}
		})
	}

	t.Run("When monitors are switched off it should not report one among the resources", func(t *testing.T) {
		g := NewWithT(t)
		kinds := func(mutate func(*hyperv1.HostedControlPlane)) (all []string) {
			ctx := contextOf(t, mutate)
			ctx.Capabilities = served(true)
			list, err := NewDeploymentComponent("web", folder(files), Options{}).Build().resources(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			for _, r := range list {
				all = append(all, r.Kind)
			}
			return all
		}
		g.Expect(kinds(nil)).To(Equal([]string{"ServiceMonitor", "PodDisruptionBudget", "RoleBinding", "ServiceAccount"}), "also before they are written")
		g.Expect(kinds(annotate(hyperv1.DisableMonitoringServices, ""))).To(Equal([]string{"PodDisruptionBudget", "RoleBinding", "ServiceAccount"}))
	})
	t.Run("When others gave a ServiceAccount pull secrets it should keep them", func(t *testing.T) {
		g := NewWithT(t)
		live := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "theirs"}}}
		out, err := NewDeploymentComponent("web", folder(files), Options{}).Build().Render(contextOf(t, nil, live))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out.Manifests[2].(*corev1.ServiceAccount).ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "theirs"}, {Name: names.PullSecret}}))
	})
	t.Run("When it is highly available a PodDisruptionBudget should let one pod go", func(t *testing.T) {
		g := NewWithT(t)
		c := NewDeploymentComponent("web", folder(files), Options{}).WithManifestAdapter("pdb.yaml", AdaptPodDisruptionBudget()).Build()
		for _, tc := range []struct {
			hcp             func(*hyperv1.HostedControlPlane)
			least, mostLost int
		}{{nil, 1, -1}, {highlyAvailable, -1, 1}} {
			out, err := c.Render(contextOf(t, tc.hcp))
			g.Expect(err).NotTo(HaveOccurred())
			pdb := out.Manifests[0].(*policyv1.PodDisruptionBudget)
			if tc.least > 0 {
				g.Expect(pdb.Spec.MinAvailable.IntValue()).To(Equal(tc.least))
				g.Expect(pdb.Spec.MaxUnavailable).To(BeNil())
			} else {
				g.Expect(pdb.Spec.MaxUnavailable.IntValue()).To(Equal(tc.mostLost))
				g.Expect(pdb.Spec.MinAvailable).To(BeNil())
			}
			g.Expect(pdb.Spec.UnhealthyPodEvictionPolicy).To(HaveValue(Equal(policyv1.AlwaysAllow)))
		}
	})
}

// served is a management cluster that has the kinds of other projects, or has not.
type served bool

func (s served) Accessible(context.Context, schema.GroupVersionKind) (bool, error) {
	return bool(s), nil
}

func TestImages(t *testing.T) {
	for name, tc := range map[string]struct{ image, want, err, policy string }{
		"When it is a tag of the release it should be its image":            {image: "web", want: "registry/web:1"},
		"When it is a part of our own image it should be our own image":     {image: "token-minter", want: "registry/hcp:1"},
		"When it is the version operator it should be the release itself":   {image: "cluster-version-operator", want: "release:1"},
		"When it is a pull spec already it should stay":                     {image: "quay.io/x/y@sha256:0", want: "quay.io/x/y@sha256:0"},
		"When it is the newest of something it should be pulled every time": {image: "quay.io/x/y:latest", want: "quay.io/x/y:latest", policy: "Always"},
		"When the release does not have it it should say what to do":        {image: "unheard-of", err: `no image for "unheard-of" (container main): use a release that has it`},
		"When there is none it should be an error":                          {image: "", err: `no image for ""`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := NewDeploymentComponent("web", folder(nil), Options{}).WithAdaptFunction(func(_ WorkloadContext, d *appsv1.Deployment) error {
				d.Spec.Template.Spec.Containers[0].Image = tc.image
				return nil
			}).Build()
			out, err := c.Render(contextOf(t, nil))
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			main := podTemplate(out.Workload).Spec.Containers[0]
			g.Expect(main.Image).To(Equal(tc.want))
			if tc.policy == "" {
				tc.policy = "IfNotPresent"
			}
			g.Expect(main.ImagePullPolicy).To(BeEquivalentTo(tc.policy))
		})
	}
}

func TestBuildPanics(t *testing.T) {
	for name, build := range map[string]func(){
		"When a component has no name it should panic":         func() { NewDeploymentComponent("", folder(nil), Options{}).Build() },
		"When the workload is of another kind it should panic": func() { NewStatefulSetComponent("web", folder(nil), Options{}).Build() },
		"When an adapter names no file it should panic": func() {
			NewDeploymentComponent("web", folder(nil), Options{}).WithManifestAdapter("absent.yaml").Build()
		},
		"When a manifest has a field that does not exist it should panic": func() {
			NewDeploymentComponent("web", folder(map[string]string{"x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndatum: {}\n"}), Options{}).Build()
		},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(build).To(Panic()) })
	}
}
