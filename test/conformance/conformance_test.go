package conformance

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/image"
)

const (
	pods = "[sig-node] Pods should run [NodeConformance] [Conformance]"
	dns  = "[sig-network] DNS should resolve [Conformance]"
	jobs = "[sig-apps] Job should end [Conformance]"
)

// report is what e2e.test writes, shortened.
const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1"><testsuite name="Kubernetes e2e suite" tests="4">
<testcase name="[SynchronizedBeforeSuite]" classname="x" status="passed" time="1"></testcase>
<testcase name="[It] [sig-node] Pods should run [NodeConformance] [Conformance]" classname="x" status="passed" time="2.5"></testcase>
<testcase name="[It] [sig-network] DNS should resolve [Conformance] [sig-network, Conformance]" classname="x" status="failed" time="60"><failure message="no &lt;answer&gt;" type="failed">somewhere</failure></testcase>
<testcase name="[It] [sig-apps] Job should end [Conformance]" classname="x" status="skipped"><skipped message="skipped"></skipped></testcase>
<testcase name="[It] [sig-storage] Volumes [Conformance]" classname="x" status="interrupted" time="9"><error message="interrupted by user"></error></testcase>
<testcase name="[It] [sig-storage] Ephemeral [Conformance]" classname="x" status="skipped"><skipped message="skipped - no driver"></skipped></testcase>
<testcase name="[It] [sig-apps] Something of the cloud" classname="x" status="skipped"><skipped message="skipped"></skipped></testcase>
</testsuite></testsuites>`

func read(t *testing.T, content string) []Case {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "junit_01.xml")
	g.Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	cases, err := Read(file)
	g.Expect(err).NotTo(HaveOccurred())
	return cases
}

func TestRead(t *testing.T) {
	t.Run("When the suite has written its report it should find the conformance specs by their names", func(t *testing.T) {
		NewWithT(t).Expect(read(t, report)).To(Equal([]Case{
			{Name: jobs, Skipped: notRun}, {Name: dns, Seconds: 60, Failure: "no <answer>"}, {Name: pods, Seconds: 2.5},
			{Name: "[sig-storage] Ephemeral [Conformance]", Skipped: "skipped - no driver"},
			{Name: "[sig-storage] Volumes [Conformance]", Skipped: notRun},
		}))
	})
	t.Run("When there is no report it should know of nothing", func(t *testing.T) {
		g := NewWithT(t)
		cases, err := Read(filepath.Join(t.TempDir(), "none.xml"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cases).To(BeEmpty())
	})
	t.Run("When results are written they should be read as they were", func(t *testing.T) {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "results.xml")
		cases := read(t, report)
		g.Expect(Write(file, cases)).To(Succeed())
		g.Expect(Read(file)).To(Equal(cases))
	})
}

func TestMerge(t *testing.T) {
	names := []string{jobs, dns, pods}
	t.Run("When nothing is known it should say that nobody has run the others", func(t *testing.T) {
		NewWithT(t).Expect(Merge(names, nil, []Case{{Name: dns, Seconds: 1}})).To(Equal([]Case{
			{Name: jobs, Skipped: notRun}, {Name: dns, Seconds: 1}, {Name: pods, Skipped: notRun},
		}))
	})
	t.Run("When a run leaves out a spec it should keep what is known of it", func(t *testing.T) {
		known := []Case{{Name: jobs, Failure: "late"}, {Name: dns, Seconds: 1}}
		run := []Case{{Name: jobs, Seconds: 3}, {Name: dns, Skipped: "skipped"}, {Name: pods, Skipped: "no swap"}}
		NewWithT(t).Expect(Merge(names, known, run)).To(Equal([]Case{
			{Name: jobs, Seconds: 3}, {Name: dns, Seconds: 1}, {Name: pods, Skipped: "no swap"},
		}))
	})
}

func TestRest(t *testing.T) {
	known := []Case{{Name: dns, Seconds: 1}, {Name: pods, Failure: "late"}}
	t.Run("When specs failed or were not run it should match them alone", func(t *testing.T) {
		g := NewWithT(t)
		focus, err := Rest([]string{dns, jobs, pods}, known, "")
		g.Expect(err).NotTo(HaveOccurred())
		match := regexp.MustCompile(focus)
		g.Expect([]bool{match.MatchString("Kubernetes e2e suite " + jobs), match.MatchString(pods), match.MatchString(dns)}).To(Equal([]bool{true, true, false}))
		g.Expect(Rest([]string{dns, jobs, pods}, known, "^.sig-node")).To(Equal(regexp.QuoteMeta(pods)))
	})
	t.Run("When all have passed it should match nothing", func(t *testing.T) {
		NewWithT(t).Expect(Rest([]string{dns}, known[:1], "")).To(BeEmpty())
	})
	t.Run("When the focus is no regular expression it should say so", func(t *testing.T) {
		_, err := Rest(nil, nil, "(")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("the focus \"(\" is no regular expression")))
	})
}

func TestMarkdown(t *testing.T) {
	t.Run("When specs failed it should count them and say why, by the reason where there is one", func(t *testing.T) {
		g := NewWithT(t)
		cases := []Case{{Name: jobs, Skipped: notRun}, {Name: dns, Failure: "timed out\nat line 7"}, {Name: pods, Seconds: 1}}
		md := Markdown(cases, Reasons{dns: "the machine has one address"})
		g.Expect(md).To(ContainSubstring("| sig-network | 1 | 0 | 1 | 0 |\n"))
		g.Expect(md).To(ContainSubstring("| all | 3 | 1 | 1 | 1 |\n"))
		g.Expect(md).To(ContainSubstring("### Failed\n\n| spec | why |\n|---|---|\n| \\[sig-network] DNS should resolve | the machine has one address |\n"))
		g.Expect(md).NotTo(ContainSubstring("Not run"), "what nobody has run yet is counted, not listed")
		g.Expect(Markdown(cases, Reasons{jobs: "one core is too few"})).To(ContainSubstring("### Not run\n\n| spec | why |\n|---|---|\n| \\[sig-apps] Job should end | one core is too few |\n"))
		g.Expect(Unexplained(cases, nil)).To(Equal([]string{dns}))
		g.Expect(Unexplained(cases, Reasons{dns: "the machine has one address"})).To(BeEmpty())
	})
}

func TestParseReasons(t *testing.T) {
	t.Run("When a line has a name, a tab and a sentence it should be a reason", func(t *testing.T) {
		NewWithT(t).Expect(ParseReasons([]byte("# why\n\n" + dns + "\tno resolver\n"))).To(Equal(Reasons{dns: "no resolver"}))
	})
	t.Run("When a line has no sentence it should say which", func(t *testing.T) {
		_, err := ParseReasons([]byte("# why\n" + dns + "\n"))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("line 2 of the reasons: want the name of a spec, a tab and a sentence")))
	})
}

func TestParseNames(t *testing.T) {
	t.Run("When e2e.test lists its specs it should sort their names", func(t *testing.T) {
		NewWithT(t).Expect(parseNames([]byte("- testname: a\n  codename: '" + pods + "'\n- codename: '" + jobs + "'\n"))).To(Equal([]string{jobs, pods}))
	})
	t.Run("When it lists none it should say so", func(t *testing.T) {
		_, err := parseNames([]byte("[]"))
		NewWithT(t).Expect(err).To(MatchError("e2e.test names no conformance specs"))
	})
}

func TestOurs(t *testing.T) {
	t.Run("When a list has images of other registries it should leave them out", func(t *testing.T) {
		list := "gcr.io/k8s-authenticated-test/agnhost:2.6\n10.244.0.1:5000/conformance/pause:3.10\n\n"
		NewWithT(t).Expect(ours(list)).To(Equal([]string{"10.244.0.1:5000/conformance/pause:3.10"}))
	})
}

// parts has a file for everything that images are made of.
func parts(t *testing.T) Parts {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string {
		path := filepath.Join(dir, name)
		NewWithT(t).Expect(errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600))).To(Succeed())
		return path
	}
	for _, name := range []string{
		"agnhost", "nonewprivs", "sample-apiserver", "server", "images/agnhost/porter/localhost.crt", "images/agnhost/porter/localhost.key", "images/kitten/html/kitten.jpg",
		"images/kitten/html/data.json", "images/nautilus/html/nautilus.jpg", "images/nautilus/html/data.json",
	} {
		file(name)
	}
	return Parts{
		Bin: dir, CoreDNS: file("coredns"), Pause: file("pause"), Sources: filepath.Join(dir, "images"),
		Shell: []image.File{{Path: "/usr/bin/busybox", Mode: 0o755}, {Path: "/usr/bin/sh", Link: "busybox"}},
	}
}

func TestImage(t *testing.T) {
	for _, name := range Recipes() {
		t.Run("When there is a recipe for "+name+" it should make an image of it, and another one for another tag", func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			p := parts(t)
			first, err := p.Image("10.244.0.1:5000/conformance/e2e/" + name + ":1")
			g.Expect(err).NotTo(HaveOccurred())
			second, err := p.Image("10.244.0.1:5000/conformance/e2e/" + name + ":2")
			g.Expect(err).NotTo(HaveOccurred())
			one, err := first.Digest()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(second.Digest()).NotTo(Equal(one))
		})
	}
	t.Run("When there is no recipe it should make nothing", func(t *testing.T) {
		g := NewWithT(t)
		img, err := Parts{}.Image("registry/windows:1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(img).To(BeNil())
	})
	t.Run("When a program must run as its owner it should have the bit for that", func(t *testing.T) {
		g := NewWithT(t)
		img, err := parts(t).Image("registry/nonewprivs:1")
		g.Expect(err).NotTo(HaveOccurred())
		layers, err := img.Layers()
		g.Expect(err).NotTo(HaveOccurred())
		content, err := layers[len(layers)-1].Uncompressed()
		g.Expect(err).NotTo(HaveOccurred())
		modes := map[string]string{}
		for tr := tar.NewReader(content); ; {
			h, err := tr.Next()
			if err == io.EOF {
				break
			}
			g.Expect(err).NotTo(HaveOccurred())
			modes[h.Name] = h.FileInfo().Mode().String()
		}
		g.Expect(modes).To(HaveKeyWithValue("usr/local/bin/nnp", "urwxr-xr-x"))
	})
}
