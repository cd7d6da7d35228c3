package create

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/clitest"
)

var fixed = Generated{
	InfraID:       "demo-abc23",
	EncryptionKey: []byte("0123456789abcdef0123456789abcdef"),
	SSHPublic:     []byte("ecdsa-sha2-nistp256 AAAA\n"),
	SSHPrivate:    []byte("private"),
}

func options(platform hyperv1.PlatformType, change func(*Options)) Options {
	o := NewOptions(platform)
	o.Name = "demo"
	o.ReleaseImage = "registry.example.com/hypershift/release:1.36.3"
	if platform == hyperv1.NonePlatform {
		o.PullSecret = []byte(`{"auths":{}}`)
		o.LoadBalancer = true
	}
	if change != nil {
		change(&o)
	}
	return o
}

func TestObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		golden  string
	}{
		"When the platform is Local it should publish by a load balancer": {
			options: options(hyperv1.LocalPlatform, nil), golden: "local.yaml"},
		"When the platform is None with a load balancer it should use Routes where there are Routes": {
			options: options(hyperv1.NonePlatform, func(o *Options) { o.Routes = true }), golden: "none-routes.yaml"},
		"When an address is given it should publish everything by node ports": {
			options: options(hyperv1.NonePlatform, func(o *Options) { o.LoadBalancer, o.APIServerAddress = false, "api.example.com" }), golden: "none-nodeport.yaml"},
		"When every option is given it should use all of them": {
			options: options(hyperv1.NonePlatform, func(o *Options) {
				o.Namespace, o.BaseDomain, o.BaseDomainPrefix = "team", "example.com", "none"
				o.TrustBundle = []byte("certificates")
				o.Annotations, o.Labels = map[string]string{"a": "1"}, map[string]string{"l": "1"}
				o.Availability, o.InfraAvailability = hyperv1.HighlyAvailable, hyperv1.HighlyAvailable
				o.EtcdStorageClass, o.EtcdStorageSize = "fast", "20Gi"
				o.FIPS, o.PausedUntil, o.KASDNSName = true, "true", "kubernetes.example.com"
				o.NodeSelector, o.PodLabels = map[string]string{"n": "1"}, map[string]string{"p": "1"}
				o.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
				o.ContentSources = []hyperv1.ImageContentSource{{Source: "quay.io/a", Mirrors: []string{"mirror.example.com/a"}}}
				o.ServiceCIDRs, o.ClusterCIDRs = []string{"172.31.0.0/16", "fd01::/112"}, []string{"10.132.0.0/14", "fd02::/48"}
				o.MachineCIDRs = []string{"192.168.0.0/24"}
				o.NodePool.Replicas, o.NodePool.DrainTimeout, o.NodePool.DetachVolume = 3, time.Minute, time.Hour
			}), golden: "none-full.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tc.options.Validate()).To(Succeed())
			var out bytes.Buffer
			g.Expect(render(Objects(tc.options, fixed), RenderOptions{Sensitive: true}, &out, &out)).To(Succeed())
			clitest.Golden(t, tc.golden, out.String())
		})
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"When there is no name it should name the flag":                  {func(o *Options) { o.Name = "" }, "--name is required"},
		"When the name is none it should say why":                        {func(o *Options) { o.Name = "De.mo" }, `--name "De.mo"`},
		"When both names are too long together it should say so":         {func(o *Options) { o.Name = strings.Repeat("n", 60) }, "69 characters together"},
		"When there is no pull secret it should name the flag":           {func(o *Options) { o.PullSecret = nil }, "--pull-secret is required"},
		"When the pull secret is malformed it should show the form":      {func(o *Options) { o.PullSecret = []byte("{}") }, `{"auths"`},
		"When a network has host bits it should show the right one":      {func(o *Options) { o.ClusterCIDRs = []string{"10.132.0.1/14"} }, "10.132.0.0/14"},
		"When there are two networks of a family it should refuse":       {func(o *Options) { o.ServiceCIDRs = []string{"10.0.0.0/16", "10.1.0.0/16"} }, "one of IPv4 and one of IPv6"},
		"When there is no network it should say how many":                {func(o *Options) { o.ClusterCIDRs = nil }, "--cluster-cidr: 0 networks"},
		"When the size is none it should show one":                       {func(o *Options) { o.EtcdStorageSize = "much" }, "8Gi"},
		"When the policy is unknown it should list them":                 {func(o *Options) { o.Availability = "Many" }, "HighlyAvailable or SingleReplica"},
		"When two ways to publish are given it should refuse":            {func(o *Options) { o.APIServerAddress = "a" }, "exclude each other"},
		"When nodes get networks under OVN it should name the type":      {func(o *Options) { o.NetworkType = hyperv1.OVNKubernetes }, "--network-type Other"},
		"When the pause is no time it should show one":                   {func(o *Options) { o.PausedUntil = "tomorrow" }, "2027-01-31T12:00:00Z"},
		"When the architecture is unknown it should list them":           {func(o *Options) { o.NodePool.Arch = "vax" }, "amd64 arm64"},
		"When the domain is none it should show one":                     {func(o *Options) { o.BaseDomain = "exa mple" }, "example.com"},
		"When several things are wrong it should name them all (first)":  {func(o *Options) { o.Name, o.PullSecret = "", nil }, "--name is required"},
		"When several things are wrong it should name them all (second)": {func(o *Options) { o.Name, o.PullSecret = "", nil }, "--pull-secret is required"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(options(hyperv1.NonePlatform, tc.change).Validate()).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestReleaseStream(t *testing.T) {
	answer := map[string]string{
		"4-stable-multi": `{"name":"4.22.1","pullSpec":"registry.example.com/ocp/release:4.22.1"}`,
		"empty":          `{}`,
		"broken":         `<html>`,
		"blank":          `{"pullSpec":"a b"}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/releasestream/"), "/latest")
		if answer[stream] == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, answer[stream])
	}))
	defer server.Close()
	for stream, want := range map[string]string{
		"4-stable-multi": "registry.example.com/ocp/release:4.22.1",
		"empty":          "names no image", "broken": "names no image", "blank": "names no image", "other": "404", "../../x": "no name of a release stream",
	} {
		t.Run("When stream "+stream+" is asked it should say "+want, func(t *testing.T) {
			g := NewWithT(t)
			image, err := newestRelease(t.Context(), server.Client(), server.URL, stream)
			if err != nil {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
				return
			}
			g.Expect(image).To(Equal(want))
		})
	}
	NewWithT(t).Expect(streamServer("4-stable")).To(HavePrefix("https://amd64."))
	NewWithT(t).Expect(streamServer("4-stable-multi")).To(HavePrefix("https://multi."))
}

func TestRelease(t *testing.T) {
	offering := fake.NewClientBuilder().WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: DefaultReleaseName},
		Data: map[string]string{"image": "10.244.0.1:5000/hypershift/release:1.36.3"}}).Build()
	for name, tc := range map[string]struct {
		given  string
		client client.Client
		want   string
		fails  string
	}{
		"When a release is named it should take that":                    {given: "r/i:1", want: "r/i:1"},
		"When none is named it should take what the installation offers": {client: offering, want: "10.244.0.1:5000/hypershift/release:1.36.3"},
		"When the installation offers none it should say what to give":   {client: fake.NewClientBuilder().Build(), fails: "--release-image is required: name a release image, for example registry.example.com/hypershift/release:1.36.3"},
		"When there is no management cluster it should say what to give": {fails: "--release-image is required"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := options(hyperv1.NonePlatform, func(o *Options) { o.ReleaseImage = tc.given })
			err := o.resolveRelease(t.Context(), func() (client.Client, error) {
				if tc.client == nil {
					return nil, errors.New("no cluster")
				}
				return tc.client, nil
			})
			if tc.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(o.ReleaseImage).To(Equal(tc.want))
		})
	}
	t.Run("When nothing is said it should ask no public server", func(t *testing.T) {
		for _, p := range platforms {
			NewWithT(t).Expect(NewOptions(p.kind).ReleaseStream).To(BeEmpty(), p.arg)
		}
	})
}

func TestNotHeeded(t *testing.T) {
	of := func(change func(*Options)) []string {
		o := options(hyperv1.NonePlatform, change)
		g, err := generate(o, rand.Reader)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return notHeeded(o, Objects(o, g))
	}
	g := NewWithT(t)
	g.Expect(of(func(o *Options) { o.LoadBalancer, o.APIServerAddress = false, "a" })).To(BeEmpty(), "what the command writes by default is heeded, or nobody asked for it")
	g.Expect(of(func(o *Options) { o.BaseDomain = "example.org" })).To(ConsistOf(ContainSubstring("spec.dns")))
	g.Expect(of(func(*Options) {})).To(BeEmpty(), "what the command writes by default is heeded")
	g.Expect(of(func(o *Options) { o.FeatureSet = "TechPreviewNoUpgrade" })).To(ConsistOf(HavePrefix("not heeded: spec.configuration.featureGate.featureSet TechPreviewNoUpgrade: ")))
	g.Expect(of(func(o *Options) { o.FIPS = true })).To(ConsistOf(HavePrefix("refused: spec.fips: ")))
	g.Expect(of(func(o *Options) { o.NetworkType, o.AllocateNodeCIDRs = hyperv1.OVNKubernetes, false })).To(ConsistOf(ContainSubstring("spec.networking.networkType OVNKubernetes")))
}

func TestInfraID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := NewWithT(t)
		name := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`).Draw(t, "name")
		id := infraID(name, "abc23")
		g.Expect(len(id)).To(BeNumerically("<=", 27))
		g.Expect(validation.IsDNS1123Label(id)).To(BeEmpty(), id)
		g.Expect(id).NotTo(ContainSubstring("--"))
	})
}

func TestGenerate(t *testing.T) {
	g := NewWithT(t)
	made, err := generate(options(hyperv1.NonePlatform, func(o *Options) { o.GenerateSSH = true }), bytes.NewReader(make([]byte, 1000)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made.InfraID).To(Equal("demo-aaaaa"))
	g.Expect(made.EncryptionKey).To(HaveLen(32))
	g.Expect(checkSSHPublicKey(made.SSHPublic)).To(Succeed())
	g.Expect(string(made.SSHPrivate)).To(HavePrefix("-----BEGIN EC PRIVATE KEY-----"))

	none, err := generate(options(hyperv1.NonePlatform, nil), bytes.NewReader(make([]byte, 1000)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none.SSHPublic).To(BeNil(), "nobody asked for a key")

	given, err := generate(options(hyperv1.NonePlatform, func(o *Options) { o.SSHPublicKey = made.SSHPublic; o.InfraID = "mine" }), bytes.NewReader(make([]byte, 1000)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(given.SSHPrivate).To(BeNil())
	g.Expect(given.InfraID).To(Equal("mine"))

	_, err = generate(options(hyperv1.NonePlatform, nil), bytes.NewReader(nil))
	g.Expect(err).To(HaveOccurred(), "no randomness is no reason for a key of zeros")
}

func TestFlags(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pullSecret := file("pull-secret.json", `{"auths":{"a":{"auth":"aHVudGVyMg"}}}`)
	private := file("id_rsa", "-----BEGIN EC PRIVATE KEY-----\naHVudGVyMg==\n-----END EC PRIVATE KEY-----\n")
	sources := file("sources.yaml", "- source: quay.io/a\n  mirrors: [m.example.com/a]\n")
	none := []string{"cluster", "none", "--name", "demo", "--release-image", "r/i:1", "--expose-through-load-balancer", "--render"}
	for name, tc := range map[string]struct {
		args []string
		want string
		fail bool
	}{
		"When a local cluster is rendered it should need nothing else": {
			args: []string{"cluster", "local", "--name", "demo", "--release-image", "r/i:1", "--render"}, want: "type: Local"},
		"When secrets aren't wanted it should say which are left out": {
			args: append(none, "--pull-secret", pullSecret), want: "left out Secret clusters/demo-pull-secret"},
		"When the tag of the release is one of OpenShift it should have the network of OpenShift": {
			args: append(none, "--pull-secret", pullSecret, "--release-image", "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64"), want: "networkType: OVNKubernetes"},
		"When a network is chosen for a release of OpenShift it should keep that": {
			args: append(none, "--pull-secret", pullSecret, "--release-image", "r/i:4.18.3-x86_64@sha256:0123456789012345678901234567890123456789012345678901234567890123", "--network-type", "Other"), want: "networkType: Other"},
		"When the tag of the release is one of Kubernetes it should have the network that such have": {
			args: append(none, "--pull-secret", pullSecret, "--release-image", "r:5000/i:1.36.3"), want: "allocateNodeCIDRs: Enabled"},
		"When json is asked for it should render a list": {
			args: append(none, "--pull-secret", pullSecret, "-o", "json"), want: `"kind": "List"`},
		"When an annotation has commas it should keep them": {
			args: append(none, "--pull-secret", pullSecret, "--annotations", "a=b=c,d"), want: "a: b=c,d"},
		"When mirrors are given it should render them": {
			args: append(none, "--pull-secret", pullSecret, "--image-content-sources", sources), want: "source: quay.io/a"},
		"When a toleration is given it should render it": {
			args: append(none, "--pull-secret", pullSecret, "--toleration", "key=a,operator=Exists,effect=NoSchedule"), want: "effect: NoSchedule"},
		"When a toleration is in other letters it should render the API's": {
			args: append(none, "--pull-secret", pullSecret, "--toleration", "KEY=a,operator=exists,effect=noschedule"), want: "- effect: NoSchedule\n    key: a\n    operator: Exists"},
		"When a toleration is wrong it should name the part": {
			args: append(none, "--pull-secret", pullSecret, "--toleration", "kee=a"), want: `unknown part "kee"`, fail: true},
		"When a private key is given for a public one it should refuse": {
			args: append(none, "--pull-secret", pullSecret, "--ssh-key", private), want: "authorized_keys", fail: true},
		"When a private key is given for certificates it should refuse": {
			args: append(none, "--pull-secret", pullSecret, "--additional-trust-bundle", private), want: "certificates only", fail: true},
		"When a pool is rendered with its release it should need no cluster": {
			args: []string{"nodepool", "none", "--name", "w", "--cluster-name", "demo", "--release-image", "r/i:1", "--render"}, want: "upgradeType: InPlace"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cmd := Command()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(tc.args)
			err := cmd.ExecuteContext(t.Context())
			if tc.fail {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(out.String()).To(ContainSubstring(tc.want))
			}
			g.Expect(out.String()).NotTo(ContainSubstring("aHVudGVyMg"))
		})
	}
}

func TestRenderInto(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "demo.yaml")
	cmd := Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs([]string{"cluster", "local", "--name", "demo", "--release-image", "r/i:1", "--render-into", path, "--render-sensitive"})
	g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed())
	raw, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(raw)).To(ContainSubstring("kind: Secret"))
	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	g.Expect(out.String()).To(BeEmpty())
}

// A file that was there before may be readable by everybody, and a link or a device is not replaced by a file.
func TestRenderIntoWhatIsThere(t *testing.T) {
	render := func(path string, more ...string) error {
		cmd := Command()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(append([]string{"cluster", "local", "--name", "demo", "--release-image", "r/i:1", "--render-into", path}, more...))
		return cmd.ExecuteContext(t.Context())
	}
	mode := func(g Gomega, path string) os.FileMode {
		info, err := os.Lstat(path)
		g.Expect(err).NotTo(HaveOccurred())
		return info.Mode()
	}
	t.Run("When everybody can read the file it should be closed for Secrets", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "demo.yaml")
		g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
		g.Expect(os.Chmod(path, 0o644)).To(Succeed())
		g.Expect(render(path, "--render-sensitive")).To(Succeed())
		g.Expect(mode(g, path)).To(Equal(os.FileMode(0o600)))
	})
	t.Run("When there are no Secrets in it the file should stay as readable as it was", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "demo.yaml")
		g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
		g.Expect(os.Chmod(path, 0o644)).To(Succeed())
		g.Expect(render(path)).To(Succeed())
		g.Expect(mode(g, path)).To(Equal(os.FileMode(0o644)))
	})
	t.Run("When a link leads to the file it should stay one", func(t *testing.T) {
		g := NewWithT(t)
		dir := t.TempDir()
		path, link := filepath.Join(dir, "demo.yaml"), filepath.Join(dir, "link.yaml")
		g.Expect(os.WriteFile(path, []byte("old"), 0o600)).To(Succeed())
		g.Expect(os.Symlink("demo.yaml", link)).To(Succeed())
		g.Expect(render(link)).To(Succeed())
		g.Expect(mode(g, link) & os.ModeSymlink).NotTo(BeZero())
		raw, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(ContainSubstring("kind: HostedCluster"))
	})
	t.Run("When the command is refused the file should stay as it was", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "demo.yaml")
		g.Expect(os.WriteFile(path, []byte("old"), 0o600)).To(Succeed())
		g.Expect(render(path, "--etcd-storage-size", "much")).NotTo(Succeed())
		raw, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(Equal("old"))
	})
}

func TestNodeAddress(t *testing.T) {
	node := func(ready corev1.ConditionStatus, addresses ...corev1.NodeAddress) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}, Addresses: addresses,
		}}
	}
	internal := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}
	external := corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "192.0.2.1"}
	g := NewWithT(t)
	g.Expect(nodeAddress(nil)).To(BeEmpty())
	g.Expect(nodeAddress([]corev1.Node{node(corev1.ConditionFalse, external)})).To(BeEmpty())
	g.Expect(nodeAddress([]corev1.Node{node(corev1.ConditionTrue, internal), node(corev1.ConditionTrue, internal, external)})).To(Equal("192.0.2.1"))
	g.Expect(nodeAddress([]corev1.Node{node(corev1.ConditionTrue, internal)})).To(Equal("10.0.0.1"))
}
