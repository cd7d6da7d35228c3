package payload

import (
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_2"
	ignition "github.com/coreos/ignition/v2/config/v3_2/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/contract/nodeconfig"
)

var update = flag.Bool("update", os.Getenv("UPDATE") == "true", "rewrite the golden files")

func local(mutate ...func(*Inputs)) Inputs {
	in := Inputs{
		Version: "1.36.3", Nested: true, ClusterDNS: "172.31.0.10", ClusterDomain: "cluster.local",
		Images: map[string]string{
			"kubelet": "10.244.0.1:5000/hypershift/kubernetes@sha256:" + strings.Repeat("a", 64),
			"pause":   "10.244.0.1:5000/hypershift/hypershift@sha256:" + strings.Repeat("b", 64), "etcd": "not/of:interest",
			"kube-flannel": "10.244.0.1:5000/hypershift/flannel@sha256:" + strings.Repeat("c", 64),
		},
		BootstrapKubeconfig: []byte("kubeconfig\n"), KubeletCA: []byte("certificates\n"), PullSecret: []byte(`{"auths":{}}`),
		Labels: map[string]string{"hypershift.openshift.io/nodePool": "demo"},
	}
	for _, m := range mutate {
		m(&in)
	}
	return in
}

// everything has all that can be configured.
func everything(in *Inputs) {
	in.Nested = false
	in.PullSecret = []byte(`{"auths":{"10.244.0.1:5000":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("user:password")) + `"},"10.244.0.1:5000/other":{"auth":"eDp5"}}}`)
	in.TrustBundle = []byte("more certificates\n")
	in.Proxy = Proxy{HTTP: "http://proxy.example.com:3128", HTTPS: "http://user:p%40ss@proxy.example.com:3128", No: ".svc,10.0.0.0/8"}
	in.Labels = map[string]string{"tier": "web", "node-role.kubernetes.io/worker": "", "node.kubernetes.io/pool": "a", "bad value": "x", "worse": "a b"}
	in.Taints = []corev1.Taint{{Key: "dedicated", Value: "web", Effect: corev1.TaintEffectNoSchedule}, {Key: "a", Effect: corev1.TaintEffectNoExecute}}
	in.Config = strings.Join([]string{
		`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"50-motd"},"spec":{"config":{"ignition":{"version":"3.4.0"},` +
			`"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,hello"}}]},"systemd":{"units":[{"name":"kubelet.service","dropins":[{"name":"10-nice.conf","contents":"[Service]\nNice=5"}]},` +
			`{"name":"hello.service","enabled":true,"contents":"[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target"}]}}}}`,
		`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig","metadata":{"name":"99-worker-ssh"},"spec":{"config":{"ignition":{"version":"3.2.0"},"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["ssh-ed25519 AAAA"]}]}}}}`,
		`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"KubeletConfig","metadata":{"name":"limits"},"spec":{"logLevel":4,"kubeletConfig":{"maxPods":50,"podPidsLimit":100}}}`,
		`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"ContainerRuntimeConfig","metadata":{"name":"runtime"},"spec":{"containerRuntimeConfig":{"logLevel":"debug","pidsLimit":2048,"logSizeMax":"20Mi"}}}`,
		`{"apiVersion":"config.openshift.io/v1","kind":"ImageDigestMirrorSet","metadata":{"name":"mirrors"},"spec":{"imageDigestMirrors":[{"source":"quay.io/a","mirrors":["mirror.example.com:5000/cache/a","10.9.9.9:5000/a"]},` +
			`{"source":"docker.io","mirrors":["mirror.example.com"],"mirrorSourcePolicy":"NeverContactSource"}]}}`,
	}, "\n---\n")
}

// readable is a payload as a person reads it: files decoded.
func readable(t testing.TB, data []byte) string {
	t.Helper()
	cfg, report, err := v3_2.Parse(data)
	if err != nil {
		t.Fatalf("%v: %s", err, report)
	}
	var b strings.Builder
	for _, f := range cfg.Storage.Files {
		fmt.Fprintf(&b, "##### %s %o\n%s\n", f.Path, *orZero(f.Mode), content(t, f))
	}
	for _, d := range cfg.Storage.Directories {
		fmt.Fprintf(&b, "##### %s/ %o\n", d.Path, *d.Mode)
	}
	for _, u := range cfg.Systemd.Units {
		fmt.Fprintf(&b, "##### unit %s\n", u.Name)
		if u.Contents != nil {
			b.WriteString(*u.Contents)
		}
		for _, d := range u.Dropins {
			fmt.Fprintf(&b, "##### drop-in %s\n%s\n", d.Name, *d.Contents)
		}
	}
	for _, u := range cfg.Passwd.Users {
		fmt.Fprintf(&b, "##### user %s %s\n", u.Name, u.SSHAuthorizedKeys)
	}
	return b.String()
}

func orZero(n *int) *int {
	if n == nil {
		return new(int)
	}
	return n
}

func content(t testing.TB, f ignition.File) string {
	t.Helper()
	if data, ok := strings.CutPrefix(*f.Contents.Source, "data:;base64,"); ok {
		decoded, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		return string(decoded)
	}
	return *f.Contents.Source
}

func TestGolden(t *testing.T) {
	for name, in := range map[string]Inputs{"local": local(), "everything": local(everything)} {
		t.Run("When a machine is "+name+" it should get this payload", func(t *testing.T) {
			g := NewWithT(t)
			data, err := Kubernetes{}.Generate(t.Context(), in)
			g.Expect(err).NotTo(HaveOccurred())
			path := filepath.Join("testdata", name+".txt")
			got := readable(t, data)
			if *update {
				g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
				g.Expect(os.WriteFile(path, []byte(got), 0o644)).To(Succeed())
			}
			want, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(string(want)))
		})
	}
}

func TestPrefetch(t *testing.T) {
	t.Run("When the pod network's image is of another registry it should not be fetched with credentials that are not for it", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(local().prefetches()).To(BeTrue())
		g.Expect(local(func(in *Inputs) { in.Images["kube-flannel"] = "elsewhere.example.com/flannel:1" }).prefetches()).To(BeFalse())
		g.Expect(local(func(in *Inputs) { delete(in.Images, "kube-flannel") }).prefetches()).To(BeFalse())
		g.Expect(local(everything).prefetches()).To(BeFalse(), "machines of clouds bring their own images")
	})
}

// What belongs to the payload must be refused in MachineConfigs, or two files would have one path.
func TestAllPathsAreOwned(t *testing.T) {
	g := NewWithT(t)
	in := local(everything)
	in.Config = ""
	data, err := Kubernetes{}.Generate(t.Context(), in)
	g.Expect(err).NotTo(HaveOccurred())
	cfg, _, err := v3_2.Parse(data)
	g.Expect(err).NotTo(HaveOccurred())
	for _, f := range cfg.Storage.Files {
		g.Expect(nodeconfig.Owned(f.Path)).To(BeTrue(), f.Path)
	}
	for _, d := range cfg.Storage.Directories {
		g.Expect(nodeconfig.Owned(d.Path)).To(BeTrue(), d.Path)
	}
	var names []string
	for _, u := range cfg.Systemd.Units {
		names = append(names, u.Name)
	}
	g.Expect(names).To(Equal(nodeconfig.OwnedUnits))
}

func TestSameInputsSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		labels := rapid.MapOf(rapid.StringMatching(`[a-z]{1,4}(\.kubernetes\.io/[a-z]{1,3})?`), rapid.StringMatching(`[a-z0-9]{0,5}`)).Draw(t, "labels")
		taints := rapid.SliceOf(rapid.Custom(func(t *rapid.T) corev1.Taint {
			return corev1.Taint{Key: rapid.StringMatching(`[a-c]`).Draw(t, "key"), Value: rapid.StringMatching(`[a-c]?`).Draw(t, "value"), Effect: corev1.TaintEffectNoSchedule}
		})).Draw(t, "taints")
		make1 := func(shuffle bool) Inputs {
			in := local(everything)
			in.Labels, in.Taints = map[string]string{}, append([]corev1.Taint{}, taints...)
			for k, v := range labels {
				in.Labels[k] = v
			}
			if shuffle {
				in.Taints = rapid.Permutation(in.Taints).Draw(t, "order")
			}
			return in
		}
		a, err := Kubernetes{}.Generate(t.Context(), make1(false))
		g.Expect(err).NotTo(HaveOccurred())
		b, err := Kubernetes{}.Generate(t.Context(), make1(true))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(a).To(Equal(b))
		g.Expect(make1(false).Key()).To(Equal(make1(false).Key()))
	})
}

func TestKey(t *testing.T) {
	g := NewWithT(t)
	base := local().Key()
	g.Expect(local(func(in *Inputs) { in.Images["etcd"] = "other/etcd:2" }).Key()).To(Equal(base), "machines don't run etcd")
	for name, change := range map[string]func(*Inputs){
		"the kubelet": func(in *Inputs) { in.Images["kubelet"] = "x/y:1" },
		"the config":  func(in *Inputs) { in.Config = "# x" },
		"a label":     func(in *Inputs) { in.Labels["x"] = "y" },
		"a taint":     func(in *Inputs) { in.Taints = []corev1.Taint{{Key: "x"}} },
		"the proxy":   func(in *Inputs) { in.Proxy.No = "x" },
		"the trust":   func(in *Inputs) { in.TrustBundle = []byte("x") },
	} {
		g.Expect(local(change).Key()).NotTo(Equal(base), name)
	}
}

func TestInvalid(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*Inputs)
		want    string
		invalid bool
	}{
		"When the release has no kubelet it should say so": {func(in *Inputs) { delete(in.Images, "kubelet") }, "release 1.36.3 has no image kubelet", true},
		"When an image would break out of the script it should refuse it": {
			func(in *Inputs) { in.Images["kubelet"] = "x'; reboot; '" }, "image kubelet of release 1.36.3 is not a pull specification", true},
		"When the proxy would break out of its file it should refuse it": {
			func(in *Inputs) { in.Proxy.HTTP = "http://x\nLD_PRELOAD=/x" }, "configuration.proxy.httpProxy holds spaces", true},
		"When a MachineConfig is bad it should name it": {
			func(in *Inputs) {
				in.Config = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: x}\nspec: {fips: true}"
			}, `MachineConfig "x": spec.fips is not supported`, true},
		"When the pull secret is no JSON it should say so": {func(in *Inputs) { in.PullSecret = []byte("{") }, "malformed pull secret: it is not JSON with an auths object: key .dockerconfigjson must hold", true},
		"When the kubeconfig is missing it should be ours to make": {
			func(in *Inputs) { in.BootstrapKubeconfig = nil }, "the bootstrap kubeconfig is empty", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := Kubernetes{}.Generate(t.Context(), local(tc.change))
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			var invalid *InvalidError
			g.Expect(errors.As(err, &invalid)).To(Equal(tc.invalid))
		})
	}
}

func TestImageAuth(t *testing.T) {
	digest := strings.Repeat("0", 64)
	own, docker := "registry.example.com/org/kubelet@sha256:"+digest, "docker.io/org/kubelet:1"
	for name, tc := range map[string]struct{ auths, image, want string }{
		"When the key is the registry it should fit":                                {`"registry.example.com":{"auth":"dTpw"}`, own, "u:p"},
		"When the key has a scheme it should fit":                                   {`"https://registry.example.com":{"auth":"dTpw"}`, own, "u:p"},
		"When the key ends with a slash it should fit":                              {`"registry.example.com/":{"auth":"dTpw"}`, own, "u:p"},
		"When the key ends with the API's version it should fit":                    {`"https://registry.example.com/v1/":{"auth":"dTpw"}`, own, "u:p"},
		"When the key is a pattern it should fit":                                   {`"*.example.com":{"username":"u","password":"p"}`, own, "u:p"},
		"When the key is what Docker writes it should fit its registry":             {`"https://index.docker.io/v1/":{"auth":"dTpw"}`, docker, "u:p"},
		"When the key is Docker's short name it should fit its registry":            {`"docker.io":{"auth":"dTpw"}`, docker, "u:p"},
		"When an image names no registry it should be Docker's":                     {`"docker.io":{"auth":"dTpw"}`, "org/kubelet:1", "u:p"},
		"When several keys fit it should be the most specific":                      {`"registry.example.com":{"auth":"eDp5"},"registry.example.com/org":{"auth":"dTpw"}`, own, "u:p"},
		"When the most specific has no user it should be the next":                  {`"registry.example.com":{"auth":"dTpw"},"registry.example.com/org":{"identitytoken":"t"}`, own, "u:p"},
		"When a path only begins alike it should not fit":                           {`"registry.example.com/or":{"auth":"dTpw"}`, own, ""},
		"When the key is the whole repository it should fit an image with a tag":    {`"registry.example.com:5000/org/kubelet":{"auth":"dTpw"}`, "registry.example.com:5000/org/kubelet:1", "u:p"},
		"When it is another registry's it should be anonymous":                      {`"registry.example.com:5000":{"auth":"dTpw"}`, own, ""},
		"When an image has a tag and a digest the key of its repository should fit": {`"registry.example.com/org/kubelet":{"auth":"dTpw"}`, "registry.example.com/org/kubelet:1@sha256:" + digest, "u:p"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := imageAuth([]byte(`{"auths":{`+tc.auths+`}}`), tc.image)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tc.want))
		})
	}
	t.Run("When there is no pull secret it should be anonymous", func(t *testing.T) {
		g := NewWithT(t)
		got, err := imageAuth(nil, own)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(BeEmpty())
	})
	t.Run("When an entry can't be read it should be the user's to mend, and nothing of it be told", func(t *testing.T) {
		g := NewWithT(t)
		_, err := imageAuth([]byte(`{"auths":{"registry.example.com":{"auth":"hunter2!"}}}`), own)
		var invalid *InvalidError
		g.Expect(errors.As(err, &invalid)).To(BeTrue())
		g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
	})
}

func TestSelfLabel(t *testing.T) {
	for key, want := range map[string]bool{
		"tier": true, "example.com/tier": true, "node-role.kubernetes.io/worker": false, "kubernetes.io/hostname": true, "kubernetes.io/x": false,
		"node.kubernetes.io/x": true, "a.node.kubernetes.io/x": true, "x.k8s.io/y": false, "notkubernetes.io/x": true,
		"node-restriction.kubernetes.io/x": false, "topology.kubernetes.io/zone": true,
	} {
		NewWithT(t).Expect(SelfLabel(key)).To(Equal(want), key)
	}
}

// The script is run with programs that note how they were called.
func TestInstallScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	g := NewWithT(t)
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	for _, d := range []string{"bin", "etc/kubernetes", "var/lib/kubelet", "usr/local/bin", "run", "proc/sys/net/ipv4"} {
		g.Expect(os.MkdirAll(at(d), 0o755)).To(Succeed())
	}
	g.Expect(os.WriteFile(at("proc/sys/net/ipv4/ip_forward"), []byte("0\n"), 0o644)).To(Succeed())
	g.Expect(os.WriteFile(at("etc/kubernetes/sysctl.conf"), []byte(sysctls), 0o644)).To(Succeed())
	g.Expect(os.WriteFile(at("etc/kubernetes/kubelet-image.auth"), []byte("user:password"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(at("bin/ctr"), []byte(`#!/bin/bash
echo "$*" >> `+at("calls")+`
case "$*" in
  *"images pull"*) if [[ ! -f `+at("tried")+` ]]; then touch `+at("tried")+`; exit 1; fi;;
  *"images mount"*) mkdir -p `+at("run/kubelet-image/usr/bin")+`; echo kubelet > `+at("run/kubelet-image/usr/bin/kube")+`;;
esac
`), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(at("bin/sleep"), []byte("#!/bin/bash\n"), 0o755)).To(Succeed())

	script := installScript(local())
	for _, p := range []string{"/etc/kubernetes/", "/var/lib/kubelet", "/usr/local/bin/kubelet", "/run/kubelet-image", "/proc/sys/"} {
		script = strings.ReplaceAll(script, p, dir+p)
	}
	run := func() {
		cmd := exec.CommandContext(t.Context(), bash, "-c", script)
		cmd.Env = append(os.Environ(), "PATH="+at("bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
	}
	run()
	kubelet, err := os.ReadFile(at("usr/local/bin/kubelet"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(kubelet)).To(Equal("kubelet\n"))
	forward, err := os.ReadFile(at("proc/sys/net/ipv4/ip_forward"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(forward)).To(Equal("1\n"))
	calls, err := os.ReadFile(at("calls"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(calls)).To(ContainSubstring("images pull --hosts-dir /etc/containerd/certs.d --user user:password 10.244.0.1:5000/hypershift/kubernetes@sha256:"))
	g.Expect(strings.Count(string(calls), "images pull")).To(Equal(2), "the first one failed")

	run() // the machine starts again
	again, err := os.ReadFile(at("calls"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(calls), "nothing is pulled twice")
}

func BenchmarkGenerate(b *testing.B) {
	in := local(everything)
	for b.Loop() {
		if _, err := (Kubernetes{}).Generate(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}

// Keys of the kubelet's configuration must be those that it knows.
func TestKubeletConfigIsValid(t *testing.T) {
	g := NewWithT(t)
	for _, in := range []Inputs{local(), local(func(in *Inputs) { in.Nested = false; in.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}} })} {
		data, err := kubeletConfig(in, &nodeconfig.Config{})
		g.Expect(err).NotTo(HaveOccurred())
		config := &kubeletv1.KubeletConfiguration{}
		g.Expect(yaml.UnmarshalStrict(data, config)).To(Succeed())
		// Kubelet 1.36 ends with a nil pointer when a pod is resized and pods have no control groups.
		g.Expect(config.CgroupsPerQOS).To(Or(BeNil(), HaveValue(BeTrue())), "When a kubelet runs, in a container too, its pods should have control groups")
	}
}
