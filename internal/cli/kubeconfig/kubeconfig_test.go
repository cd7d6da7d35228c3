package kubeconfig

import (
	"bytes"
	"io"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
)

func admin(t *testing.T, server string) []byte {
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"cluster": {Server: server}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {Token: "hunter2"}},
		Contexts:       map[string]*clientcmdapi.Context{"admin": {Cluster: "cluster", AuthInfo: "admin", Namespace: "default"}},
		CurrentContext: "admin",
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func cluster(name string, published bool) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name}}
	if published {
		hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: name + "-admin-kubeconfig"}
	}
	return hc
}

func secret(name string, content []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name + "-admin-kubeconfig"},
		Data:       map[string][]byte{"kubeconfig": content},
	}
}

func TestKubeconfig(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(
		cluster("a", true), secret("a", admin(t, "https://a:6443")),
		cluster("b", true), secret("b", admin(t, "https://b:6443")),
		cluster("new", false),
		cluster("broken", true), secret("broken", []byte("hunter2: [")),
		cluster("replaced", true), secret("replaced", []byte(`{"users": [{"name": "admin", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}}}]}`)),
	).Build()
	read := func(g *WithT, name, namespace string) (*clientcmdapi.Config, string, error) {
		var notes bytes.Buffer
		raw, err := Kubeconfig(t.Context(), client.Client(c), Options{Name: name, Namespace: namespace}, &notes)
		if err != nil {
			return nil, notes.String(), err
		}
		config, err := clientcmd.Load(raw)
		g.Expect(err).NotTo(HaveOccurred())
		return config, notes.String(), nil
	}

	t.Run("When a cluster is named it should print what the operator published", func(t *testing.T) {
		g := NewWithT(t)
		config, _, err := read(g, "a", "clusters")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.CurrentContext).To(Equal("admin"))
		g.Expect(config.Clusters["cluster"].Server).To(Equal("https://a:6443"))
	})
	t.Run("When no cluster is named it should merge all that are published and name the others", func(t *testing.T) {
		g := NewWithT(t)
		config, notes, err := read(g, "", "clusters")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Contexts).To(HaveLen(2))
		g.Expect(config.CurrentContext).To(Equal("clusters-a"))
		for name, server := range map[string]string{"clusters-a": "https://a:6443", "clusters-b": "https://b:6443"} {
			context := config.Contexts[name]
			g.Expect(context).NotTo(BeNil())
			g.Expect(config.Clusters[context.Cluster].Server).To(Equal(server))
			g.Expect(config.AuthInfos[context.AuthInfo].Token).To(Equal("hunter2"))
			g.Expect(context.Namespace).To(Equal("default"))
		}
		g.Expect(notes).To(And(ContainSubstring("clusters/new has no kubeconfig yet"), ContainSubstring("clusters-broken can't be parsed"),
			ContainSubstring("Secret clusters/replaced-admin-kubeconfig is not what was published")))
		g.Expect(notes).NotTo(ContainSubstring("hunter2"))
	})
	t.Run("When somebody replaced the kubeconfig by one that runs a program it should not be used", func(t *testing.T) {
		g := NewWithT(t)
		_, _, err := read(g, "replaced", "clusters")
		g.Expect(err).To(MatchError(And(ContainSubstring("credentials that a program or a file gives"), ContainSubstring("Delete the Secret"))))
	})
	t.Run("When the cluster doesn't exist it should name the flags", func(t *testing.T) {
		g := NewWithT(t)
		_, _, err := read(g, "x", "clusters")
		g.Expect(err).To(MatchError(ContainSubstring("check its name and --namespace")))
		g.Expect(exit.Code(err)).To(Equal(exit.NotFound))
	})
	t.Run("When all namespaces are asked for it should merge those of each", func(t *testing.T) {
		g := NewWithT(t)
		raw, err := Kubeconfig(t.Context(), c, Options{Namespace: "elsewhere", AllNamespaces: true}, io.Discard)
		g.Expect(err).NotTo(HaveOccurred())
		config, err := clientcmd.Load(raw)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Contexts).To(And(HaveKey("clusters-a"), HaveKey("clusters-b")))
		_, err = Kubeconfig(t.Context(), c, Options{Name: "a", AllNamespaces: true}, io.Discard)
		g.Expect(err).To(MatchError(ContainSubstring("leave out either")))
	})
	t.Run("When nothing is published yet it should say so", func(t *testing.T) {
		g := NewWithT(t)
		_, _, err := read(g, "new", "clusters")
		g.Expect(err).To(MatchError(ContainSubstring("still coming up")))
		_, _, err = read(g, "", "elsewhere")
		g.Expect(err).To(MatchError(ContainSubstring("no hosted cluster of namespace elsewhere")))
	})
}
