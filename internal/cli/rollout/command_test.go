package rollout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/cli/clitest"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/control/hostedclusterpackage"
	"hcp.internal/platform/internal/packages/control/rollout"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

// tour is a fleet of three risk groups on a real API server, with the controller at hand and the package operator played by the test.
type tour struct {
	*testing.T
	g          Gomega
	c          client.WithWatch
	ns, file   string
	kubeconfig string
}

const manifest = `apiVersion: package-operator.run/v1alpha1
kind: HostedClusterPackage
metadata:
  name: NS
spec:
  hostedClusterSelector:
    matchLabels: {fleet: NS}
  strategy:
    rollingUpgrade: {maxUnavailable: 1}
  partition:
    labelKey: risk
    order:
      static: [canary, early, late]
  template:
    spec:
      image: registry.example/addon:VERSION
      config: {replicas: 2}
`

func newTour(t *testing.T) *tour {
	g := NewWithT(t)
	env := testenv.Start(t)
	crds, err := config.PackageOperatorCRDs()
	g.Expect(err).NotTo(HaveOccurred())
	env.Install(t, crds...)
	w := &tour{T: t, g: g, c: env.Client(t, connect.Scheme()), ns: env.Namespace(t), file: filepath.Join(t.TempDir(), "addon.yaml"),
		kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	g.Expect(os.WriteFile(w.kubeconfig, env.Kubeconfig(t), 0o600)).To(Succeed())
	for _, c := range []struct{ name, risk string }{{"c1", "canary"}, {"e1", "early"}, {"e2", "early"}, {"l1", "late"}, {"lost", "late"}, {"odd", "lab"}} {
		w.join(c.name, c.risk)
	}
	return w
}

func (w *tour) join(name, risk string) {
	hc := testenv.HostedCluster(w.ns, name)
	hc.Labels = map[string]string{"fleet": w.ns, "risk": risk}
	w.g.Expect(w.c.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-" + name}})).To(Succeed())
	w.g.Expect(w.c.Create(w.Context(), hc)).To(Succeed())
	w.available(name, metav1.ConditionTrue)
}

func (w *tour) available(name string, status metav1.ConditionStatus) {
	hc := &hyperv1.HostedCluster{}
	w.g.Expect(w.c.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, hc)).To(Succeed())
	before := hc.DeepCopy()
	conditions.Set(&hc.Status.Conditions, time.Now(), metav1.Condition{Type: string(hyperv1.HostedClusterAvailable), Status: status, Reason: "AsExpected"})
	w.g.Expect(w.c.Status().Patch(w.Context(), hc, client.MergeFrom(before))).To(Succeed())
}

// apply is kubectl apply of the manifest with a version.
func (w *tour) apply(version string) {
	w.write(version)
	p, _, err := readManifest(w.file, nil)
	w.g.Expect(err).NotTo(HaveOccurred())
	live := &packagesv1.HostedClusterPackage{}
	if err := w.c.Get(w.Context(), client.ObjectKeyFromObject(p), live); err != nil {
		w.g.Expect(w.c.Create(w.Context(), p)).To(Succeed())
		return
	}
	before := live.DeepCopy()
	live.Spec = p.Spec
	w.g.Expect(w.c.Patch(w.Context(), live, client.MergeFrom(before))).To(Succeed())
}

func (w *tour) write(version string) {
	text := strings.NewReplacer("NS", w.ns, "VERSION", version).Replace(manifest)
	w.g.Expect(os.WriteFile(w.file, []byte(text), 0o600)).To(Succeed())
}

// annotate adds annotations to the manifest.
func (w *tour) annotate(pairs ...string) {
	text, err := os.ReadFile(w.file)
	w.g.Expect(err).NotTo(HaveOccurred())
	added := "metadata:\n  annotations:\n"
	for pair := range slices.Chunk(pairs, 2) {
		added += fmt.Sprintf("    %s: %q\n", pair[0], pair[1])
	}
	w.g.Expect(os.WriteFile(w.file, []byte(strings.Replace(string(text), "metadata:\n", added, 1)), 0o600)).To(Succeed())
}

// work lets controllers and packages go on until nothing moves. Packages of version bad never become available.
func (w *tour) work(bad string) {
	r := &hostedclusterpackage.Reconciler{Client: w.c, Live: w.c, Namespace: w.ns, Clock: clock.RealClock{}, Events: events.NewFakeRecorder(1000)}
	for range 20 {
		_, err := r.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: w.ns}})
		w.g.Expect(err).NotTo(HaveOccurred())
		var list packagesv1.PackageList
		w.g.Expect(w.c.List(w.Context(), &list)).To(Succeed())
		moved := false
		for i := range list.Items {
			p := &list.Items[i]
			if p.Name != w.ns || len(p.Status.Conditions) > 0 && p.Status.Conditions[0].ObservedGeneration == p.Generation {
				continue
			}
			moved = true
			up, progressing := metav1.ConditionTrue, metav1.ConditionFalse
			if bad != "" && strings.HasSuffix(p.Spec.Image, bad) {
				up, progressing = metav1.ConditionFalse, metav1.ConditionTrue
			}
			before := p.DeepCopy()
			conditions.Set(&p.Status.Conditions, time.Now(),
				metav1.Condition{Type: packagesv1.ConditionAvailable, Status: up, Reason: "Test", ObservedGeneration: p.Generation},
				metav1.Condition{Type: packagesv1.ConditionProgressing, Status: progressing, Reason: "Test", ObservedGeneration: p.Generation},
				metav1.Condition{Type: packagesv1.ConditionUnpacked, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: p.Generation})
			w.g.Expect(w.c.Status().Patch(w.Context(), p, client.MergeFrom(before))).To(Succeed())
		}
		if !moved {
			return
		}
	}
	w.Fatal("the rollout does not come to rest")
}

// run is a command as a user types it, with names and times that differ between runs replaced.
func (w *tour) run(args ...string) (string, error) {
	cmd := Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append(args, "--kubeconfig", w.kubeconfig))
	err := cmd.ExecuteContext(w.Context())
	return strings.ReplaceAll(out.String(), w.ns, "NS"), err
}

func (w *tour) golden(name string, args ...string) {
	w.Helper()
	got, err := w.run(args...)
	w.g.Expect(err).NotTo(HaveOccurred())
	clitest.Golden(w.T, name, got)
}

// TestFleet is the worked example of docs/fleet.md.
func TestFleet(t *testing.T) {
	t.Run("When a version is bad it should stop in the first group, and the fix should reach the broken cluster first", func(t *testing.T) {
		w := newTour(t)
		name := "hostedclusterpackage/" + w.ns
		w.apply("v1")
		w.work("")
		w.golden("status-complete.txt", "status", name)
		w.available("lost", metav1.ConditionFalse)
		w.write("v2")
		w.golden("plan.txt", "plan", "-f", w.file, "--time-per-cluster", "5m")
		w.golden("plan-fail.txt", "plan", "-f", w.file, "--fail", w.ns+"/e1")
		w.golden("plan.json", "plan", "-f", w.file, "-o", "json")
		w.annotate(packagesv1.RolloutDeadlineAnnotation, "10m", packagesv1.RolloutOnFailureAnnotation, string(rollout.ReturnCluster))
		w.golden("plan-return.txt", "plan", "-f", w.file, "--fail", w.ns+"/e1")
		w.apply("v2")
		w.work("v2")
		w.golden("status-stopped.txt", "status", name, "--watch=false")
		w.golden("plan-stopped.txt", "plan", name)
		_, err := w.run("status", name, "--timeout", "10ms")
		w.g.Expect(err).To(MatchError(ContainSubstring("timed out")))
		w.g.Expect(exit.Code(err)).To(Equal(exit.TimedOut))
		w.apply("v3")
		w.golden("plan-fix.txt", "plan", name)
		w.work("")
		w.golden("status-fixed.txt", "status", name)
		out, err := w.run("history", name)
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(out).To(MatchRegexp(`1 +20\S+Z +registry.example/addon:v1 +-\n2 +- +registry.example/addon:v2 +image\n3 +20\S+Z +registry.example/addon:v3 +image\n`))

		out, err = w.run("undo", name)
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(out).To(Equal("hostedclusterpackage/NS goes back to revision 1, image registry.example/addon:v1\n"))
		for _, step := range []struct{ do, want string }{{"pause", "paused"}, {"pause", "is paused already"}} {
			out, err = w.run(step.do, name)
			w.g.Expect(err).NotTo(HaveOccurred())
			w.g.Expect(out).To(Equal("hostedclusterpackage/NS " + step.want + "\n"))
		}
		w.work("")
		w.golden("status-paused.txt", "status", name, "--watch=false")
		_, err = w.run("status", name)
		w.g.Expect(err).To(MatchError(ContainSubstring("held: it is paused; `hypershift rollout resume ")))
		w.g.Expect(exit.Code(err)).To(Equal(exit.Held))
		_, err = w.run("resume", name)
		w.g.Expect(err).NotTo(HaveOccurred())
		w.work("")
		w.golden("status-undone.txt", "status", name)
	})
}

// TestPlanOfFile is about what of the live object stays when a file is applied.
func TestPlanOfFile(t *testing.T) {
	waves := func(w *tour) []string {
		w.Helper()
		out, err := w.run("plan", "-f", w.file, "-o", "json")
		w.g.Expect(err).NotTo(HaveOccurred())
		var p preview
		w.g.Expect(json.Unmarshal([]byte(out), &p)).To(Succeed())
		got := []string{fmt.Sprintf("%d waves with a budget of %d", len(p.Forecast.Waves), p.Budget)}
		return append(got, p.Warnings...)
	}
	// live makes an object as kubectl apply did; edit changes what it was made from.
	live := func(t *testing.T, edit func(text string) string) *tour {
		w := newTour(t)
		w.write("v1")
		text, err := os.ReadFile(w.file)
		w.g.Expect(err).NotTo(HaveOccurred())
		file := w.file
		w.file = filepath.Join(t.TempDir(), "first.yaml")
		w.g.Expect(os.WriteFile(w.file, []byte(edit(string(text))), 0o600)).To(Succeed())
		raw, err := os.ReadFile(w.file)
		w.g.Expect(err).NotTo(HaveOccurred())
		applied, err := yaml.YAMLToJSON(raw)
		w.g.Expect(err).NotTo(HaveOccurred())
		p := &unstructured.Unstructured{}
		w.g.Expect(json.Unmarshal(applied, p)).To(Succeed())
		p.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(applied)})
		w.g.Expect(w.c.Create(t.Context(), p)).To(Succeed())
		w.file = file
		w.work("")
		w.write("v2")
		return w
	}
	const strategy = "  strategy:\n    rollingUpgrade: {maxUnavailable: 1}\n"
	t.Run("When somebody paused the rollout it should stay so", func(t *testing.T) {
		w := live(t, func(text string) string { return text })
		w.g.Expect(waves(w)).To(Equal([]string{"6 waves with a budget of 1"}))
		_, err := w.run("pause", "hcpkg/"+w.ns)
		w.g.Expect(err).NotTo(HaveOccurred())
		w.g.Expect(waves(w)).To(Equal([]string{"0 waves with a budget of 1"}))
	})
	t.Run("When the API server's default stays beside a new strategy it should say that all change at once", func(t *testing.T) {
		w := live(t, func(text string) string { return strings.Replace(text, strategy, "", 1) })
		w.g.Expect(waves(w)).To(Equal([]string{"4 waves with a budget of -1", "spec.strategy has both instant and rollingUpgrade: instant wins"}))
	})
	t.Run("When the file no longer has what was applied it should go", func(t *testing.T) {
		w := live(t, func(text string) string {
			return strings.Replace(text, "rollingUpgrade: {", "instant: {}\n    rollingUpgrade: {", 1)
		})
		w.g.Expect(waves(w)).To(Equal([]string{"6 waves with a budget of 1"}))
	})
}

func TestArguments(t *testing.T) {
	w := newTour(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"When the name is missing it should say how to give it":        {[]string{"status", "addon"}, "write hostedclusterpackage/NAME"},
		"When the resource is another it should say which one to use":  {[]string{"undo", "package/addon"}, "write hostedclusterpackage/NAME"},
		"When there is none of that name it should say how to find it": {[]string{"status", "hcpkg", "nothing"}, "kubectl get hostedclusterpackages"},
		"When neither file nor name is given it should ask for one":    {[]string{"plan"}, "either -f FILE or"},
		"When the failing cluster is unknown it should say so":         {[]string{"plan", "-f", w.file, "--fail", "x"}, "namespace/name"},
		"When the history is empty it should say what is missing":      {[]string{"undo", "hcpkg/" + w.ns, "--to-revision", "7"}, "revision not found"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w.write("v1")
			if strings.Contains(name, "history") {
				w.apply("v1")
			}
			_, err := w.run(c.args...)
			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}
