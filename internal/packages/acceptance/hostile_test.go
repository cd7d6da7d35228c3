package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/packagestest"
)

// used is the most memory that the process has ever had, and its processor time.
func (o *operator) used(t *testing.T) (bytes int64, seconds float64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			bytes = kib << 10
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", o.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var user, system float64
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return bytes, (user + system) / 100
}

// TestHostilePackages gives every malformed and hostile package of the folder to a running operator: all are refused with a condition, nothing is
// written for any, and the operator stays small and goes on.
func TestHostilePackages(t *testing.T) {
	g, w, r := NewWithT(t), newWorld(t), packagestest.NewRegistry(t)
	o := w.start(t, w.home)
	// A tenant each: a namespace has a share of the time for renderings, and how many of these it lasts for depends on the machine.
	own := func(name string) string { return w.home + "-" + name }
	dirs, err := filepath.Glob("../author/fixture/testdata/hostile/*")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(dirs)).To(BeNumerically(">=", 50))
	for _, dir := range dirs {
		files, err := load.Folder(dir)
		g.Expect(err).NotTo(HaveOccurred(), dir)
		img, err := images.Build(files, nil)
		g.Expect(err).NotTo(HaveOccurred(), dir)
		ref, err := name.NewTag(r.Host + "/" + filepath.Base(dir) + ":v1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(remote.Write(ref, img, remote.WithContext(t.Context()))).To(Succeed())
		component := ""
		if _, err := os.Stat(filepath.Join(dir, "components", "x")); err == nil {
			component = "x" // the root of these is nothing to complain about
		}
		w.create(t, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", own(filepath.Base(dir))),
			install(own(filepath.Base(dir)), filepath.Base(dir), ref.String(), component))
	}
	g.Eventually(func(g Gomega) {
		list := &v1alpha1.PackageList{}
		g.Expect(w.Client.List(t.Context(), list)).To(Succeed())
		var missing []string
		list.Items = slices.DeleteFunc(list.Items, func(p v1alpha1.Package) bool { return p.Namespace != own(p.Name) })
		for i := range list.Items {
			c := meta.FindStatusCondition(list.Items[i].Status.Conditions, v1alpha1.ConditionInvalid)
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonLoadError || len(c.Message) > 32768 {
				missing = append(missing, list.Items[i].Name)
			}
		}
		g.Expect(missing).To(BeEmpty(), "each is refused")
		g.Expect(list.Items).To(HaveLen(len(dirs)))
	}, patience).Should(Succeed())
	for _, kind := range []string{"ObjectDeployment", "ObjectSet", "ObjectSlice"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		g.Expect(w.Client.List(t.Context(), list)).To(Succeed())
		for _, item := range list.Items {
			g.Expect(item.Namespace).NotTo(HavePrefix(own("")), "nothing is written for a package that is refused")
		}
	}
	bytes, seconds := o.used(t)
	t.Logf("%d packages: %.1f s of processor time, at most %d MiB", len(dirs), seconds, bytes>>20)
	g.Expect(bytes).To(BeNumerically("<", packagestest.Shadow*packagestest.RefusalMemory))
	g.Expect(seconds).To(BeNumerically("<", packagestest.RefusalTime.Seconds()*float64(len(dirs))))

	w.push(t, r, "good:v1", files("one"))
	w.create(t, install(w.home, "good", r.Host+"/good:v1", ""))
	w.available(t, w.home, "good")
	g.Expect(o.stop(g)).To(Succeed())
}
