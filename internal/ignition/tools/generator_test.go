package tools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"hcp.internal/platform/internal/ignition/child"
	"hcp.internal/platform/internal/ignition/imagefiles"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/ignition/tools/toolstest"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/release/releasetest"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) {
	toolstest.Main()
	os.Exit(m.Run())
}

const machineConfig = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 99-motd}
spec: {config: {ignition: {version: 3.2.0}, storage: {files: [{path: /etc/motd, contents: {source: "data:,hello"}}]}}}`

// world is a registry with a release, and a generator.
type world struct {
	t         *testing.T
	registry  *releasetest.Registry
	generator *Generator
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	// The machine-config-server listens on them much later, after the other programs: until then nobody else may get them.
	ports, err := testenv.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, registry: releasetest.New(t)}
	w.generator = &Generator{askEvery: 20 * time.Millisecond, Work: filepath.Join(dir, "work"), Images: &imagefiles.Store{Root: filepath.Join(dir, "work", "images")}, Time: time.Minute,
		Clock: clocktesting.NewFakePassiveClock(time.Now()), SecurePort: ports[0], InsecurePort: ports[1]}
	return w
}

// inputs of a release that is published first.
func (w *world) inputs(rel toolstest.Release, change ...func(*payload.Inputs)) payload.Inputs {
	w.t.Helper()
	if rel.Version == "" {
		rel.Version = "4.20.3"
	}
	image := toolstest.Push(w.t, w.registry, rel)
	found, err := release.NewRegistryProvider(release.Options{}).Lookup(w.t.Context(), image, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	in := payload.Inputs{
		Version: found.Version, Images: found.Images, Config: machineConfig, BootstrapKubeconfig: []byte("users: [{name: a, user: {token: bootstrap-token-1234}}]"),
		PullSecret: []byte(`{"auths":{"quay.io":{"auth":"dXNlcjpodW50ZXIyMg=="}}}`),
		OpenShift: &payload.OpenShift{Release: found.Image, Digest: found.Digest, Cluster: toolstest.Cluster(),
			FeatureGate: []byte("apiVersion: config.openshift.io/v1\nkind: FeatureGate\nmetadata: {name: cluster}\n")},
	}
	for _, c := range change {
		c(&in)
	}
	return in
}

// leftovers are what a payload must not leave.
func (w *world) leftovers() []string {
	found, err := filepath.Glob(filepath.Join(w.generator.Work, workPrefix+"*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func TestGenerate(t *testing.T) {
	for _, version := range []string{"4.12.9", "4.13.1", "4.14.0-ec.1", "4.15.30", "4.20.3", "5.0.0"} {
		t.Run("When a release is "+version+" it should make the payload with its programs", func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			data, err := w.generator.Generate(t.Context(), w.inputs(toolstest.Release{Version: version}))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(data)).To(And(ContainSubstring(`"path":"/etc/motd"`), ContainSubstring(`"path":"/etc/kubernetes/kubeconfig"`)))
			g.Expect(w.leftovers()).To(BeEmpty())
		})
	}
	t.Run("When the cloud has a configuration and a stream is chosen it should hand both on", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		_, err := w.generator.Generate(t.Context(), w.inputs(toolstest.Release{}, func(in *payload.Inputs) {
			in.OpenShift.CloudConfig, in.OpenShift.OSStream = []byte("kind: ConfigMap\n"), "rhel-10"
		}))
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When the process starts again it should make nothing and ask nobody", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		in := w.inputs(toolstest.Release{})
		first, err := w.generator.Generate(t.Context(), in)
		g.Expect(err).NotTo(HaveOccurred())
		w.registry.Close()
		again := &Generator{Work: w.generator.Work, Images: w.generator.Images}
		second, err := again.Generate(t.Context(), in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second).To(Equal(first))
	})
	t.Run("When a cached payload is damaged it should make it anew, from the images that it has", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		in := w.inputs(toolstest.Release{})
		in.OpenShift.Release = strings.Replace(in.OpenShift.Release, ":4.20.3", "@"+in.OpenShift.Digest, 1)
		first, err := w.generator.Generate(t.Context(), in)
		g.Expect(err).NotTo(HaveOccurred())
		made := filepath.Join(w.generator.Work, cacheDir, in.Key())
		g.Expect(os.WriteFile(made, []byte("damaged"), 0o600)).To(Succeed())
		w.registry.Close()
		second, err := w.generator.Generate(t.Context(), in)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second).To(Equal(first))
	})
	t.Run("When a process was killed it should remove what it left", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		left := filepath.Join(w.generator.Work, workPrefix+"123", "mcs")
		part := filepath.Join(w.generator.Images.Root, ".part-9")
		g.Expect(os.MkdirAll(left, 0o700)).To(Succeed())
		g.Expect(os.MkdirAll(part, 0o700)).To(Succeed())
		_, err := w.generator.Generate(t.Context(), w.inputs(toolstest.Release{}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.leftovers()).To(BeEmpty())
		g.Expect(part).NotTo(BeADirectory())
	})
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		release toolstest.Release
		change  func(*payload.Inputs)
		want    string
		invalid bool
	}{
		"When a release lacks the tools it should name the tags": {
			release: toolstest.Release{Tags: map[string]string{"machine-config-operator": "", "cluster-config-api": ""}},
			want:    "release 4.20.3 has no image machine-config-operator, cluster-config-api", invalid: true},
		"When an image lacks a program it should name it": {
			release: toolstest.Release{Layers: []map[string][]byte{{"usr/bin/.wh.machine-config-server": nil}}},
			want:    "it has no /usr/bin/machine-config-server", invalid: true},
		"When the cluster is not described yet it should wait": {
			change: func(in *payload.Inputs) { delete(in.OpenShift.Cluster, "signer-ca.crt") }, want: "ConfigMap machine-config-server has no key signer-ca.crt yet"},
		"When a manifest of the cluster is none it should repeat what the program says": {
			change: func(in *payload.Inputs) { in.OpenShift.Cluster["cluster-dns-02-config.yaml"] = "kind: Pod" },
			want:   "release 4.20.3: machine-config-operator exited with code 1; it said: machine-config-operator: cluster-dns-02-config.yaml has kind Pod, not DNS", invalid: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			in := w.inputs(tc.release)
			if tc.change != nil {
				tc.change(&in)
			}
			_, err := w.generator.Generate(t.Context(), in)
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			var invalid *payload.InvalidError
			g.Expect(errors.As(err, &invalid)).To(Equal(tc.invalid))
			g.Expect(w.leftovers()).To(BeEmpty())
		})
	}
}

func TestHostile(t *testing.T) {
	for name, tc := range map[string]struct {
		program string
		mode    toolstest.Mode
		limits  child.Limits
		serve   time.Duration
		want    string
		hidden  []string
	}{
		"When a program refuses its input it should say so without its secrets": {
			program: "machine-config-operator", mode: toolstest.Exit, want: `machineconfigs.machineconfiguration.openshift.io "bad" is invalid`,
			hidden: []string{"hunter", "dXNlcjpodW50", "PRIVATE KEY-----\nMA", "a2V5"}},
		"When a program hangs it should end it": {
			program: "render", mode: toolstest.Hang, limits: child.Limits{Time: 300 * time.Millisecond}, want: "render of cluster-config-api took longer than 300ms"},
		"When a program starts many it should end all": {
			program: "machine-config-controller", mode: toolstest.Fork, want: "started more than 16 processes"},
		"When a program takes memory it should end it": {
			program: "machine-config-controller", mode: toolstest.Memory, limits: child.Limits{Memory: toolstest.MemoryTaken / 2}, want: "took more than 256 MiB of memory"},
		"When a program fills the disk it should end it": {
			program: "machine-config-operator", mode: toolstest.Fill, limits: child.Limits{Disk: toolstest.DiskFilled / 2}, want: "wrote more than 64 MiB"},
		"When a program writes a gigabyte it should be stopped": {
			program: "machine-config-operator", mode: toolstest.BigFile, want: "machine-config-operator"},
		"When a program leaves a link as its output it should not follow it": {
			program: "machine-config-operator", mode: toolstest.Link, want: "machineconfigcontroller-controllerconfig.yaml is not a file"},
		"When the server sends more than a payload may have it should stop reading": {
			program: "machine-config-server", mode: toolstest.Huge, want: "the configuration has more than"},
		"When the server sends something else it should not serve it": {
			program: "machine-config-server", mode: toolstest.NoIgnition, want: "not a valid Ignition configuration"},
		"When the server never has it it should give up": {
			program: "machine-config-server", mode: toolstest.Unavailable, serve: 15 * time.Second, want: "it answers with status 503"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(t)
			w.generator.Runner.Limits = tc.limits
			w.generator.ServeTime = tc.serve
			in := w.inputs(toolstest.Release{Modes: map[string]toolstest.Mode{tc.program: tc.mode}})
			_, err := w.generator.Generate(t.Context(), in)
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(len(err.Error())).To(BeNumerically("<", 6000))
			for _, secret := range tc.hidden {
				g.Expect(err.Error()).NotTo(ContainSubstring(secret))
			}
			g.Expect(w.leftovers()).To(BeEmpty())
			_, again := w.generator.Generate(t.Context(), in)
			g.Expect(again).To(BeIdenticalTo(err), "nothing is tried again at once")
		})
	}
	t.Run("When a program talks without end it should go on", func(t *testing.T) {
		g := NewWithT(t)
		w := newWorld(t)
		_, err := w.generator.Generate(t.Context(), w.inputs(toolstest.Release{Modes: map[string]toolstest.Mode{"machine-config-operator": toolstest.Talk}}))
		g.Expect(err).NotTo(HaveOccurred())
	})
}
