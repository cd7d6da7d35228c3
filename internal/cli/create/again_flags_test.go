package create

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/testenv"
)

const (
	openShiftRelease  = "quay.io/openshift-release-dev/ocp-release:4.18.3-x86_64"
	kubernetesRelease = "registry.example.com/hypershift/release:1.36.3"
)

// again runs commands that create a hosted cluster, each in a namespace of its own.
type again struct {
	client.Client
	t          *testing.T
	namespace  string
	kubeconfig string
}

func newAgain(t *testing.T, env *testenv.Env) again {
	t.Helper()
	a := again{Client: env.Client(t, connect.Scheme()), t: t, namespace: env.Namespace(t), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	NewWithT(t).Expect(os.WriteFile(a.kubeconfig, env.Kubeconfig(t), 0o600)).To(Succeed())
	return a
}

// run is `create cluster ARGS`.
func (a again) run(args ...string) (string, error) {
	cmd := Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(slices.Concat([]string{"cluster"}, args, []string{"--name", "demo", "--namespace", a.namespace, "--kubeconfig", a.kubeconfig}))
	err := cmd.ExecuteContext(a.t.Context())
	return out.String(), err
}

func (a again) succeed(g Gomega, args ...string) string {
	out, err := a.run(args...)
	g.Expect(err).NotTo(HaveOccurred(), out)
	return out
}

func (a again) spec(g Gomega) hyperv1.HostedClusterSpec {
	hc := &hyperv1.HostedCluster{}
	g.Expect(a.Get(a.t.Context(), client.ObjectKey{Namespace: a.namespace, Name: "demo"}, hc)).To(Succeed())
	return hc.Spec
}

// offer makes an image the one that the installation offers, until the test ends: other tests are about installations that offer none.
func (a again) offer(image string) {
	g := NewWithT(a.t)
	g.Expect(client.IgnoreAlreadyExists(a.Create(a.t.Context(), connect.Namespace(install.DefaultNamespace)))).To(Succeed())
	g.Expect(OfferRelease(a.t.Context(), a, image)).To(Succeed())
	a.t.Cleanup(func() {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: install.DefaultNamespace, Name: DefaultReleaseName}}
		g.Expect(a.Delete(context.WithoutCancel(a.t.Context()), cm)).To(Succeed())
	})
}

// Whoever runs the same command again, without the flags whose values the cluster has, asks for no other network.
func TestNetworkIsKept(t *testing.T) {
	env := testenv.Start(t)
	none := []string{"none", "--pull-secret", "testdata/in/pull-secret.json", "--external-api-server-address", "api.example.com"}
	for name, tc := range map[string]struct {
		first, second []string
		want          string // what it says
	}{
		"When a cluster of OpenShift is created again without its release it should keep its network": {
			first: []string{"--release-image", openShiftRelease}, want: "kept its release " + openShiftRelease},
		"When a cluster of OpenShift gets a release that looks like one of Kubernetes it should keep its network, and say so": {
			first: []string{"--release-image", openShiftRelease}, second: []string{"--release-image", "registry.example.com/release@sha256:0123456789012345678901234567890123456789012345678901234567890123"},
			want: "kept its network OVNKubernetes, which --network-type changes"},
		"When a network was chosen it should be kept": {
			first: []string{"--release-image", kubernetesRelease, "--network-type", "Calico"}, want: "kept its network Calico, which --network-type changes"},
		"When nodes were to get no network it should stay so": {
			first: []string{"--release-image", kubernetesRelease, "--allocate-node-cidrs=false"}},
		"When ranges were chosen they should be kept": {
			first: []string{"--release-image", kubernetesRelease, "--cluster-cidr", "10.200.0.0/16", "--service-cidr", "172.20.0.0/16", "--machine-cidr", "192.168.1.0/24"}},
		"When both families were asked for they should be kept": {first: []string{"--release-image", kubernetesRelease, "--default-dual"}},
		"When the MTU of a network that is kept is given it should be accepted as before": {
			first: []string{"--release-image", openShiftRelease, "--ovn-kubernetes-mtu", "1400"}, second: []string{"--ovn-kubernetes-mtu", "1400"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, a := NewWithT(t), newAgain(t, env)
			a.offer("registry.example.com/release:offered")
			a.succeed(g, slices.Concat(none, tc.first)...)
			before := a.spec(g)
			out := a.succeed(g, slices.Concat(none, tc.second)...)
			g.Expect(a.spec(g).Networking).To(BeComparableTo(before.Networking))
			if tc.want != "" {
				g.Expect(out).To(ContainSubstring("HostedCluster " + a.namespace + "/demo exists already: " + tc.want))
			}
			if tc.second == nil {
				g.Expect(a.spec(g)).To(BeComparableTo(before))
			}
		})
	}
	t.Run("When another network is asked for it should get that", func(t *testing.T) {
		g, a := NewWithT(t), newAgain(t, env)
		a.succeed(g, slices.Concat(none, []string{"--release-image", openShiftRelease})...)
		out := a.succeed(g, slices.Concat(none, []string{"--network-type", "Other"})...)
		g.Expect(a.spec(g).Networking.NetworkType).To(Equal(hyperv1.Other))
		g.Expect(out).NotTo(ContainSubstring("kept its network"))
	})
	t.Run("When other ranges are asked for the API server should say that they can't change", func(t *testing.T) {
		g, a := NewWithT(t), newAgain(t, env)
		a.succeed(g, slices.Concat(none, []string{"--release-image", kubernetesRelease, "--cluster-cidr", "10.200.0.0/16"})...)
		_, err := a.run(slices.Concat(none, []string{"--cluster-cidr", "10.132.0.0/14"})...)
		g.Expect(err).To(MatchError(ContainSubstring("clusterNetwork is immutable")))
	})
	t.Run("When the installation offers a release of OpenShift a new cluster should have the network of OpenShift", func(t *testing.T) {
		g, a := NewWithT(t), newAgain(t, env)
		a.offer(openShiftRelease)
		a.succeed(g, none...)
		g.Expect(a.spec(g).Networking).To(And(HaveField("NetworkType", hyperv1.OVNKubernetes), HaveField("AllocateNodeCIDRs", BeNil())))
		rendered := execute(g, slices.Concat([]string{"cluster"}, none, []string{"--name", "other", "--namespace", a.namespace, "--kubeconfig", a.kubeconfig, "--render"})...)
		g.Expect(valuesAt(printed(g, rendered), "HostedCluster", "spec.networking.networkType")).To(Equal([]string{"OVNKubernetes"}))
	})
	t.Run("When the network that follows from the release doesn't go with a flag it should be refused before anything is written", func(t *testing.T) {
		g, a := NewWithT(t), newAgain(t, env)
		a.offer(openShiftRelease)
		out, err := a.run(slices.Concat(none, []string{"--disable-multi-network"})...)
		g.Expect(err).To(MatchError(ContainSubstring("--disable-multi-network needs --network-type Other, not OVNKubernetes")))
		g.Expect(out).To(BeEmpty())
	})
}

func TestPullSecretIsKept(t *testing.T) {
	g, a := NewWithT(t), newAgain(t, testenv.Start(t))
	local := []string{"local", "--release-image", kubernetesRelease}
	content := func() string {
		secret := &corev1.Secret{}
		g.Expect(a.Get(t.Context(), client.ObjectKey{Namespace: a.namespace, Name: pullSecretName("demo")}, secret)).To(Succeed())
		return string(secret.Data[corev1.DockerConfigJsonKey])
	}
	a.succeed(g, local...)
	g.Expect(content()).To(Equal(emptyPullSecret))
	a.succeed(g, slices.Concat(local, []string{"--pull-secret", "testdata/in/pull-secret.json"})...)
	given := content()
	g.Expect(given).NotTo(Equal(emptyPullSecret))

	a.succeed(g, local...)
	g.Expect(content()).To(Equal(given), "nobody asked for another one")

	empty := filepath.Join(t.TempDir(), "empty.json")
	g.Expect(os.WriteFile(empty, []byte(emptyPullSecret), 0o600)).To(Succeed())
	a.succeed(g, slices.Concat(local, []string{"--pull-secret", empty})...)
	g.Expect(content()).To(Equal(emptyPullSecret), "somebody asked for it")
}

// TestServicesAreKept is about clusters that are published at the address of a node that nobody chose.
func TestServicesAreKept(t *testing.T) {
	env := testenv.Start(t)
	common := []string{"--pull-secret", "testdata/in/pull-secret.json", "--release-image", kubernetesRelease}
	// node is one that is ready, until it is removed.
	node := func(a again, name, address string) (remove func()) {
		g := NewWithT(a.t)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		g.Expect(a.Create(a.t.Context(), n)).To(Succeed())
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		g.Expect(a.Status().Update(a.t.Context(), n)).To(Succeed())
		return func() { g.Expect(a.Delete(context.WithoutCancel(a.t.Context()), n)).To(Succeed()) }
	}
	for _, args := range [][]string{
		{"none"}, {"agent", "--agent-namespace", "machines"}, {"kubevirt", "--service-publishing-strategy", "NodePort"},
	} {
		t.Run("When a cluster of platform "+args[0]+" is created again and its node is gone it should stay published as it is", func(t *testing.T) {
			g, a := NewWithT(t), newAgain(t, env)
			remove := node(a, "first", "10.1.0.1")
			a.succeed(g, slices.Concat(args, common)...)
			remove()
			before := a.spec(g)
			g.Expect(before.Services[0].ServicePublishingStrategy.NodePort.Address).To(Equal("10.1.0.1"))

			a.succeed(g, slices.Concat(args, common)...)
			g.Expect(a.spec(g)).To(BeComparableTo(before), "there is no node")
			defer node(a, "second", "10.1.0.2")()
			a.succeed(g, slices.Concat(args, common)...)
			g.Expect(a.spec(g)).To(BeComparableTo(before), "another node is the first now")
		})
	}
	t.Run("When an address was chosen and isn't named again it should be kept", func(t *testing.T) {
		g, a := NewWithT(t), newAgain(t, env)
		a.succeed(g, slices.Concat([]string{"none", "--external-api-server-address", "api.example.com"}, common)...)
		before := a.spec(g)
		a.succeed(g, slices.Concat([]string{"none"}, common)...)
		g.Expect(a.spec(g)).To(BeComparableTo(before))
	})
	t.Run("When a load balancer was chosen and isn't named again it should be kept", func(t *testing.T) {
		g, a := NewWithT(t), newAgain(t, env)
		a.succeed(g, slices.Concat([]string{"none", "--expose-through-load-balancer"}, common)...)
		before := a.spec(g)
		a.succeed(g, slices.Concat([]string{"none"}, common)...)
		g.Expect(a.spec(g)).To(BeComparableTo(before))
	})
	for name, args := range map[string][]string{
		"another address": {"none", "--external-api-server-address", "other.example.com"},
		"a load balancer": {"none", "--expose-through-load-balancer"},
	} {
		t.Run("When "+name+" is asked for the API server should say that it can't change", func(t *testing.T) {
			g, a := NewWithT(t), newAgain(t, env)
			a.succeed(g, slices.Concat([]string{"none", "--external-api-server-address", "api.example.com"}, common)...)
			_, err := a.run(slices.Concat(args, common)...)
			g.Expect(err).To(MatchError(ContainSubstring("services is immutable")))
		})
	}
	t.Run("When node ports are asked for where there are Routes the API server should say that it can't change", func(t *testing.T) {
		g, a := NewWithT(t), newAgain(t, env)
		a.succeed(g, slices.Concat([]string{"kubevirt"}, common)...)
		defer node(a, "second", "10.1.0.2")()
		_, err := a.run(slices.Concat([]string{"kubevirt", "--service-publishing-strategy", "NodePort"}, common)...)
		g.Expect(err).To(MatchError(ContainSubstring("services is immutable")))
	})
}

// Names below a domain of one's own are either published or refused: a cluster whose services can't change any more must not have been made without them.
func TestExternalDNSDomain(t *testing.T) {
	tried := map[string]bool{}
	for name, tc := range map[string]struct {
		args    []string
		refused string // what to do instead; empty: it has the names
	}{
		"platform none":                         {args: []string{"cluster", "none"}, refused: "--expose-through-load-balancer"},
		"platform none at an address":           {args: []string{"cluster", "none", "--external-api-server-address", "api.example.com"}, refused: "--expose-through-load-balancer"},
		"platform none with a load balancer":    {args: []string{"cluster", "none", "--expose-through-load-balancer"}},
		"platform local":                        {args: []string{"cluster", "local"}},
		"platform local at an address":          {args: []string{"cluster", "local", "--external-api-server-address", "api.example.com"}, refused: "--expose-through-load-balancer"},
		"platform agent":                        {args: agentArgs, refused: "leave out --external-dns-domain"},
		"platform agent without an address":     {args: []string{"cluster", "agent", "--agent-namespace", "machines"}, refused: "leave out --external-dns-domain"},
		"platform kubevirt":                     {args: []string{"cluster", "kubevirt"}},
		"platform kubevirt with node ports":     {args: []string{"cluster", "kubevirt", "--service-publishing-strategy", "NodePort"}, refused: "--service-publishing-strategy Ingress"},
		"platform kubevirt at an address":       {args: []string{"cluster", "kubevirt", "--service-publishing-strategy", "NodePort", "--api-server-address", "192.0.2.1"}, refused: "--service-publishing-strategy Ingress"},
		"platform aws":                          {args: awsArgs},
		"platform aws with private connections": {args: slices.Concat(awsArgs, []string{"--endpoint-access", "Private"})},
		"platform azure":                        {args: slices.Concat(azureArgs, workloadArgs)},
		"platform gcp":                          {args: gcpArgs},
		"platform openstack":                    {args: slices.Concat(openStackArgs, []string{"--openstack-node-flavor", "m1.large"})},
		"platform powervs":                      {args: powerVSArgs},
	} {
		tried[tc.args[1]] = true
		t.Run("When "+name+" gets a domain it should publish the API server below it, or say that it can't", func(t *testing.T) {
			g := NewWithT(t)
			cmd := Command()
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			args := slices.Concat(tc.args, commonArgs, []string{"--external-dns-domain", "ext.example.com"})
			if tc.refused != "" {
				args = append(args, nowhere...) // it asks no management cluster for an address first
			}
			cmd.SetArgs(args)
			err := cmd.ExecuteContext(t.Context())
			if tc.refused != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring("--external-dns-domain"), ContainSubstring(tc.refused))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out.String()).To(ContainSubstring("api-demo.ext.example.com"))
		})
	}
	for _, arg := range PlatformArgs() {
		NewWithT(t).Expect(tried).To(HaveKey(arg))
	}
}
