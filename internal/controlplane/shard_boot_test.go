package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/etcd"
	"hcp.internal/platform/internal/testenv/bare"
)

// eventsShard keeps events and leases in an etcd of their own. Events are named as users know them.
func eventsShard(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.Etcd.Managed.Shards = []hyperv1.ManagedEtcdShard{{
		Name: "events", Replicas: 1,
		Resources: []hyperv1.EtcdShardResource{
			{APIGroup: ptr.To("events.k8s.io"), Resource: "events"}, {APIGroup: ptr.To("coordination.k8s.io"), Resource: "leases"},
		},
	}}
}

func TestShardBoot(t *testing.T) {
	t.Run("When etcd has a shard its resources should be kept there and nowhere else", func(t *testing.T) {
		g := NewWithT(t)
		objs := bare.Credentials(t, "events")
		hcp := bare.HostedControlPlane(eventsShard)
		pods, others := bare.Render(t, bare.Context(t, hcp, objs...), append(Components(), etcd.Shards(hcp)...))
		m := bare.NewMachine(t, append(objs, others...))
		m.AddShards("events")

		// kube-apiserver comes first: it waits for both.
		m.Start("kube-apiserver", pods["kube-apiserver"])
		m.Start("etcd", pods["etcd"])
		m.Answers(t.Context(), "http", "metrics", "/readyz")
		g.Consistently(func() bool { return m.Healthy(t.Context(), "https", "api", "/readyz") }, 3*time.Second, 200*time.Millisecond).
			Should(BeFalse(), "ready without the shard")
		m.StartShard("events", pods["etcd-events"])
		m.Answers(t.Context(), "http", "metrics-events", "/readyz")
		t.Logf("kube-apiserver is ready %s after the shard", m.Answers(t.Context(), "https", "api", "/readyz"))

		config, err := clientcmd.RESTConfigFromKubeConfig(m.File("Secret", "service-network-admin-kubeconfig", "kubeconfig"))
		g.Expect(err).NotTo(HaveOccurred())
		api := kubernetes.NewForConfigOrDie(config)
		// kube-apiserver makes namespace default, and its own lease, some time after it is ready.
		g.Eventually(func() error {
			_, err := api.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
			return err
		}, time.Minute, 100*time.Millisecond).Should(Or(Succeed(), Satisfy(apierrors.IsAlreadyExists)))
		_, err = api.CoreV1().Events("default").Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "old"}, InvolvedObject: corev1.ObjectReference{Namespace: "default", Kind: "ConfigMap", Name: "kept"},
		}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = api.EventsV1().Events("default").Create(t.Context(), &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "new"}, EventTime: metav1.NowMicro(), ReportingController: "test/shard", ReportingInstance: "x",
			Action: "Testing", Reason: "Test", Type: "Normal", Regarding: corev1.ObjectReference{Namespace: "default", Kind: "ConfigMap", Name: "kept"},
		}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		var inShard []string
		g.Eventually(func() []string { inShard = keys(t, m, "etcd-events"); return inShard }, time.Minute, 100*time.Millisecond).
			Should(ContainElements("/registry/events/default/old", "/registry/events/default/new", HavePrefix("/registry/leases/")))
		inMain := keys(t, m, "etcd")
		g.Expect(inMain).To(ContainElement("/registry/configmaps/default/kept"))
		g.Expect(inMain).NotTo(ContainElement(Or(HavePrefix("/registry/events/"), HavePrefix("/registry/leases/"))))
		g.Expect(inShard).To(HaveEach(Or(HavePrefix("/registry/events/"), HavePrefix("/registry/leases/"), Equal("compact_rev_key"))))
		list, err := api.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(HaveLen(2))
	})
}

// keys are those of one etcd, read with the certificate that kube-apiserver has.
func keys(t *testing.T, m *bare.Machine, port string) (found []string) {
	t.Helper()
	g := NewWithT(t)
	pair, err := tls.X509KeyPair(m.File("Secret", "etcd-client-tls", "etcd-client.crt"), m.File("Secret", "etcd-client-tls", "etcd-client.key"))
	g.Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM(m.File("ConfigMap", "etcd-ca", "ca.crt"))).To(BeTrue())
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + m.Address(port)}, DialTimeout: 30 * time.Second,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{pair}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	defer c.Close()
	answer, err := c.Get(t.Context(), "", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	g.Expect(err).NotTo(HaveOccurred())
	for _, kv := range answer.Kvs {
		found = append(found, string(kv.Key))
	}
	return found
}
