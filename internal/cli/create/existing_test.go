package create

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/testenv"
)

// TestExistingNodePool tells the story of a pool that is created, changed by others, and created again.
func TestExistingNodePool(t *testing.T) {
	env := testenv.Start(t)
	c := env.Client(t, connect.Scheme())
	g := NewWithT(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, env.Kubeconfig(t), 0o600)).To(Succeed())
	namespace := env.Namespace(t)
	for _, name := range []string{"demo", "other"} {
		g.Expect(c.Create(t.Context(), testenv.HostedCluster(namespace, name))).To(Succeed())
	}
	key := client.ObjectKey{Namespace: namespace, Name: "workers"}
	run := func(args ...string) (string, error) {
		cmd := Command()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{"nodepool", "none", "--kubeconfig", kubeconfig, "--namespace", namespace, "--name", "workers"}, args...))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	read := func(g Gomega) *hyperv1.NodePool {
		np := &hyperv1.NodePool{}
		g.Expect(c.Get(t.Context(), key, np)).To(Succeed())
		return np
	}
	out, err := run("--cluster-name", "demo", "--replicas", "3", "--node-drain-timeout", "5m", "--release-image", "registry.example.com/release:1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("created NodePool " + namespace + "/workers"))
	g.Expect(read(g).Spec.Replicas).To(Equal(ptr.To[int32](3)))

	np := read(g)
	np.Spec.Replicas, np.Spec.Management.AutoRepair = ptr.To[int32](5), true
	g.Expect(c.Update(t.Context(), np)).To(Succeed())

	t.Run("When it is created again without flags it should change nothing and say so", func(t *testing.T) {
		g := NewWithT(t)
		before := read(g)
		out, err := run("--cluster-name", "demo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(read(g)).To(BeComparableTo(before))
		g.Expect(out).To(ContainSubstring("NodePool " + namespace + "/workers exists already: nothing is changed"))
	})
	t.Run("When flags are given it should change what they say, and nothing else", func(t *testing.T) {
		g := NewWithT(t)
		want := read(g).Spec
		want.Release.Image, want.NodeDrainTimeout = "registry.example.com/release:2", nil
		out, err := run("--cluster-name", "demo", "--release-image", "registry.example.com/release:2", "--node-drain-timeout", "0", "--arch", "amd64")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(read(g).Spec).To(BeComparableTo(want))
		g.Expect(out).To(ContainSubstring("NodePool " + namespace + "/workers exists already: changed by --node-drain-timeout, --release-image"))
	})
	t.Run("When a flag has the default value it should be heeded as any other", func(t *testing.T) {
		g := NewWithT(t)
		want := read(g).Spec
		want.Replicas, want.Management.AutoRepair = ptr.To[int32](2), false
		_, err := run("--cluster-name", "demo", "--replicas", "2", "--auto-repair=false")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(read(g).Spec).To(BeComparableTo(want))
	})
	t.Run("When the deprecated flag gives the size it should be heeded", func(t *testing.T) {
		g := NewWithT(t)
		_, err := run("--cluster-name", "demo", "--node-count", "4")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(read(g).Spec.Replicas).To(Equal(ptr.To[int32](4)))
	})
	for _, dry := range []string{"client", "server"} {
		t.Run("When it is a dry run of the "+dry+" it should only say what would change", func(t *testing.T) {
			g := NewWithT(t)
			before := read(g)
			out, err := run("--cluster-name", "demo", "--replicas", "7", "--dry-run="+dry)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(read(g)).To(BeComparableTo(before))
			g.Expect(out).To(ContainSubstring("exists already: would be changed by --replicas"))
		})
	}
	t.Run("When the object is asked for it should be printed alone", func(t *testing.T) {
		g := NewWithT(t)
		cmd := Command()
		var out, notes bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&notes)
		cmd.SetArgs([]string{"nodepool", "none", "--kubeconfig", kubeconfig, "--namespace", namespace, "--name", "workers", "--cluster-name", "demo", "-o", "name"})
		g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed())
		g.Expect(out.String()).To(Equal("nodepool.hypershift.openshift.io/workers\n"))
		g.Expect(notes.String()).To(ContainSubstring("exists already"))
	})
	t.Run("When it belongs to another cluster it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		before := read(g)
		_, err := run("--cluster-name", "other")
		g.Expect(err).To(MatchError(ContainSubstring("NodePool " + namespace + "/workers belongs to HostedCluster demo: choose another --name")))
		g.Expect(read(g)).To(BeComparableTo(before))
	})
	t.Run("When it is being deleted it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		np := read(g)
		np.Finalizers = []string{"example.com/keep"}
		g.Expect(c.Update(t.Context(), np)).To(Succeed())
		g.Expect(c.Delete(t.Context(), np)).To(Succeed())
		_, err := run("--cluster-name", "demo")
		g.Expect(err).To(MatchError(ContainSubstring("is being deleted")))
	})
}

// Every flag of a pool says which fields it decides, and decides no others.
func TestPoolFlagsDecideFields(t *testing.T) {
	// Those that say which pool is meant, how to reach it and how to print it.
	others := []string{"name", "namespace", "cluster-name", "dry-run", "output", "render", "render-into", "render-sensitive", "help"}
	everywhere := [][]string{{"--replicas=7"}, {"--node-count=7"}, {"--release-image=r/i:2"}, {"--arch=arm64"}, {"--auto-repair"}, {"--node-upgrade-type=Replace"},
		{"--node-drain-timeout=5m"}, {"--node-volume-detach-timeout=5m"}}
	samples := map[hyperv1.PlatformType][][]string{
		hyperv1.AWSPlatform: {{"--instance-type=t"}, {"--instance-profile=q"}, {"--subnet-id=subnet-2"}, {"--securitygroup-id=sg-1"}, {"--root-volume-type=io1"},
			{"--root-volume-size=99"}, {"--root-volume-iops=99"}, {"--root-volume-kms-key=k"}},
		hyperv1.AzurePlatform: {{"--instance-type=t"}, {"--availability-zone=2"}, {"--nodepool-subnet-id=s2"}, {"--root-disk-size=99"}, {"--disk-storage-account-type=Standard_LRS"},
			{"--disk-encryption-set-id=e"}, {"--enable-ephemeral-disk"}, {"--encryption-at-host=Disabled"}, {"--image-id=i"}, {"--image-generation=Gen1"},
			{"--marketplace-publisher=p", "--marketplace-offer=o", "--marketplace-sku=s", "--marketplace-version=v"},
			{"--diagnostics-storage-account-type=UserManaged", "--diagnostics-storage-account-uri=https://a"}},
		hyperv1.GCPPlatform: {{"--machine-type=t"}, {"--zone=z2"}, {"--subnet=s2"}, {"--boot-image=i"}},
		hyperv1.KubevirtPlatform: {{"--memory=9Gi"}, {"--cores=9"}, {"--qos-class=Guaranteed"}, {"--root-volume-storage-class=c"}, {"--root-volume-size=99"},
			{"--root-volume-access-modes=ReadWriteMany"}, {"--root-volume-volume-mode=Block"}, {"--root-volume-cache-strategy=PVC"}, {"--containerdisk=i"},
			{"--network-multiqueue=Disable"}, {"--additional-network=name:n/l"}, {"--attach-default-network=false", "--additional-network=name:n/l"},
			{"--vm-node-selector=a=b"}, {"--host-device-name=example.com/gpu"}},
		hyperv1.AgentPlatform: {{"--agentLabelSelector=a=b"}},
		hyperv1.OpenStackPlatform: {{"--openstack-node-flavor=g"}, {"--openstack-node-image-name=i"}, {"--openstack-node-availability-zone=z"},
			{"--openstack-node-additional-port=network-id:22222222-2222-2222-2222-222222222222"}},
		hyperv1.PowerVSPlatform: {{"--sys-type=e980"}, {"--proc-type=capped"}, {"--processors=2"}, {"--memory=99"}},
	}
	required := map[hyperv1.PlatformType][]string{
		hyperv1.AWSPlatform: {"--subnet-id=subnet-1", "--instance-profile=p"}, hyperv1.AzurePlatform: {"--nodepool-subnet-id=s1"},
		hyperv1.GCPPlatform: {"--zone=z1", "--subnet=s1"}, hyperv1.OpenStackPlatform: {"--openstack-node-flavor=f"},
	}
	rendered := func(g Gomega, p platform, more ...string) *unstructured.Unstructured {
		args := slices.Concat([]string{"nodepool", p.arg, "--name", "w", "--cluster-name", "demo", "--release-image", "r/i:1", "--render"}, required[p.kind], more)
		obj := &unstructured.Unstructured{}
		_, doc, _ := strings.Cut(execute(g, args...), "---\n") // before it may be that a flag is deprecated
		g.Expect(yaml.Unmarshal([]byte(doc), &obj.Object)).To(Succeed())
		return obj
	}
	for _, p := range platforms {
		tried := map[string]bool{}
		for _, sample := range slices.Concat(everywhere, samples[p.kind]) {
			var names []string
			for _, arg := range sample {
				name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
				names, tried[name] = append(names, name), true
			}
			if p.kind != hyperv1.NonePlatform && poolFields[names[0]] != nil {
				continue // is the same everywhere, but for machine types that go with an architecture
			}
			t.Run("When platform "+p.arg+" is given "+strings.Join(names, ", ")+" it should decide the fields of that", func(t *testing.T) {
				g := NewWithT(t)
				before, after := rendered(g, p), rendered(g, p, sample...)
				g.Expect(after).NotTo(BeComparableTo(before))
				for _, name := range names {
					fields := fieldsOf(p.kind, name)
					g.Expect(fields).NotTo(BeEmpty(), name)
					for _, field := range fields {
						path := strings.Split("spec."+field, ".")
						unstructured.RemoveNestedField(before.Object, path...)
						unstructured.RemoveNestedField(after.Object, path...)
					}
				}
				g.Expect(after).To(BeComparableTo(before))
			})
		}
		t.Run("When a pool of platform "+p.arg+" has a flag it should be one of these", func(t *testing.T) {
			g := NewWithT(t)
			nodePoolCommand(p.kind).Flags().VisitAll(func(f *pflag.Flag) {
				if !connect.IsFlag(f.Name) && !slices.Contains(others, f.Name) {
					g.Expect(tried).To(HaveKey(f.Name), "say in existing.go which fields it decides, and here what it is like")
				}
			})
		})
	}
}
