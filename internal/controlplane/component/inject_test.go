package component

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/release"
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
		g.Expect(pod.InitContainers[0].Command).To(Equal([]string{
			"/usr/bin/control-plane-operator", "availability-prober", "--target", "https://kube-apiserver:6443/readyz", "--kubeconfig=/var/kubeconfig/kubeconfig",
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
		g.Expect(pod.InitContainers[0].StartupProbe.Exec.Command).To(Equal([]string{"test", "-f", tokenFile}))
	})
	t.Run("When the kubeconfig may come later than the pod it should run beside the others, who don't wait for its token", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, on(hyperv1.AWSPlatform))
		ctx.Management.NativeSidecars = true
		early := minter
		early.Type, early.KubeconfigSecret = CloudToken, "admin"
		pod := render(t, plain().InjectTokenMinterContainer(early), ctx)
		g.Expect(pod.InitContainers).NotTo(ContainElement(HaveField("Name", "cloud-token-minter")))
		g.Expect(pod.Containers).To(ContainElement(And(HaveField("Name", "cloud-token-minter"), HaveField("StartupProbe", BeNil()))))
	})
	t.Run("When the token is needed once it should end before the others start", func(t *testing.T) {
		g := NewWithT(t)
		once := minter
		once.OneShot, once.KubeconfigSecret = true, "admin"
		pod := render(t, plain().InjectTokenMinterContainer(once), contextOf(t, nil))
		g.Expect(pod.InitContainers[0].RestartPolicy).To(BeNil())
		g.Expect(pod.InitContainers[0].Args).To(ContainElements("--oneshot", "--kubeconfig-secret-name=admin", "--kubeconfig-secret-namespace=ns"))
	})
	t.Run("When a component reaches the hosted cluster it should have the proxies, with what is not their default", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: "172.31.0.0/16"}}
		})
		ctx.Environment.Proxy = Proxy{HTTPS: "http://proxy", No: "internal"}
		k := KonnectivityProxy{Mode: DualProxy, HTTPS: HTTPSProxyOptions{ServingPort: 8092, ConnectDirectlyToCloudAPIs: true}, Socks5: Socks5ProxyOptions{DisableResolver: true}}
		pod := render(t, plain().InjectKonnectivityContainer(k), ctx)
		https := Container(&pod, "konnectivity-proxy-https")
		g.Expect(https.Args).To(Equal([]string{"run", "--serving-port=8092", "--connect-directly-to-cloud-apis=true", "--prefer-ipv4=true"}))
		g.Expect(https.Env).To(ContainElement(corev1.EnvVar{Name: "NO_PROXY", Value: "internal,kube-apiserver"}))
		g.Expect(Container(&pod, "konnectivity-proxy-socks5").Args).To(Equal([]string{"run", "--disable-resolver=true", "--prefer-ipv4=true"}))
	})
	t.Run("When the hosted cluster has a proxy and certificate authorities of its own the proxies should know them", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "more"}
			hcp.Spec.Networking.ServiceNetwork = nil
			hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPSProxy: "http://p", TrustedCA: configv1.ConfigMapNameReference{Name: "ca"}}}
		})
		pod := render(t, plain().InjectKonnectivityContainer(KonnectivityProxy{Mode: HTTPSProxy}), ctx)
		c := Container(&pod, "konnectivity-proxy-https")
		g.Expect(c.Args).To(Equal([]string{"run", "--http-proxy", "", "--https-proxy", "http://p", "--no-proxy", ".cluster.local,.hypershift.local,.svc,127.0.0.1,localhost"}))
		g.Expect(c.VolumeMounts).To(ContainElements(
			corev1.VolumeMount{Name: "proxy-additional-trust-bundle", MountPath: "/etc/pki/tls/certs/additional-ca-bundle.pem", SubPath: "additional-ca-bundle.pem"},
			corev1.VolumeMount{Name: "proxy-additional-trust-bundle", MountPath: "/etc/pki/tls/certs/proxy-trusted-ca.pem", SubPath: "proxy-trusted-ca.pem"}))
	})
	t.Run("When a component is of an OpenShift payload its pods should be as the published operators make them", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.ControllerAvailabilityPolicy, hcp.Spec.Platform.Type = "", hyperv1.GCPPlatform
		})
		ctx.Release = &release.Release{Version: "4.22.0", Placeholders: true}
		b := plain().WithAdaptFunction(func(_ WorkloadContext, d *appsv1.Deployment) error {
			pod := &d.Spec.Template.Spec
			pod.InitContainers = []corev1.Container{{Name: "own", Image: "cli"}}
			pod.Tolerations = []corev1.Toleration{{Key: "own"}}
			pod.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}}}
			return nil
		}).InjectTokenMinterContainer(minter).InjectKonnectivityContainer(KonnectivityProxy{Mode: Socks5Proxy}).InjectAvailabilityProber(AvailabilityProber{})
		d := deploymentOf(t, b.Build(), ctx)
		pod := d.Spec.Template.Spec
		g.Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)), "no policy counts as highly available")
		for name, policy := range map[string]corev1.PullPolicy{"own": "", "main": "IfNotPresent", "konnectivity-proxy-socks5": "", "cloud-token-minter": "IfNotPresent", "availability-prober": "IfNotPresent"} {
			c := Container(&pod, name)
			g.Expect(c.ImagePullPolicy).To(Equal(policy), name)
			g.Expect(c.SecurityContext.SeccompProfile).NotTo(BeNil(), name)
		}
		g.Expect(Container(&pod, "main").SecurityContext.Capabilities.Add).To(HaveLen(1), "what is added stays")
		g.Expect(Container(&pod, "own").VolumeMounts).To(BeEmpty(), "init containers have no /tmp of theirs")
		g.Expect(pod.Tolerations).NotTo(ContainElement(HaveField("Key", "own")))
		modes := map[string]*int32{}
		for _, v := range pod.Volumes {
			if v.ConfigMap != nil {
				modes[v.Name] = v.ConfigMap.DefaultMode
			}
		}
		g.Expect(modes).To(HaveKeyWithValue("konnectivity-proxy-ca", BeNil()), "what is injected has modes of its own")
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
		g.Expect(podTemplate(out.Workload).Spec.Containers[0].VolumeMounts).To(ContainElement(HaveField("MountPath", "/kubeconfig")), "his is mounted")
		g.Expect(podTemplate(out.Workload).Spec.Volumes).To(ContainElement(HaveField("Name", kubeconfigVolume)))
	})
	t.Run("When a ServiceAccount kubeconfig is previewed without a signer it should be there, empty", func(t *testing.T) {
		g := NewWithT(t)
		ctx := contextOf(t, nil)
		ctx.Unsigned = true
		b := plain().InjectServiceAccountKubeconfig(ServiceAccountKubeconfig{Name: "sa", Namespace: "kube-system", MountPath: "/kubeconfig"})
		out, err := b.Build().Render(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out.Manifests).To(ConsistOf(And(HaveField("Name", "web-service-account-kubeconfig"), HaveField("Data", BeEmpty()))))
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
