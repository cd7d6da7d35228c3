package component

import (
	"context"
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestInjection(t *testing.T) {
	on := func(p hyperv1.PlatformType) func(*hyperv1.HostedControlPlane) {
		return func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Platform.Type = p }
	}
	render := func(t *testing.T, b *Builder[*appsv1.Deployment], ctx WorkloadContext) corev1.PodSpec {
		return deploymentOf(t, b.Build(), ctx).Spec.Template.Spec
	}
	plain := func() *Builder[*appsv1.Deployment] { return NewDeploymentComponent("web", folder(nil), Options{}) }
	minter := TokenMinter{Type: CloudAndAPIServerToken, ServiceAccountName: "sa", ServiceAccountNamespace: "kube-system"}

	t.Run("When a prober is asked for it should be the first to run", func(t *testing.T) {
		g := NewWithT(t)
		b := plain().WithAdaptFunction(func(_ WorkloadContext, d *appsv1.Deployment) error {
			d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "own", Image: "web"}}
			return nil
		}).InjectAvailabilityProber(AvailabilityProber{
			KubeconfigVolume: "cert", RequiredAPIs: []schema.GroupVersionKind{{Group: "g", Version: "v1", Kind: "K"}}, WaitForClusterRoleBinding: "b",
		})
		pod := render(t, b, contextOf(t, nil))
		g.Expect(pod.InitContainers[0].Name).To(Equal("availability-prober"))
		g.Expect(pod.InitContainers[0].Image).To(Equal("registry/hcp:1"))
		g.Expect(pod.InitContainers[0].Args).To(Equal([]string{
			"availability-prober", "--target=https://kube-apiserver:6443/readyz", "--kubeconfig=/var/kubeconfig/kubeconfig",
			"--required-api=g,v1,K", "--wait-for-cluster-rolebinding=b",
		}))
	})
	t.Run("When the platform has no token service it should mint for the API server only", func(t *testing.T) {
		g := NewWithT(t)
		pod := render(t, plain().InjectTokenMinterContainer(minter), contextOf(t, nil))
		g.Expect(Container(&pod, "cloud-token-minter")).To(BeNil())
		g.Expect(Container(&pod, "apiserver-token-minter").Args).To(ContainElement("--token-audience=https://issuer"))
	})
	t.Run("When the platform has a token service it should mint for both", func(t *testing.T) {
		g := NewWithT(t)
		pod := render(t, plain().InjectTokenMinterContainer(minter), contextOf(t, on(hyperv1.AWSPlatform)))
		g.Expect(pod.Containers).To(HaveLen(3))
		g.Expect(Container(&pod, "cloud-token-minter").Args).To(ContainElement("--token-audience=openshift"))
		paths := map[string]string{}
		for _, m := range pod.Containers[0].VolumeMounts {
			paths[m.Name] = m.MountPath
		}
		g.Expect(paths).To(HaveKeyWithValue("cloud-token", mintedTokenDir))
		g.Expect(paths).To(HaveKeyWithValue("apiserver-token", kubernetesTokenDir))
	})
	t.Run("When sidecars can start first it should have its token before the others start", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, nil)
		ctx.Management.NativeSidecars = true
		pod := render(t, plain().InjectTokenMinterContainer(minter), ctx)
		g.Expect(pod.InitContainers[0].RestartPolicy).To(HaveValue(Equal(corev1.ContainerRestartPolicyAlways)))
		g.Expect(pod.InitContainers[0].StartupProbe.Exec.Command).To(ContainElement("check"))
	})
	t.Run("When the token is needed once it should end before the others start", func(t *testing.T) {
		g := NewWithT(t)
		once := minter
		once.OneShot, once.KubeconfigSecret = true, "admin"
		pod := render(t, plain().InjectTokenMinterContainer(once), contextOf(t, nil))
		g.Expect(pod.InitContainers[0].RestartPolicy).To(BeNil())
		g.Expect(pod.InitContainers[0].Args).To(ContainElements("--oneshot", "--kubeconfig-secret-name=admin", "--kubeconfig-secret-namespace=ns"))
	})
	t.Run("When the release has no tunnel it should have no proxy into it", func(t *testing.T) {
		pod := render(t, plain().InjectKonnectivityContainer(KonnectivityProxy{Mode: DualProxy}), contextOf(t, nil))
		NewWithT(t).Expect(pod.Containers).To(HaveLen(1))
	})
	t.Run("When the release has a tunnel it should have the proxies", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, nil)
		ctx.Release.Images = maps.Clone(ctx.Release.Images)
		ctx.Release.Images["apiserver-network-proxy"] = "registry/anp:1"
		pod := render(t, plain().InjectKonnectivityContainer(KonnectivityProxy{Mode: DualProxy, HTTPS: HTTPSProxyOptions{ServingPort: 8092}, Socks5: Socks5ProxyOptions{DisableResolver: true}}), ctx)
		g.Expect(Container(&pod, "konnectivity-proxy-https").Args).To(ContainElement("--serving-port=8092"))
		g.Expect(Container(&pod, "konnectivity-proxy-socks5").Args).To(ContainElements("--serving-port=8090", "--disable-resolver", "--prefer-ipv4"))
	})
	t.Run("When a ServiceAccount kubeconfig is asked for it should be signed and mounted", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, nil, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "root-ca"}, Data: map[string]string{"ca.crt": "CA"}})
		ctx.Signer = signer{g}
		b := plain().InjectServiceAccountKubeconfig(ServiceAccountKubeconfig{Name: "sa", Namespace: "kube-system", MountPath: "/kubeconfig"})
		c := b.Build()
		out, err := c.Render(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		secret := out.Manifests[0].(*corev1.Secret)
		g.Expect(secret.Name).To(Equal("web-service-account-kubeconfig"))
		g.Expect(string(secret.Data["kubeconfig"])).To(ContainSubstring("server: https://kube-apiserver:6443"))
		g.Expect(secret.Data).To(HaveKeyWithValue("tls.crt", []byte("cert")))
		g.Expect(podTemplate(out.Workload).Spec.Containers[0].VolumeMounts).To(ContainElement(HaveField("MountPath", "/kubeconfig")))

		ctx.HCP.Annotations[disablePKIAnnotation] = "true"
		out, err = c.Render(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out.Manifests).To(BeEmpty(), "who keeps certificates himself keeps this one, too")
	})
}

type signer struct{ Gomega }

func (s signer) ClientCertificate(_ context.Context, _ *hyperv1.HostedControlPlane, subject Subject, _ map[string][]byte) (cert, key []byte, err error) {
	s.Expect(subject).To(Equal(Subject{
		CommonName:    "system:serviceaccount:kube-system:sa",
		Organizations: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"},
	}))
	return []byte("cert"), []byte("key"), nil
}
