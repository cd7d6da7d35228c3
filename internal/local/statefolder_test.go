package local

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/preflight"
)

// hostJSON is what local mode writes down of a machine's kernel settings.
const hostJSON = `{"sysctls": {"vm/overcommit_memory": "0", "net/ipv4/ip_forward": "1"}}`

// folder makes a folder with files, which are given as path and content.
func folder(t *testing.T, files map[string]string) components.Paths {
	t.Helper()
	g := NewWithT(t)
	p := components.Paths{State: filepath.Join(t.TempDir(), "state")}
	g.Expect(os.Mkdir(p.State, 0o700)).To(Succeed())
	for name, content := range files {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(p.State, name)), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(p.State, name), []byte(content), 0o600)).To(Succeed())
	}
	return p
}

func TestRealPath(t *testing.T) {
	g := NewWithT(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	join := func(elem ...string) string { return filepath.Join(append([]string{base}, elem...)...) }
	g.Expect(os.MkdirAll(join("disk", "state"), 0o700)).To(Succeed())
	g.Expect(os.Mkdir(join("co"), 0o700)).To(Succeed())
	for link, target := range map[string]string{
		"co/.local": "../disk/state", "co/absolute": join("disk", "state"), "co/twice": ".local", "co/new": "../disk/new", "co/deep": "../linked/a/b", "linked": "disk", "loop": "loop",
	} {
		g.Expect(os.Symlink(target, join(link))).To(Succeed())
	}
	for path, want := range map[string]string{
		"disk/state":       "disk/state",
		"co/.local":        "disk/state",
		"co/absolute":      "disk/state",
		"co/twice":         "disk/state",
		"co/.local/etcd":   "disk/state/etcd", // not there
		"linked/state":     "disk/state",
		"linked/x/y":       "disk/x/y", // so "down" finds what "up" makes there
		"co/new":           "disk/new",
		"co/deep":          "disk/a/b",
		"nothing/anywhere": "nothing/anywhere",
		"loop":             "loop",
	} {
		t.Run("When the state folder is "+path+" it should be "+want, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(RealPath(join(path))).To(Equal(join(want)))
			g.Expect(RealPath(join(want))).To(Equal(join(want)), "again")
		})
	}
	t.Run("When the whole machine is named it should stay that", func(t *testing.T) {
		NewWithT(t).Expect(RealPath("/")).To(Equal("/"))
	})
}

func TestSafeToRemove(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		ok    bool
	}{
		"When the folder is empty it should be safe":                                             {ok: true},
		"When up marked the folder it should be safe":                                            {files: map[string]string{".hypershift-local": "", "x": ""}, ok: true},
		"When up was killed while it marked the folder it should be safe":                        {files: map[string]string{".hypershift-local": ""}, ok: true},
		"When an older up got as far as its configuration it should be safe":                     {files: map[string]string{"host.json": hostJSON, "config.json": `{"kubernetesBinary": "/b"}`}, ok: true},
		"When an older up got as far as its authority it should be safe":                         {files: map[string]string{"host.json": hostJSON, "pki/ca.crt": ""}, ok: true},
		"When an older up got as far as its processes it should be safe":                         {files: map[string]string{"host.json": hostJSON, "conf/kubelet.yaml": ""}, ok: true},
		"When only a look at the machine was cut short in it it should be safe":                  {files: map[string]string{".hypershift-preflight-123/lower/x": ""}, ok: true},
		"When it is somebody's folder it should be refused, to keep the data":                    {files: map[string]string{"thesis.tex": ""}},
		"When a program of somebody writes its log there it should be refused":                   {files: map[string]string{"logs/packages.log": "", "main.go": ""}},
		"When it holds nothing but a log it should be refused":                                   {files: map[string]string{"logs/packages.log": ""}},
		"When a program of somebody has its configuration there it should be refused":            {files: map[string]string{"config.json": "{}", "main.go": ""}},
		"When a program of somebody describes hosts there it should be refused":                  {files: map[string]string{"host.json": `{"name": "web-1"}`, "main.go": ""}},
		"When a program of somebody describes hosts and keeps an authority it should be refused": {files: map[string]string{"host.json": `{"name": "web-1"}`, "pki/ca.crt": ""}},
		"When somebody keeps an authority there it should be refused":                            {files: map[string]string{"pki/ca.crt": ""}},
		"When a folder has the name of the marker it should be refused":                          {files: map[string]string{".hypershift-local/x": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := safeToRemove(folder(t, tc.files), nil)
			if tc.ok {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(And(ContainSubstring("--state-dir"), ContainSubstring("nothing was removed"), ContainSubstring(".hypershift-local"))))
		})
	}
	t.Run("When the folder does not exist it should be safe", func(t *testing.T) {
		NewWithT(t).Expect(safeToRemove(components.Paths{State: filepath.Join(t.TempDir(), "x")}, nil)).To(Succeed())
	})
}

func TestSafeToRemoveOfInstance(t *testing.T) {
	t.Run("When the machine's instance uses the folder it should be safe", func(t *testing.T) {
		p := folder(t, map[string]string{"logs/packages.log": "", "bin/hypershift": ""})
		NewWithT(t).Expect(safeToRemove(p, &Instance{StateDir: p.State})).To(Succeed())
	})
	t.Run("When the folder is the whole machine it should be refused", func(t *testing.T) {
		NewWithT(t).Expect(safeToRemove(components.Paths{State: "/"}, &Instance{StateDir: "/"})).To(MatchError(ContainSubstring("--state-dir /")))
	})
}

func TestForeign(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"When the folder is empty up should use it":                                    {},
		"When up marked the folder before it should use it again":                      {files: map[string]string{".hypershift-local": "", "x": ""}},
		"When an older up made the folder it should use it again":                      {files: map[string]string{"host.json": hostJSON, "pki/ca.crt": "", "my.kubeconfig": ""}},
		"When an older up was interrupted while it installed packages it should go on": {files: map[string]string{"logs/packages.log": ""}},
		"When an older up was interrupted while it began to start it should go on":     {files: map[string]string{"logs/packages.log": "", "host.json": hostJSON}},
		"When only a look at the machine was cut short in it up should use it":         {files: map[string]string{".hypershift-preflight-123/lower/x": ""}},
		"When somebody has files there up should name them":                            {files: map[string]string{"thesis.tex": "", "notes": ""}, want: []string{"notes", "thesis.tex"}},
		"When somebody has more logs there up should refuse it":                        {files: map[string]string{"logs/packages.log": "", "logs/web.log": ""}, want: []string{"logs"}},
		"When somebody describes hosts there up should refuse it":                      {files: map[string]string{"host.json": `{"name": "web-1"}`}, want: []string{"host.json"}},
		"When somebody keeps an authority there up should refuse it":                   {files: map[string]string{"pki/ca.crt": ""}, want: []string{"pki"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := foreign(folder(t, tc.files), nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
	t.Run("When the folder is a new file system up should use it, and not one with files that a repair has found", func(t *testing.T) {
		g := NewWithT(t)
		p := folder(t, nil)
		g.Expect(os.Mkdir(filepath.Join(p.State, "lost+found"), 0o700)).To(Succeed())
		g.Expect(foreign(p, nil)).To(BeEmpty())
		g.Expect(os.WriteFile(filepath.Join(p.State, "lost+found", "#123"), nil, 0o600)).To(Succeed())
		g.Expect(foreign(p, nil)).To(Equal([]string{"lost+found"}))
	})
	t.Run("When the machine's instance uses the folder up should use it again", func(t *testing.T) {
		p := folder(t, map[string]string{"bin/hypershift": ""})
		NewWithT(t).Expect(foreign(p, &Instance{StateDir: p.State})).To(BeEmpty())
	})
	t.Run("When there is no folder up should make it", func(t *testing.T) {
		NewWithT(t).Expect(foreign(components.Paths{State: filepath.Join(t.TempDir(), "x")}, nil)).To(BeEmpty())
	})
}

func TestClaim(t *testing.T) {
	t.Run("When there is no folder yet it should make one that nobody else can read, with nothing but the marker, and down should take it", func(t *testing.T) {
		g := NewWithT(t)
		p := components.Paths{State: filepath.Join(t.TempDir(), "deep", "state")}
		g.Expect(claim(p)).To(Succeed())
		g.Expect(claim(p)).To(Succeed(), "again")
		info, err := os.Stat(p.State)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o700))
		entries, err := os.ReadDir(p.State)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(HaveLen(1))
		g.Expect(os.ReadFile(filepath.Join(p.State, ".hypershift-local"))).To(ContainSubstring("hypershift local down"))
		g.Expect(safeToRemove(p, nil)).To(Succeed())
	})
	t.Run("When an older version made the folder it should be marked from now on", func(t *testing.T) {
		g := NewWithT(t)
		p := folder(t, map[string]string{"logs/packages.log": ""})
		g.Expect(claim(p)).To(Succeed())
		g.Expect(safeToRemove(p, nil)).To(Succeed())
	})
}

func TestAdmit(t *testing.T) {
	fine := preflight.Facts{OS: "linux", DiskFree: 100 << 30, MemAvailable: 8 << 30}
	t.Run("When the machine lacks nothing it should mark the state folder", func(t *testing.T) {
		g := NewWithT(t)
		p := components.Paths{State: filepath.Join(t.TempDir(), "state")}
		g.Expect(admit(p, fine)).To(Succeed())
		g.Expect(p.Marker()).To(BeARegularFile())
	})
	t.Run("When the machine lacks something it should change nothing", func(t *testing.T) {
		g := NewWithT(t)
		p := components.Paths{State: filepath.Join(t.TempDir(), "state")}
		lacking := fine
		lacking.UID = 1000
		g.Expect(admit(p, lacking)).To(MatchError(ContainSubstring("not root")))
		g.Expect(p.State).NotTo(BeAnExistingFile())
	})
}

func TestUpInAFolderOfSomebody(t *testing.T) {
	t.Run("When the state folder holds files of somebody up should refuse it, and leave it as it is", func(t *testing.T) {
		g := NewWithT(t)
		p := folder(t, map[string]string{"thesis.tex": "long"})
		err := (&Up{Settings: Settings{StateDir: p.State}}).preflight(t.Context(), nil)
		g.Expect(err).To(MatchError(And(ContainSubstring("--state-dir"), ContainSubstring("thesis.tex"), ContainSubstring("nothing has been changed"))))
		entries, err := os.ReadDir(p.State)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entries).To(HaveLen(1))
	})
}
