package kit

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

func TestIngressDomain(t *testing.T) {
	for name, tc := range map[string]struct {
		prefix   *hyperv1.BaseDomain
		platform hyperv1.PlatformType
		ingress  *configv1.IngressSpec
		want     string
	}{
		"When nothing is said it should be below the cluster's name": {want: "apps.demo.example.com"},
		"When there is a prefix it should be below that":             {prefix: ptr.To[hyperv1.BaseDomain]("p"), want: "apps.p.example.com"},
		"When the prefix is empty it should be below the domain":     {prefix: ptr.To[hyperv1.BaseDomain](""), want: "apps.example.com"},
		"When it is on IBM Cloud it should be below the domain":      {platform: hyperv1.IBMCloudPlatform, want: "apps.example.com"},
		"When a domain is configured it should be that":              {ingress: &configv1.IngressSpec{Domain: "d"}, want: "d"},
		"When one for applications is configured it should be that":  {ingress: &configv1.IngressSpec{Domain: "d", AppsDomain: "a"}, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Name, hcp.Spec.Platform.Type = "demo", tc.platform
			hcp.Spec.DNS = hyperv1.DNSSpec{BaseDomain: "example.com", BaseDomainPrefix: tc.prefix}
			hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Ingress: tc.ingress}
			NewWithT(t).Expect(IngressDomain(hcp)).To(Equal(tc.want))
		})
	}
}

func TestEtcd(t *testing.T) {
	t.Run("When etcd is another's it should be reached where the user says", func(t *testing.T) {
		g := NewWithT(t)
		hcp := &hyperv1.HostedControlPlane{}
		g.Expect(AuthProxyExceptions(hcp)).To(Equal("kube-apiserver,etcd-client,audit-webhook"))
		hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Unmanaged, Unmanaged: &hyperv1.UnmanagedEtcdSpec{Endpoint: "https://etcd.example.com:2379"}}
		g.Expect(EtcdURL(hcp)).To(Equal("https://etcd.example.com:2379"))
		g.Expect(AuthProxyExceptions(hcp)).To(Equal("kube-apiserver,etcd.example.com,audit-webhook"))
		hcp.Spec.Etcd.Unmanaged.Endpoint = "https://"
		_, err := EtcdHost(hcp)
		g.Expect(err).To(MatchError(ContainSubstring("spec.etcd.unmanaged.endpoint")))
	})
}

func TestAudit(t *testing.T) {
	server := func(t *testing.T, webhook *corev1.LocalObjectReference, profile configv1.AuditProfileType, objs ...client.Object) (*corev1.PodSpec, error) {
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Namespace, hcp.Spec.AuditWebhook = "ns", webhook
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{Audit: configv1.Audit{Profile: profile}}}
		ctx := component.WorkloadContext{Context: t.Context(), HCP: hcp, Reader: fake.NewClientBuilder().WithObjects(objs...).Build()}
		pod := &corev1.PodSpec{Containers: []corev1.Container{{Name: "server"}, {Name: "audit-logs"}}}
		return pod, Audit(ctx, pod, "server", "hook")
	}
	hook := &corev1.Secret{}
	hook.Namespace, hook.Name = "ns", "hook"
	t.Run("When the webhook's Secret is there it should be mounted", func(t *testing.T) {
		g := NewWithT(t)
		pod, err := server(t, &corev1.LocalObjectReference{Name: "hook"}, "", hook)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pod.Containers).To(HaveLen(2))
		g.Expect(pod.Containers[0].VolumeMounts).To(ConsistOf(corev1.VolumeMount{Name: "hook", MountPath: "/etc/kubernetes/auditwebhook"}))
	})
	t.Run("When nothing is logged nobody should print it", func(t *testing.T) {
		g := NewWithT(t)
		pod, err := server(t, nil, configv1.NoneAuditProfileType)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pod.Containers).To(HaveLen(1))
	})
	for name, tc := range map[string]struct{ secret, says string }{
		"When the webhook's Secret is missing it should be named": {"hook", "spec.auditWebhook.name: there is no Secret hook in namespace ns: create it, with key webhook-kubeconfig"},
		"When the webhook names none it should say so":            {"", "spec.auditWebhook.name is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := server(t, &corev1.LocalObjectReference{Name: tc.secret}, "")
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.says)))
		})
	}
}

func TestTrustBundles(t *testing.T) {
	t.Run("When authorities are added each file should be mounted by itself", func(t *testing.T) {
		g := NewWithT(t)
		registries := &corev1.ConfigMap{Data: map[string]string{"b": "", "a": ""}}
		registries.Namespace, registries.Name = "ns", "registries"
		hcp := &hyperv1.HostedControlPlane{}
		hcp.Namespace, hcp.Spec.AdditionalTrustBundle = "ns", &corev1.LocalObjectReference{Name: "mine"}
		hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Image: &configv1.ImageSpec{AdditionalTrustedCA: configv1.ConfigMapNameReference{Name: "registries"}}}
		ctx := component.WorkloadContext{Context: t.Context(), HCP: hcp, Reader: fake.NewClientBuilder().WithObjects(registries).Build()}
		pod := &corev1.PodSpec{Containers: []corev1.Container{{Name: "server"}}}
		g.Expect(TrustBundles(ctx, pod, "server")).To(Succeed())
		g.Expect(pod.Volumes).To(HaveLen(1))
		g.Expect(pod.Volumes[0].Projected.Sources[1].ConfigMap.Items).To(Equal([]corev1.KeyToPath{{Key: "a", Path: "image-registry-1.pem"}, {Key: "b", Path: "image-registry-2.pem"}}))
		var files []string
		for _, m := range pod.Containers[0].VolumeMounts {
			files = append(files, m.MountPath+" "+m.SubPath)
		}
		g.Expect(files).To(Equal([]string{
			"/etc/pki/tls/certs/additional-ca-bundle.pem additional-ca-bundle.pem",
			"/etc/pki/tls/certs/image-registry-1.pem image-registry-1.pem", "/etc/pki/tls/certs/image-registry-2.pem image-registry-2.pem",
		}))
		ctx.Reader = fake.NewClientBuilder().Build()
		g.Expect(TrustBundles(ctx, pod, "server")).To(MatchError(ContainSubstring("spec.configuration.image.additionalTrustedCA: reading ConfigMap registries")))
		ctx.Unconditional = true
		g.Expect(TrustBundles(ctx, &corev1.PodSpec{}, "server")).To(Succeed(), "a preview")
	})
}
