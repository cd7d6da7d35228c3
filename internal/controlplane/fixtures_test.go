package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/testenv/bare"
)

const namespace = bare.Namespace

// Fixtures that other packages use, too.
var (
	testRelease        = bare.Release
	hostedControlPlane = bare.HostedControlPlane
	workloadContext    = bare.Context
)

// highlyAvailable has everything that a user can add.
func highlyAvailable(hcp *hyperv1.HostedControlPlane) {
	hcp.Annotations["resource-request-override.hypershift.openshift.io/kube-apiserver.kube-apiserver"] = "cpu=750m,memory=3Gi"
	hcp.Annotations[hyperv1.KubeAPIServerGOGCAnnotation] = "75"
	hcp.Annotations[hyperv1.RestartDateAnnotation] = "2026-11-01T12:00:00Z"
	hcp.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
	hcp.Spec.NodeSelector = map[string]string{"pool": "control-planes"}
	hcp.Spec.Tolerations = []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}}
	hcp.Spec.Labels = map[string]string{"team": "blue", "cost-center": "42"}
	hcp.Spec.Networking.AllocateNodeCIDRs = ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
	hcp.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "audit-webhook"}
	hcp.Spec.Etcd.Managed.Storage.PersistentVolume = &hyperv1.PersistentVolumeEtcdStorageSpec{
		Size: ptr.To(resource.MustParse("16Gi")), StorageClassName: ptr.To("fast"),
	}
	hcp.Spec.Etcd.Managed.Storage.RestoreSnapshotURL = []string{"https://backups.example.com/demo.db?signature=x"}
	hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{
		ActiveKey: corev1.LocalObjectReference{Name: "new-key"}, BackupKey: &corev1.LocalObjectReference{Name: "old-key"},
	}}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{
		Audit: configv1.Audit{
			Profile:     configv1.WriteRequestBodiesAuditProfileType,
			CustomRules: []configv1.AuditCustomRule{{Group: "system:authenticated:oauth", Profile: configv1.AllRequestBodiesAuditProfileType}},
		},
		TLSSecurityProfile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType},
		ServingCerts: configv1.APIServerServingCerts{NamedCertificates: []configv1.APIServerNamedServingCert{{
			Names: []string{"api.example.com"}, ServingCertificate: configv1.SecretNameReference{Name: "api-cert"},
		}}},
	}}
}

// none is a control plane whose API is published by a NodePort, without an audit log.
func none(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.Platform.Type = hyperv1.NonePlatform
	hcp.Spec.Networking.APIServer = &hyperv1.APIServerNetworking{Port: ptr.To[int32](7443)}
	hcp.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{{
		Service: hyperv1.APIServer,
		ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{
			Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "10.244.0.1"},
		},
	}}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{
		Audit: configv1.Audit{Profile: configv1.NoneAuditProfileType},
	}}
}

// privateCAPI is a control plane whose objects of Cluster API are stored in HyperShift's own groups.
func privateCAPI(hcp *hyperv1.HostedControlPlane) {
	hcp.Annotations[hyperv1.PrivateCAPITypesAnnotation] = "true"
}

// mounted are the objects that other parts make and components mount.
func mounted() []client.Object {
	var objs []client.Object
	for _, name := range []string{
		"etcd-peer-tls", "etcd-server-tls", "etcd-client-tls", "etcd-pods-peer-tls", "etcd-pods-server-tls", "etcd-events-peer-tls", "etcd-events-server-tls", "kas-server-crt", "kas-server-private-crt", "kas-aggregator-crt",
		"kas-kubelet-client-crt", "sa-signing-key", "kube-controller-manager-kubeconfig", "cluster-signer-ca", "kcm-server",
		"kube-scheduler-kubeconfig", "scheduler-server", "hcco-kubeconfig", "audit-webhook", "api-cert", "ignition-server-serving-cert", "service-network-admin-kubeconfig",
		"demo-x7k2p-kubeconfig",
	} {
		objs = append(objs, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"data": []byte(name)}})
	}
	for _, name := range []string{"etcd-ca", "client-ca", "aggregator-client-ca", "kubelet-client-ca", "root-ca", "konnectivity-ca-bundle", "total-client-ca"} {
		objs = append(objs, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"ca.crt": name}})
	}
	for name, letter := range map[string]string{"new-key": "n", "old-key": "o"} {
		objs = append(objs, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Data:       map[string][]byte{hyperv1.AESCBCKeySecretKey: []byte(strings.Repeat(letter, 32))},
		})
	}
	return objs
}

// fixtures are those that the golden test of components has as files, too: ../cli/render/testdata/input.
var fixtures = map[string]func(*hyperv1.HostedControlPlane){
	"local-single-replica":   func(*hyperv1.HostedControlPlane) {},
	"local-highly-available": highlyAvailable,
	"none-nodeport":          none,
	"local-private-capi":     privateCAPI,
	"local-etcd-shards":      etcdShards,
}

// etcdShards has one shard that says nothing of its own, and one that says everything.
func etcdShards(hcp *hyperv1.HostedControlPlane) {
	eventsShard(hcp)
	hcp.Spec.NodeSelector = map[string]string{"pool": "control-planes"}
	hcp.Spec.Etcd.Managed.Storage.PersistentVolume = &hyperv1.PersistentVolumeEtcdStorageSpec{
		Size: ptr.To(resource.MustParse("16Gi")), StorageClassName: ptr.To("fast"),
	}
	hcp.Spec.Etcd.Managed.Scheduling = &hyperv1.EtcdScheduling{NodeSelector: map[string]string{"disk": "nvme"}}
	hcp.Spec.Etcd.Managed.Shards = append(hcp.Spec.Etcd.Managed.Shards, hyperv1.ManagedEtcdShard{
		Name: "pods", Replicas: 3,
		Resources:  []hyperv1.EtcdShardResource{{APIGroup: ptr.To(""), Resource: "pods"}},
		Scheduling: &hyperv1.EtcdScheduling{Tolerations: []corev1.Toleration{{Key: "pods", Operator: corev1.TolerationOpExists}}},
		Storage:    &hyperv1.EtcdShardStorage{Type: hyperv1.EmptyDirEtcdShardStorage},
	})
}

func allWorkloads() []*component.WorkloadComponent {
	return append(workloads(), cpo.NewComponent(cpo.Options{DefaultIngressDomain: "apps.example.com"}))
}

func render(t testing.TB, ctx component.WorkloadContext, c *component.WorkloadComponent) []client.Object {
	t.Helper()
	ctx.OmitOwnerReference = c.Name() == cpo.Name
	out, err := c.Render(ctx)
	if err != nil {
		t.Fatalf("rendering %s: %v", c.Name(), err)
	}
	return append(slices.Clone(out.Manifests), out.Workload)
}

// encode is the object as it would be applied: without status and server-set values. Data of Secrets is readable.
func encode(t testing.TB, obj client.Object) []byte {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	if secret, ok := obj.(*corev1.Secret); ok {
		delete(content, "data")
		text := map[string]any{}
		for k, v := range secret.Data {
			text[k] = string(v)
		}
		content["stringData"] = text
	}
	raw, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestRenderTwice(t *testing.T) {
	t.Run("When components are rendered again in another order it should give the same bytes", func(t *testing.T) {
		g := NewWithT(t)
		hcp := hostedControlPlane(highlyAvailable)
		before := encode(t, hcp)
		first := map[string]string{}
		for round := range 8 {
			ctx := workloadContext(t, hcp, mounted()...)
			list := allWorkloads()
			if round%2 == 1 {
				slices.Reverse(list)
			}
			for _, c := range list {
				for _, obj := range render(t, ctx, c) {
					key := fmt.Sprintf("%T/%s", obj, obj.GetName())
					got := string(encode(t, obj))
					if round == 0 {
						first[key] = got
					}
					g.Expect(got).To(Equal(first[key]), key)
				}
			}
		}
		g.Expect(string(encode(t, hcp))).To(Equal(string(before)), "rendering must not change the HostedControlPlane")
	})
}

func TestMissingImages(t *testing.T) {
	t.Run("When a release lacks an image it should be named", func(t *testing.T) {
		g := NewWithT(t)
		r := testRelease()
		missing := func() []string {
			tags, err := MissingImages(component.WorkloadContext{Context: t.Context(), HCP: hostedControlPlane(), Reader: bare.Reader(t), Release: r})
			g.Expect(err).NotTo(HaveOccurred())
			return tags
		}
		g.Expect(missing()).To(BeEmpty())
		delete(r.Images, "kube-scheduler")
		g.Expect(missing()).To(Equal([]string{"kube-scheduler"}))
	})
	t.Run("When a payload lacks the image of a component that another platform has it should not matter", func(t *testing.T) {
		g := NewWithT(t)
		r := testRelease()
		r.Kubernetes = false
		tags, err := MissingImages(component.WorkloadContext{Context: t.Context(), HCP: hostedControlPlane(), Reader: bare.Reader(t), Release: r})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(tags).To(And(ContainElements("oauth-server", "cluster-version-operator"), Not(ContainElement("aws-cloud-controller-manager"))))
	})
}

func TestFixtures(t *testing.T) {
	for name, mutate := range fixtures {
		t.Run("When "+name+" is a fixture it should be the input of the golden test", func(t *testing.T) {
			g := NewWithT(t)
			raw, err := os.ReadFile(filepath.Join("..", "cli", "render", "testdata", "input", name+".yaml"))
			g.Expect(err).NotTo(HaveOccurred())
			input := &hyperv1.HostedControlPlane{}
			g.Expect(yaml.UnmarshalStrict(raw, input)).To(Succeed())
			g.Expect(equality.Semantic.DeepEqual(input.Spec, hostedControlPlane(mutate).Spec)).To(BeTrue(), "change both")
		})
	}
}
