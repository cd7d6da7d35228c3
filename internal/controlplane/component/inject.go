package component

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// AvailabilityProber asks for an init container that ends when the hosted API server answers.
type AvailabilityProber struct {
	// KubeconfigVolume names a volume of the pod with a key kubeconfig. It is needed for everything that follows.
	KubeconfigVolume string
	// RequiredAPIs must be served.
	RequiredAPIs []schema.GroupVersionKind
	// WaitForInfrastructureResource waits for the Infrastructure "cluster" of OpenShift.
	WaitForInfrastructureResource bool
	// WaitForLabeledPodsGone waits until no pod with the label, "namespace/label=value", is left.
	WaitForLabeledPodsGone string
	// WaitForClusterRoleBinding waits for a ClusterRoleBinding.
	WaitForClusterRoleBinding string
}

const (
	proberContainer     = "availability-prober"
	proberKubeconfigDir = "/var/kubeconfig"
)

func (p *AvailabilityProber) inject(ctx WorkloadContext, pod *corev1.PodSpec) {
	args := []string{"availability-prober", "--target=" + readyURL(ctx.HCP)}
	c := corev1.Container{
		Name: proberContainer, Image: imageAvailabilityProber, Command: []string{sidecarCommand}, Resources: smallRequests(),
	}
	if p.KubeconfigVolume != "" {
		c.VolumeMounts = []corev1.VolumeMount{{Name: p.KubeconfigVolume, MountPath: proberKubeconfigDir, ReadOnly: true}}
		args = append(args, "--kubeconfig="+proberKubeconfigDir+"/kubeconfig")
		for _, api := range p.RequiredAPIs {
			args = append(args, "--required-api="+api.Group+","+api.Version+","+api.Kind)
		}
		if p.WaitForInfrastructureResource {
			args = append(args, "--wait-for-infrastructure-resource")
		}
		if p.WaitForLabeledPodsGone != "" {
			args = append(args, "--wait-for-labeled-pods-gone="+p.WaitForLabeledPodsGone)
		}
		if p.WaitForClusterRoleBinding != "" {
			args = append(args, "--wait-for-cluster-rolebinding="+p.WaitForClusterRoleBinding)
		}
	}
	c.Args = args
	pod.InitContainers = slices.Insert(pod.InitContainers, 0, c)
}

// readyURL is where the hosted API server says, inside its namespace, that it is ready.
func readyURL(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		return "https://kube-apiserver:2040/readyz"
	}
	return inClusterURL + "/readyz"
}

// smallRequests is what our sidecars ask for.
func smallRequests() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("30Mi"),
	}}
}

// TokenType says what a minted token is for.
type TokenType string

const (
	// CloudToken is for the cloud's identity service.
	CloudToken TokenType = "cloud"
	// APIServerToken is for the hosted API server.
	APIServerToken TokenType = "apiserver"
	// CloudAndAPIServerToken is one of each.
	CloudAndAPIServerToken TokenType = "cloud-and-apiserver"
)

// TokenMinter asks for a token of a ServiceAccount of the hosted cluster, kept fresh in a file that the first container has
// mounted.
type TokenMinter struct {
	Type TokenType
	// ServiceAccountName and ServiceAccountNamespace are in the hosted cluster. The account is created when it is absent.
	ServiceAccountName, ServiceAccountNamespace string
	// KubeconfigVolume names a volume of the pod with a key kubeconfig. Empty means "kubeconfig".
	KubeconfigVolume string
	// KubeconfigSecret names a Secret that the minter reads by itself, instead of a volume.
	KubeconfigSecret string
	// OneShot mints the token once, before the other containers start.
	OneShot bool
}

const (
	cloudAudience      = "openshift"
	mintedTokenDir     = "/var/run/secrets/openshift/serviceaccount"
	kubernetesTokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenFile          = mintedTokenDir + "/token"

	// A token takes one request once the API server is there; 30 tries at 1 s let it start meanwhile.
	tokenProbePeriod   = 1
	tokenProbeFailures = 30
)

func (t *TokenMinter) inject(ctx WorkloadContext, pod *corev1.PodSpec) {
	if t.Type != APIServerToken && cloudTokens(ctx.HCP) {
		t.injectOne(ctx, pod, CloudToken, cloudAudience, mintedTokenDir)
	}
	if t.Type != CloudToken {
		t.injectOne(ctx, pod, APIServerToken, ctx.HCP.Spec.IssuerURL, kubernetesTokenDir)
	}
}

// cloudTokens says whether the cloud of a platform takes tokens of ServiceAccounts.
func cloudTokens(hcp *hyperv1.HostedControlPlane) bool {
	switch hcp.Spec.Platform.Type {
	case hyperv1.AWSPlatform, "GCP", hyperv1.AzurePlatform:
		return true
	}
	return false
}

func (t *TokenMinter) injectOne(ctx WorkloadContext, pod *corev1.PodSpec, kind TokenType, audience, mountPath string) {
	volume := string(kind) + "-token"
	c := corev1.Container{
		Name: volume + "-minter", Image: imageTokenMinter, Command: []string{sidecarCommand}, Resources: smallRequests(),
		Args: []string{
			"token-minter",
			"--token-audience=" + audience,
			"--service-account-namespace=" + t.ServiceAccountNamespace,
			"--service-account-name=" + t.ServiceAccountName,
			"--token-file=" + tokenFile,
		},
		VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: mintedTokenDir}},
	}
	if t.OneShot {
		c.Args = append(c.Args, "--oneshot")
	}
	if t.KubeconfigSecret != "" {
		c.Args = append(c.Args, "--kubeconfig-secret-namespace="+ctx.HCP.Namespace, "--kubeconfig-secret-name="+t.KubeconfigSecret)
	} else {
		name := t.KubeconfigVolume
		if name == "" {
			name = "kubeconfig"
		}
		c.Args = append(c.Args, "--kubeconfig=/etc/kubernetes/kubeconfig")
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/etc/kubernetes", ReadOnly: true})
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
	}})
	if len(pod.Containers) > 0 {
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: mountPath})
	}
	switch {
	case t.OneShot:
		pod.InitContainers = append(pod.InitContainers, c)
	case ctx.Management.NativeSidecars:
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		c.StartupProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{sidecarCommand, "token-minter", "check", "--token-file=" + tokenFile}}},
			PeriodSeconds: tokenProbePeriod, FailureThreshold: tokenProbeFailures,
		}
		pod.InitContainers = append(pod.InitContainers, c)
	default:
		pod.Containers = append(pod.Containers, c)
	}
}

// ProxyMode is a protocol that a konnectivity proxy speaks to the containers beside it.
type ProxyMode string

const (
	HTTPSProxy  ProxyMode = "https"
	Socks5Proxy ProxyMode = "socks5"
	DualProxy   ProxyMode = "dual"
)

// KonnectivityProxy asks for a proxy into the network of the hosted cluster.
type KonnectivityProxy struct {
	Mode ProxyMode
	// HTTPS and Socks5 are for one mode each.
	HTTPS  HTTPSProxyOptions
	Socks5 Socks5ProxyOptions
	// KubeconfigVolume names a volume of the pod with a key kubeconfig. Empty means "kubeconfig".
	KubeconfigVolume string
	// ConnectDirectlyToCloudAPIs reaches the APIs of the cloud from the management cluster.
	ConnectDirectlyToCloudAPIs bool
}

// HTTPSProxyOptions are the flags of the HTTP CONNECT proxy.
type HTTPSProxyOptions struct {
	ServingPort                    int32
	HTTPProxy, HTTPSProxy, NoProxy string
}

// Socks5ProxyOptions are the flags of the SOCKS proxy.
type Socks5ProxyOptions struct {
	ServingPort                     int32
	ResolveFromGuestClusterDNS      bool
	ResolveFromManagementClusterDNS bool
	DisableResolver                 bool
}

const (
	konnectivityPort       = 8090
	konnectivityCertVolume = "konnectivity-proxy-cert" // Secret konnectivity-client
	konnectivityCAVolume   = "konnectivity-proxy-ca"   // ConfigMap konnectivity-ca-bundle
	konnectivityCertDir    = "/etc/konnectivity/proxy-client"
	konnectivityCADir      = "/etc/konnectivity/proxy-ca"
	konnectivityKubeconfig = "/etc/kubernetes/secrets/kubeconfig"
	trustBundleDir         = "/etc/pki/tls/certs"
)

// inject adds the proxies, where the release has a tunnel for them to use.
func (k *KonnectivityProxy) inject(ctx WorkloadContext, pod *corev1.PodSpec) {
	if !TunnelOffered(ctx) {
		return
	}
	pod.Volumes = append(pod.Volumes, SecretVolume(konnectivityCertVolume, "konnectivity-client"), ConfigMapVolume(konnectivityCAVolume, "konnectivity-ca-bundle"))
	if k.Mode != Socks5Proxy {
		c := k.container(ctx, HTTPSProxy, k.HTTPS.ServingPort)
		for _, flag := range [][2]string{{"http-proxy", k.HTTPS.HTTPProxy}, {"https-proxy", k.HTTPS.HTTPSProxy}, {"no-proxy", k.HTTPS.NoProxy}} {
			if flag[1] != "" {
				c.Args = append(c.Args, "--"+flag[0]+"="+flag[1])
			}
		}
		pod.Containers = append(pod.Containers, c)
	}
	if k.Mode != HTTPSProxy {
		c := k.container(ctx, Socks5Proxy, k.Socks5.ServingPort)
		for _, flag := range []struct {
			name string
			on   bool
		}{
			{"resolve-from-guest-cluster-dns", k.Socks5.ResolveFromGuestClusterDNS},
			{"resolve-from-management-cluster-dns", k.Socks5.ResolveFromManagementClusterDNS},
			{"disable-resolver", k.Socks5.DisableResolver},
		} {
			if flag.on {
				c.Args = append(c.Args, "--"+flag.name)
			}
		}
		pod.Containers = append(pod.Containers, c)
	}
	addTrustBundles(ctx, pod)
}

// TunnelOffered says whether the release has a tunnel to the nodes of the hosted cluster.
func TunnelOffered(ctx WorkloadContext) bool {
	_, ok := ctx.Release.ImageFor("apiserver-network-proxy")
	return ok
}

func (k *KonnectivityProxy) container(ctx WorkloadContext, mode ProxyMode, port int32) corev1.Container {
	if port == 0 {
		port = konnectivityPort
	}
	name := "konnectivity-proxy-" + string(mode)
	volume := k.KubeconfigVolume
	if volume == "" {
		volume = "kubeconfig"
	}
	c := corev1.Container{
		Name: name, Image: ImageControlPlaneOperator, Resources: smallRequests(),
		Command: []string{sidecarCommand},
		Args: []string{
			"konnectivity-" + string(mode) + "-proxy", "run",
			"--konnectivity-hostname=konnectivity-server-local", "--konnectivity-port=" + strconv.Itoa(konnectivityPort),
			"--serving-port=" + strconv.Itoa(int(port)),
			"--ca-cert-path=" + konnectivityCADir + "/ca.crt",
			"--tls-cert-path=" + konnectivityCertDir + "/tls.crt", "--tls-key-path=" + konnectivityCertDir + "/tls.key",
		},
		Env: []corev1.EnvVar{{Name: "KUBECONFIG", Value: konnectivityKubeconfig + "/kubeconfig"}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: konnectivityCertVolume, MountPath: konnectivityCertDir, ReadOnly: true},
			{Name: konnectivityCAVolume, MountPath: konnectivityCADir, ReadOnly: true},
			{Name: volume, MountPath: konnectivityKubeconfig, ReadOnly: true},
		},
	}
	if k.ConnectDirectlyToCloudAPIs {
		c.Args = append(c.Args, "--connect-directly-to-cloud-apis")
	}
	if onlyIPv4(ctx.HCP) {
		c.Args = append(c.Args, "--prefer-ipv4")
	}
	return c
}

func onlyIPv4(hcp *hyperv1.HostedControlPlane) bool {
	for _, n := range hcp.Spec.Networking.ServiceNetwork {
		if strings.Contains(string(n.CIDR), ":") {
			return false
		}
	}
	return true
}

// addTrustBundles mounts the certificate authorities that the user wants trusted into the proxies.
func addTrustBundles(ctx WorkloadContext, pod *corev1.PodSpec) {
	bundle := ctx.HCP.Spec.AdditionalTrustBundle
	if bundle == nil {
		return
	}
	const volume = "additional-trust-bundle"
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: *bundle,
		Items:                []corev1.KeyToPath{{Key: "ca-bundle.crt", Path: "additional-ca-bundle.pem"}},
	}}})
	for i := range pod.Containers {
		if strings.HasPrefix(pod.Containers[i].Name, "konnectivity-proxy-") {
			pod.Containers[i].VolumeMounts = append(pod.Containers[i].VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: trustBundleDir, ReadOnly: true})
		}
	}
}
