package kubectlpackage

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/clitest"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
	"hcp.internal/platform/internal/packages/packagestest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// installed is a cluster with packages, for the commands that look at one.
type installed struct {
	*packagestest.World
	registry   *packagestest.Registry
	kubeconfig string
	// shop is the namespace of the packages, site the ClusterPackage. Golden files call them "shop" and "shop-site".
	shop, site string
}

func newInstalled(t *testing.T) installed {
	t.Helper()
	w := installed{World: packagestest.Start(t, packagecontroller.Extend), registry: packagestest.NewRegistry(t), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := os.WriteFile(w.kubeconfig, w.Env.Kubeconfig(t), 0o600); err != nil {
		t.Fatal(err)
	}
	w.shop = w.Namespace(t)
	w.site = w.shop + "-site"
	return w
}

// run runs a command on the cluster.
func (w installed) run(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, nil, append(args, "--kubeconfig", w.kubeconfig)...)
}

// split runs a command on the cluster and tells apart its result and what it says meanwhile.
func (w installed) split(t *testing.T, args ...string) (out, said string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := Command(Options{Now: func() time.Time { return noon }, Getenv: func(string) string { return "" }, PollInterval: 10 * time.Millisecond})
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append(args, "--kubeconfig", w.kubeconfig))
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// changing is what differs from one run to the next.
var changing = []struct {
	find *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "REGISTRY"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`(resourceVersion"?: )"\d+"`), `$1"VERSION"`},
	{regexp.MustCompile(`(generation"?: )\d+`), `${1}N`},
	{regexp.MustCompile(`(observedGeneration"?: )\d+`), `${1}N`},
	{regexp.MustCompile(`(package-operator.run/hash"?: )"?[a-z0-9]+"?`), `${1}"HASH"`},
	{regexp.MustCompile(`(name"?: "?web)-[a-z0-9]+`), `${1}-HASH`},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "DIGEST"},
	// Who wrote what when, whose list is the API server's.
	{regexp.MustCompile(`(?s)\n  managedFields:.*?\n  name:`), "\n  managedFields: FIELDS\n  name:"},
	{regexp.MustCompile(`(?s)"managedFields": \[.*?\n        \]`), `"managedFields": "FIELDS"`},
}

// golden compares what a command prints with testdata.
func (w installed) golden(t *testing.T, file string, args ...string) {
	t.Helper()
	got := strings.ReplaceAll(w.run(t, args...), w.shop, "shop")
	for _, c := range changing {
		got = c.find.ReplaceAllString(got, c.as)
	}
	clitest.Golden(t, filepath.Join("installed", file), got)
}

// publish pushes a package of one ConfigMap in each of two phases. A ConfigMap is available when its annotation has its name.
func (w installed) publish(t *testing.T, tag, color, probed string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "web")
	write(t, dir, "manifest.yaml", `apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifest
metadata: {name: web}
spec:
  scopes: [Namespaced, Cluster]
  phases: [{name: config}, {name: deploy}]
  availabilityProbes:
  - selector: {kind: {group: "", kind: ConfigMap}}
    probes: [{fieldsEqual: {fieldA: .metadata.name, fieldB: .metadata.annotations.name}}]
`)
	for phase, name := range map[string]string{"config": "colors", "deploy": "site"} {
		write(t, dir, name+".yaml.gotmpl", `apiVersion: v1
kind: ConfigMap
metadata:
  name: `+name+`-{{ .package.metadata.name }}
  namespace: `+w.shop+`
  annotations: {package-operator.run/phase: `+phase+`, name: '`+strings.ReplaceAll(probed, "NAME", name+"-{{ .package.metadata.name }}")+`'}
data: {color: `+color+`}
`)
	}
	image := w.registry.Host + "/web:" + tag
	NewWithT(t).Expect(run(t, nil, "build", dir, "--tag", image, "--push")).To(Equal("Package built successfully!"))
	return image
}

func (w installed) install(t *testing.T, namespace, name, image string) {
	t.Helper()
	p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.PackageSpec{Image: image}}
	obj := client.Object(p)
	if namespace == "" {
		obj = (*v1alpha1.ClusterPackage)(p)
	}
	NewWithT(t).Expect(w.Client.Create(t.Context(), obj)).To(Succeed())
}

func (w installed) change(t *testing.T, namespace, name, image string) {
	t.Helper()
	p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	obj := client.Object(p)
	if namespace == "" {
		obj = (*v1alpha1.ClusterPackage)(p)
	}
	data := []byte(`{"spec":{"image":"` + image + `"}}`)
	NewWithT(t).Expect(w.Client.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", data))).To(Succeed())
}

// TestInstalled is one test with ordered steps, since they tell the story of the same packages.
func TestInstalled(t *testing.T) {
	w := newInstalled(t)
	first, second := w.publish(t, "v1", "red", "NAME"), w.publish(t, "v2", "blue", "NAME")
	broken := w.publish(t, "v3", "green", "never")
	w.install(t, w.shop, "web", first)
	w.install(t, "", w.site, first)

	t.Run("When a rollout is followed it should wait for its end", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(w.run(t, "rollout", "status", "package/web", "-n", w.shop)).To(HaveSuffix("package web successfully rolled out, revision 1\n"))
		g.Expect(w.run(t, "rollout", "status", "clusterpackage", w.site)).To(HaveSuffix("clusterpackage " + w.site + " successfully rolled out, revision 1\n"))
		w.golden(t, "status-package.txt", "rollout", "status", "package/web", "-n", w.shop)
		w.golden(t, "status-plural.txt", "rollout", "status", "packages", "web", "-n", w.shop, "--watch=false")
		w.golden(t, "status-deployment.txt", "rollout", "status", "objectdeployment/web", "-n", w.shop)
		w.golden(t, "status-clusterdeployment.txt", "rollout", "status", "cod/"+w.site)
		w.golden(t, "status-missing.txt", "rollout", "status", "package/none", "-n", w.shop)
		w.golden(t, "status-type.txt", "rollout", "status", "pod/web", "-n", w.shop)
	})
	t.Run("When a package is installed its tree should show what it has", func(t *testing.T) {
		g := NewWithT(t)
		w.golden(t, "clustertree-package.txt", "clustertree", "package/web", "-n", w.shop)
		g.Expect(w.run(t, "clustertree", "Package", "web", "-n", w.shop)).To(Equal(w.run(t, "clustertree", "package/web", "-n", w.shop)))
		w.golden(t, "clustertree-clusterpackage.txt", "clustertree", "clusterpackage", w.site)
		alone := &v1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.shop, Name: "alone-1", Labels: map[string]string{"by": "hand"}}, Spec: v1alpha1.ObjectSetSpec{
			ObjectSetTemplateSpec: v1alpha1.ObjectSetTemplateSpec{Phases: []v1alpha1.ObjectSetTemplatePhase{{Name: "only"}}}}}
		g.Expect(w.Client.Create(t.Context(), alone)).To(Succeed())
		g.Eventually(func() string { return w.run(t, "clustertree", "package/alone", "-n", w.shop) }, packagestest.Timeout).Should(
			Equal("Package /alone\nnamespace/"+w.shop+"\n└── Phase only\n"), "revisions without a package are found by name, as published")
		w.golden(t, "clustertree-missing.txt", "clustertree", "package/none", "-n", w.shop)
		w.golden(t, "clustertree-deployment.txt", "clustertree", "objectdeployment/web", "-n", w.shop)
	})
	t.Run("When a tab is pressed it should offer resources, and then what there is", func(t *testing.T) {
		g := NewWithT(t)
		complete := func(args ...string) string {
			return run(t, nil, append([]string{"__complete", "--kubeconfig", w.kubeconfig}, args...)...)
		}
		g.Expect(complete("pause", "")).To(HavePrefix("clusterpackage/\npackage/\n:6"))
		g.Expect(complete("clustertree", "-n", w.shop, "package/")).To(HavePrefix("package/web\n:4"))
		g.Expect(complete("rollout", "status", "objectdeployment", "-n", w.shop, "")).To(HavePrefix("web\n:4"))
		g.Expect(complete("rollout", "history", "clusterpackage/")).To(ContainSubstring("clusterpackage/" + w.site + "\n"))
		g.Expect(complete("rollout", "status", "hostedclusterpackage/")).To(ContainSubstring(":4"))
		g.Expect(complete("pause", "pod/")).To(HavePrefix(":4"))
	})
	t.Run("When an image changes history should say so", func(t *testing.T) {
		g := NewWithT(t)
		w.change(t, w.shop, "web", second)
		w.change(t, "", w.site, second)
		g.Expect(w.run(t, "rollout", "status", "package/web", "-n", w.shop)).To(HaveSuffix("package web successfully rolled out, revision 2\n"))
		g.Expect(w.run(t, "rollout", "status", "clusterpackage/"+w.site)).To(HaveSuffix("clusterpackage " + w.site + " successfully rolled out, revision 2\n"))
		// The old revision is archived a moment later; its status is part of what history prints.
		for namespace, set := range map[string]client.ObjectList{w.shop: &v1alpha1.ObjectSetList{}, "": &v1alpha1.ClusterObjectSetList{}} {
			name := map[string]string{w.shop: "web", "": w.site}[namespace]
			g.Eventually(func() string {
				g.Expect(w.Client.List(t.Context(), set, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.InstanceLabel: name})).To(Succeed())
				raw, _ := json.Marshal(set)
				return string(raw)
			}, packagestest.Timeout).Should(ContainSubstring(`"type":"Archived","status":"True"`))
		}
		w.golden(t, "history-package.txt", "rollout", "history", "package/web", "-n", w.shop)
		w.golden(t, "history-clusterpackage.txt", "rollout", "history", "clusterpackage", w.site)
		w.golden(t, "history-deployment.txt", "rollout", "history", "objectdeployment/web", "-n", w.shop)
		w.golden(t, "history-clusterdeployment.txt", "rollout", "history", "clusterobjectdeployment/"+w.site)
		w.golden(t, "history-revision.yaml", "rollout", "history", "package/web", "-n", w.shop, "--revision", "1")
		w.golden(t, "history-revision.json", "rollout", "history", "package/web", "-n", w.shop, "--revision", "1", "-o", "json")
		w.golden(t, "history-no-revision.txt", "rollout", "history", "package/web", "-n", w.shop, "--revision", "7")
		w.golden(t, "history-missing.txt", "rollout", "history", "package/none", "-n", w.shop)
		g.Expect(w.run(t, "rollout", "history", "package", w.site)).To(Equal(w.run(t, "rollout", "history", "clusterpackage", w.site)), "without a namespace scripts mean that")
		g.Expect(w.run(t, "rollout", "history", "package/none")).To(Equal("Error: getting package: packages.package-operator.run \"none\" not found\n"))
		w.golden(t, "history-type.txt", "rollout", "history", "configmap/web", "-n", w.shop)

		var list []v1alpha1.ObjectSet
		g.Expect(yaml.UnmarshalStrict([]byte(w.run(t, "rollout", "history", "package/web", "-n", w.shop, "-o", "yaml")), &list)).To(Succeed())
		g.Expect(list).To(HaveLen(2))
		g.Expect(json.Unmarshal([]byte(w.run(t, "rollout", "history", "package/web", "-n", w.shop, "-o", "json")), &list)).To(Succeed())
		g.Expect(list[1].Spec.Revision).To(Equal(int64(2)))
	})
	t.Run("When a package is paused and goes on the commands should wait for it", func(t *testing.T) {
		g := NewWithT(t)
		p := &v1alpha1.Package{}
		key := client.ObjectKey{Namespace: w.shop, Name: "web"}
		g.Expect(w.run(t, "pause", "package/web", "-n", w.shop, "-m", "for the night")).To(BeEmpty())
		g.Expect(w.Client.Get(t.Context(), key, p)).To(Succeed())
		g.Expect(p.Spec.Paused).To(BeTrue())
		g.Expect(p.Annotations).To(HaveKeyWithValue(v1alpha1.PauseMessageAnnotation, "for the night"))
		g.Expect(w.run(t, "unpause", "package", "web", "-n", w.shop)).To(BeEmpty())
		g.Expect(w.Client.Get(t.Context(), key, p)).To(Succeed())
		g.Expect(p.Spec.Paused).To(BeFalse())
		g.Expect(p.Annotations).NotTo(HaveKey(v1alpha1.PauseMessageAnnotation))
		// The kubeconfig's context names the namespace, and it isn't "default".
		config, err := clientcmd.LoadFromFile(w.kubeconfig)
		g.Expect(err).NotTo(HaveOccurred())
		config.Contexts[config.CurrentContext].Namespace = w.shop
		there := w
		there.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		g.Expect(clientcmd.WriteToFile(*config, there.kubeconfig)).To(Succeed())
		for _, verb := range []string{"pause", "unpause"} {
			out, said, err := there.split(t, verb, "package/web")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(BeEmpty(), "as published")
			g.Expect(said).To(Equal("using namespace " + w.shop + ", that of the kubeconfig's context; --namespace names another\n"))
			g.Expect(w.Client.Get(t.Context(), key, p)).To(Succeed())
			g.Expect(p.Spec.Paused).To(Equal(verb == "pause"))
		}
		g.Expect(there.run(t, "rollout", "pause", "package", "web")).To(Equal("package " + w.shop + "/web paused\n"))
		g.Expect(there.run(t, "rollout", "resume", "package", "web")).To(Equal("package " + w.shop + "/web resumed\n"))
		w.golden(t, "rollout-pause.txt", "rollout", "pause", "clusterpackage/"+w.site, "--message", "for the night")
		w.golden(t, "rollout-resume.txt", "rollout", "resume", "clusterpackage/"+w.site)
		w.golden(t, "pause-missing.txt", "pause", "package/none", "-n", w.shop)
		w.golden(t, "rollout-pause-type.txt", "rollout", "pause", "objectdeployment/web", "-n", w.shop)
	})
	t.Run("When a format is asked for status should print what it waited for", func(t *testing.T) {
		g := NewWithT(t)
		out, said, err := w.split(t, "rollout", "status", "package/web", "-n", w.shop, "-o", "json")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(HaveSuffix("package web successfully rolled out, revision 2\n"))
		var status v1alpha1.PackageStatus
		g.Expect(json.Unmarshal([]byte(out), &status)).To(Succeed())
		g.Expect(status.Revision).To(Equal(int64(2)))
		out, said, err = w.split(t, "rollout", "status", "clusterobjectdeployment/"+w.site, "-o", "yaml")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(ContainSubstring("successfully rolled out"))
		var deployment v1alpha1.ObjectDeploymentStatus
		g.Expect(yaml.UnmarshalStrict([]byte(out), &deployment)).To(Succeed())
		g.Expect(deployment.Conditions).NotTo(BeEmpty())
		out, _, err = w.split(t, "rollout", "status", "package/none", "-n", w.shop, "-o", "json")
		g.Expect(exit.Code(err)).To(Equal(exit.NotFound))
		g.Expect(out).To(BeEmpty())
	})
	t.Run("When a flag is only for HostedClusterPackages status should refuse it", func(t *testing.T) {
		NewWithT(t).Expect(w.run(t, "rollout", "status", "package/web", "-n", w.shop, "--hold-after", "1m")).To(
			Equal("Error: --hold-after: only rollouts over hosted clusters have it; leave it out for a package\n"))
	})
	t.Run("When a rollout gets stuck status should say where, and fail in the end", func(t *testing.T) {
		g := NewWithT(t)
		w.change(t, w.shop, "web", broken)
		od := &v1alpha1.ObjectDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.shop, Name: "web"}}
		w.Eventually(t, od, packagestest.HasCondition(od, &od.Status.Conditions, "Progressing", "True", "LatestRevisionPendingSuccess",
			`Latest Revision is Unavailable: Phase "config" failed:  ConfigMap `+w.shop+`/colors-web: ".metadata.name" != ".metadata.annotations.name" expected: "colors-web" got: "never"`))
		p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: w.shop, Name: "web"}}
		w.Eventually(t, p, packagestest.HasCondition(p, &p.Status.Conditions, "Progressing", "True", "LatestRevisionPendingSuccess", ""))
		g.Eventually(func() string { return w.run(t, "rollout", "status", "package/web", "-n", w.shop, "--watch=false") }, packagestest.Timeout).Should(
			HavePrefix("revision 3: Latest Revision is Unavailable: "))
		g.Expect(w.run(t, "clustertree", "package/web", "-n", w.shop)).To(HaveSuffix("ConfigMap "+w.shop+"/site-web\n"), "the revision before serves")
		w.golden(t, "status-stuck.txt", "rollout", "status", "package/web", "-n", w.shop, "--timeout", "10s")
		out, said, err := w.split(t, "rollout", "status", "package/web", "-n", w.shop, "--timeout", "10s", "-o", "yaml")
		g.Expect(exit.Code(err)).To(Equal(exit.TimedOut))
		g.Expect(said).To(HavePrefix("revision 3: Latest Revision is Unavailable: "))
		var status v1alpha1.PackageStatus
		g.Expect(yaml.UnmarshalStrict([]byte(out), &status)).To(Succeed())
		g.Expect(status.Revision).To(Equal(int64(3)))
		g.Expect(w.run(t, "rollout", "status", "package/web", "-n", w.shop, "--timeout", "1ns")).To(
			Equal("Error: package web: not rolled out within 1ns: the API server did not answer in this time\n"))
	})
	t.Run("When an image can't be had or is refused status should say why", func(t *testing.T) {
		g := NewWithT(t)
		w.install(t, w.shop, "missing", w.registry.Host+"/nothing:v1")
		g.Eventually(func() string {
			return w.run(t, "rollout", "status", "package/missing", "-n", w.shop, "--timeout", "50ms")
		}, packagestest.Timeout).Should(
			And(ContainSubstring("waiting for the image: "), ContainSubstring("Error: package missing: not rolled out within 50ms: waiting for the image: ")))
		p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: w.shop, Name: "part"}, Spec: v1alpha1.PackageSpec{Image: first, Component: "x"}}
		g.Expect(w.Client.Create(t.Context(), p)).To(Succeed())
		w.Eventually(t, p, packagestest.HasCondition(p, &p.Status.Conditions, "Invalid", "True", "LoadError", ""))
		out, _, err := w.split(t, "rollout", "status", "package/part", "-n", w.shop, "-o", "json")
		g.Expect(exit.Code(err)).To(Equal(exit.Held))
		g.Expect(out).To(ContainSubstring(`"reason": "LoadError"`))
		w.golden(t, "status-invalid.txt", "rollout", "status", "package/part", "-n", w.shop)
		w.install(t, w.shop, "never", broken)
		g.Eventually(func() string { return w.run(t, "clustertree", "package/never", "-n", w.shop) }, packagestest.Timeout).Should(
			And(HavePrefix("Package /never\n"), ContainSubstring("colors-never"), ContainSubstring("Error: ObjectSet could not be found: no revision of package never is available; shown is revision 1: ")))
		w.golden(t, "clustertree-unavailable.txt", "clustertree", "package/part", "-n", w.shop)
	})
}

func TestNoCluster(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run(t, nil, "clustertree", "package/web", "-n", "a", "--kubeconfig", "/does/not/exist")).To(HavePrefix("Error: "))
	g.Expect(run(t, nil, "rollout", "history", "package/web", "--kubeconfig", "/does/not/exist")).To(HavePrefix("Error: "))
}
