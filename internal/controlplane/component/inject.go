package component

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/payload"
)

// AvailabilityProber asks for an init container that ends when the hosted API server answers.
type AvailabilityProber struct {
	// KubeconfigVolume names a volume of the pod with a key kubeconfig. It is needed for everything that follows.
	KubeconfigVolume string
	// RequiredAPIs must be served, and then those that RequiredAPIsOf a control plane are, unless it is nil.
	RequiredAPIs   []schema.GroupVersionKind
	RequiredAPIsOf func(*hyperv1.HostedControlPlane) []schema.GroupVersionKind
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
	c := corev1.Container{
		Name: proberContainer, Image: imageAvailabilityProber, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{operatorCommand, "availability-prober", "--target", InClusterURL(ctx.HCP) + "/readyz"},
	}
	if p.KubeconfigVolume != "" {
		c.VolumeMounts = []corev1.VolumeMount{{Name: p.KubeconfigVolume, MountPath: proberKubeconfigDir}}
		c.Command = append(c.Command, "--kubeconfig="+proberKubeconfigDir+"/kubeconfig")
		required := p.RequiredAPIs
		if p.RequiredAPIsOf != nil {
			required = slices.Concat(required, p.RequiredAPIsOf(ctx.HCP))
		}
		for _, api := range required {
			c.Command = append(c.Command, "--required-api="+api.Group+","+api.Version+","+api.Kind)
		}
		if p.WaitForInfrastructureResource {
			c.Command = append(c.Command, "--wait-for-infrastructure-resource")
		}
		if p.WaitForLabeledPodsGone != "" {
			c.Command = append(c.Command, "--wait-for-labeled-pods-gone="+p.WaitForLabeledPodsGone)
		}
		if p.WaitForClusterRoleBinding != "" {
			c.Command = append(c.Command, "--wait-for-cluster-rolebinding="+p.WaitForClusterRoleBinding)
		}
	}
	pod.InitContainers = slices.Insert(pod.InitContainers, 0, c)
}

// InClusterURL is the hosted API server as the pods beside it see it.
func InClusterURL(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.Platform.Type == hyperv1.IBMCloudPlatform {
		return "https://kube-apiserver:2040"
	}
	return "https://kube-apiserver:6443"
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
	// KubeconfigSecret names a Secret that the minter reads by itself, instead of a volume. It need not exist when the pod starts, so nobody waits for the token.
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
	if t.Type != APIServerToken && cloudTokens(ctx) {
		t.injectOne(ctx, pod, CloudToken, cloudAudience, mintedTokenDir)
	}
	if t.Type != CloudToken {
		t.injectOne(ctx, pod, APIServerToken, ctx.HCP.Spec.IssuerURL, kubernetesTokenDir)
	}
}

// cloudTokens says whether the cloud of a platform takes tokens of ServiceAccounts. On Azure Red Hat OpenShift components have managed identities
// instead.
func cloudTokens(ctx WorkloadContext) bool {
	switch ctx.HCP.Spec.Platform.Type {
	case hyperv1.AWSPlatform, hyperv1.GCPPlatform:
		return true
	case hyperv1.AzurePlatform:
		return ctx.Environment.ManagedService != AROHCP
	}
	return false
}

func (t *TokenMinter) injectOne(ctx WorkloadContext, pod *corev1.PodSpec, kind TokenType, audience, mountPath string) {
	volume := string(kind) + "-token"
	c := corev1.Container{
		Name: volume + "-minter", Image: imageTokenMinter, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{operatorCommand, "token-minter"}, Resources: smallRequests(),
		Args: []string{
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
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/etc/kubernetes"})
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
	case ctx.Management.NativeSidecars && t.KubeconfigSecret == "":
		// The others start once there is a token. They must not wait where the Secret may not exist yet: it is they who have it made, the control-plane-operator
		// by itself, and the pod would wait for itself forever.
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		c.StartupProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-f", tokenFile}}},
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
}

// HTTPSProxyOptions are the flags of the HTTP CONNECT proxy; that of the hosted cluster's own proxy is added.
type HTTPSProxyOptions struct {
	// ServingPort; 0 means the proxy's own default, 8090.
	ServingPort int32
	// ConnectDirectlyToCloudAPIs reaches the APIs of the cloud from the management cluster.
	ConnectDirectlyToCloudAPIs bool
}

// Socks5ProxyOptions are the flags of the SOCKS proxy.
type Socks5ProxyOptions struct {
	// ServingPort; 0 means the proxy's own default, 8090.
	ServingPort int32
	// ConnectDirectlyToCloudAPIs reaches the APIs of the cloud from the management cluster.
	ConnectDirectlyToCloudAPIs      bool
	ResolveFromGuestClusterDNS      bool
	ResolveFromManagementClusterDNS bool
	DisableResolver                 bool
}

const (
	konnectivityCertVolume = "konnectivity-proxy-cert" // Secret konnectivity-client
	konnectivityCAVolume   = "konnectivity-proxy-ca"   // ConfigMap konnectivity-ca-bundle
	konnectivityCertDir    = "/etc/konnectivity/proxy-client"
	konnectivityCADir      = "/etc/konnectivity/proxy-ca"
	konnectivityKubeconfig = "/etc/kubernetes/secrets/kubeconfig"
	trustBundleVolume      = "proxy-additional-trust-bundle"
)

// inject adds the proxies. Where the certificates and the server of the tunnel are is their default.
func (k *KonnectivityProxy) inject(ctx WorkloadContext, pod *corev1.PodSpec) {
	cert := SecretVolume(konnectivityCertVolume, "konnectivity-client")
	cert.Secret.DefaultMode = ptr.To(secretMode)
	pod.Volumes = append(pod.Volumes, cert, ConfigMapVolume(konnectivityCAVolume, "konnectivity-ca-bundle"))
	bundle := trustBundles(ctx.HCP)
	bundle.AddVolume(pod, trustBundleVolume)
	if k.Mode != Socks5Proxy {
		pod.Containers = append(pod.Containers, k.container(ctx, HTTPSProxy, bundle))
	}
	if k.Mode != HTTPSProxy {
		pod.Containers = append(pod.Containers, k.container(ctx, Socks5Proxy, bundle))
	}
}

// TunnelOffered says whether the release has a tunnel to the nodes of the hosted cluster.
func TunnelOffered(ctx WorkloadContext) bool {
	_, ok := ctx.Release.ImageFor("apiserver-network-proxy")
	return ok
}

func (k *KonnectivityProxy) container(ctx WorkloadContext, mode ProxyMode, bundle *TrustedFiles) corev1.Container {
	c := corev1.Container{
		Name: "konnectivity-proxy-" + string(mode), Image: ImageControlPlaneOperator, Resources: smallRequests(),
		Command: []string{operatorCommand, "konnectivity-" + string(mode) + "-proxy"},
		Args:    k.args(ctx.HCP, mode),
		Env:     []corev1.EnvVar{{Name: "KUBECONFIG", Value: konnectivityKubeconfig + "/kubeconfig"}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: cmp.Or(k.KubeconfigVolume, "kubeconfig"), MountPath: konnectivityKubeconfig},
			{Name: konnectivityCertVolume, MountPath: konnectivityCertDir},
			{Name: konnectivityCAVolume, MountPath: konnectivityCADir},
		},
	}
	if k.direct(mode) {
		ManagementProxy(ctx, &c)
	}
	bundle.Mount(&c, trustBundleVolume)
	return c
}

// direct says whether a proxy reaches the APIs of the cloud from the management cluster.
func (k *KonnectivityProxy) direct(mode ProxyMode) bool {
	return mode == HTTPSProxy && k.HTTPS.ConnectDirectlyToCloudAPIs || mode == Socks5Proxy && k.Socks5.ConnectDirectlyToCloudAPIs
}

// args are the flags of a proxy, without those that have their default.
func (k *KonnectivityProxy) args(hcp *hyperv1.HostedControlPlane, mode ProxyMode) []string {
	args := []string{"run"}
	port := k.HTTPS.ServingPort
	if mode == Socks5Proxy {
		port = k.Socks5.ServingPort
	}
	if port != 0 {
		args = append(args, "--serving-port="+strconv.Itoa(int(port)))
	}
	if c := hcp.Spec.Configuration; mode == HTTPSProxy && c != nil && c.Proxy != nil {
		args = append(args, "--http-proxy", c.Proxy.HTTPProxy, "--https-proxy", c.Proxy.HTTPSProxy, "--no-proxy", strings.Join(payload.NoProxy(hcp), ","))
	}
	for _, flag := range []struct {
		name string
		on   bool
	}{
		{"connect-directly-to-cloud-apis", k.direct(mode)},
		{"resolve-from-guest-cluster-dns", mode == Socks5Proxy && k.Socks5.ResolveFromGuestClusterDNS},
		{"resolve-from-management-cluster-dns", mode == Socks5Proxy && k.Socks5.ResolveFromManagementClusterDNS},
		{"disable-resolver", mode == Socks5Proxy && k.Socks5.DisableResolver},
		{"prefer-ipv4", onlyIPv4(hcp)},
	} {
		if flag.on {
			args = append(args, "--"+flag.name+"=true")
		}
	}
	return args
}

// onlyIPv4 says whether there are networks of Services, and all are IPv4.
func onlyIPv4(hcp *hyperv1.HostedControlPlane) bool {
	for _, n := range hcp.Spec.Networking.ServiceNetwork {
		if strings.Contains(string(n.CIDR), ":") {
			return false
		}
	}
	return len(hcp.Spec.Networking.ServiceNetwork) > 0
}

// trustBundles are the certificate authorities that the user wants trusted.
func trustBundles(hcp *hyperv1.HostedControlPlane) *TrustedFiles {
	files := &TrustedFiles{}
	if bundle := hcp.Spec.AdditionalTrustBundle; bundle != nil {
		files.Add(bundle.Name, corev1.KeyToPath{Key: names.CABundleKey, Path: "additional-ca-bundle.pem"})
	}
	if c := hcp.Spec.Configuration; c != nil && c.Proxy != nil && c.Proxy.TrustedCA.Name != "" {
		files.Add(c.Proxy.TrustedCA.Name, corev1.KeyToPath{Key: names.CABundleKey, Path: "proxy-trusted-ca.pem"})
	}
	return files
}

// ManagementProxy has a container use the proxy of the management cluster, for all but kube-apiserver, exceptions and what the operator itself
// reaches without. Where there is no proxy the variables are taken from the container.
func ManagementProxy(ctx WorkloadContext, c *corev1.Container, exceptions ...string) {
	p := ctx.Environment.Proxy
	c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool {
		return slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, e.Name)
	})
	if p.HTTP == "" && p.HTTPS == "" {
		return
	}
	not := append([]string{"kube-apiserver"}, exceptions...)
	if p.No != "" {
		not = append(not, strings.Split(p.No, ",")...)
	}
	slices.Sort(not)
	for _, v := range []corev1.EnvVar{{Name: "HTTP_PROXY", Value: p.HTTP}, {Name: "HTTPS_PROXY", Value: p.HTTPS}, {Name: "NO_PROXY", Value: strings.Join(slices.Compact(not), ",")}} {
		if v.Value != "" {
			c.Env = append(c.Env, v)
		}
	}
}
