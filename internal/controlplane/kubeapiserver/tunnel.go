package kubeapiserver

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/settings"
	"hcp.internal/platform/internal/endpoints"
)

// The tunnel by which kube-apiserver reaches nodes, pods and Services of the hosted cluster: a server in the pod, and the file
// that makes kube-apiserver use it.
const (
	tunnelContainer = "konnectivity-server"
	tunnelImage     = "apiserver-network-proxy" // tag of the release

	egressConfigMap = "kas-egress-selector-config"
	egressKey       = "config.yaml"
	egressDir       = "/etc/kubernetes/egress-selector"

	tunnelServerDir  = "/etc/konnectivity/server"
	tunnelClusterDir = "/etc/konnectivity/cluster"
	tunnelCADir      = "/etc/konnectivity/ca"
	tunnelClientDir  = "/etc/kubernetes/certs/konnectivity-client"
	tunnelClientCA   = "/etc/kubernetes/certs/konnectivity-ca"

	tunnelHealthPort int32 = 2041
	tunnelAdminPort  int32 = 8093
)

// tunnelled says whether this control plane has a tunnel: the release offers one, and agents have an address to dial.
func tunnelled(ctx component.WorkloadContext) (bool, error) {
	return component.TunnelOffered(ctx) && ctx.Infra.KonnectivityHost != "", nil
}

// adaptEgressSelector writes which connections go through the tunnel: those into the cluster network, and no others.
func adaptEgressSelector(_ component.WorkloadContext, cm *corev1.ConfigMap) error {
	direct := apiserverv1beta1.Connection{ProxyProtocol: apiserverv1beta1.ProtocolDirect}
	data, err := yaml.Marshal(apiserverv1beta1.EgressSelectorConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1beta1.SchemeGroupVersion.String(), Kind: "EgressSelectorConfiguration"},
		EgressSelections: []apiserverv1beta1.EgressSelection{
			{Name: "controlplane", Connection: direct},
			{Name: "etcd", Connection: direct},
			{Name: "cluster", Connection: apiserverv1beta1.Connection{
				ProxyProtocol: apiserverv1beta1.ProtocolHTTPConnect,
				Transport: &apiserverv1beta1.Transport{TCP: &apiserverv1beta1.TCPTransport{
					URL: fmt.Sprintf("https://%s:%d", endpoints.KonnectivityLocalServiceName, endpoints.KonnectivityLocalPort),
					TLSConfig: &apiserverv1beta1.TLSConfig{
						CABundle: tunnelClientCA + "/ca.crt", ClientCert: tunnelClientDir + "/tls.crt", ClientKey: tunnelClientDir + "/tls.key",
					},
				}},
			}},
		},
	})
	if err != nil {
		return fmt.Errorf("encoding the egress selector: %w", err)
	}
	cm.Data = map[string]string{egressKey: string(data)}
	return nil
}

// addTunnel adds the server beside kube-apiserver, and gives both what they need to know each other.
func addTunnel(ctx component.WorkloadContext, d *appsv1.Deployment) {
	pod := &d.Spec.Template.Spec
	main := component.Container(pod, container)
	main.Args = append(main.Args, "--egress-selector-config-file="+egressDir+"/"+egressKey)
	pod.Containers = append(pod.Containers, tunnelServer(ctx))

	component.AddVolume(pod, container, component.ConfigMapVolume("egress-selector-config", egressConfigMap), egressDir)
	component.AddVolume(pod, container, component.SecretVolume("konnectivity-client", "konnectivity-client"), tunnelClientDir)
	ca := component.ConfigMapVolume("konnectivity-ca", "konnectivity-ca-bundle")
	component.AddVolume(pod, container, ca, tunnelClientCA)
	component.AddVolume(pod, tunnelContainer, component.SecretVolume("konnectivity-server", "konnectivity-server"), tunnelServerDir)
	component.AddVolume(pod, tunnelContainer, component.SecretVolume("konnectivity-cluster", "konnectivity-cluster"), tunnelClusterDir)
	server := component.Container(pod, tunnelContainer)
	server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: ca.Name, MountPath: tunnelCADir, ReadOnly: true})
}

func tunnelServer(ctx component.WorkloadContext) corev1.Container {
	servers := 1
	if ctx.HighlyAvailable() {
		servers = 3 // as many as kube-apiservers
	}
	tls := settings.TLSOf(ctx.HCP)
	args := []string{
		"--mode=http-connect",
		fmt.Sprintf("--server-port=%d", endpoints.KonnectivityLocalPort),
		fmt.Sprintf("--agent-port=%d", endpoints.KonnectivityPort),
		fmt.Sprintf("--health-port=%d", tunnelHealthPort),
		fmt.Sprintf("--admin-port=%d", tunnelAdminPort),
		"--server-cert=" + tunnelServerDir + "/tls.crt", "--server-key=" + tunnelServerDir + "/tls.key", "--server-ca-cert=" + tunnelCADir + "/ca.crt",
		"--cluster-cert=" + tunnelClusterDir + "/tls.crt", "--cluster-key=" + tunnelClusterDir + "/tls.key", "--cluster-ca-cert=" + tunnelCADir + "/ca.crt",
		"--proxy-strategies=destHost,defaultRoute",
		"--keepalive-time=30s", "--frontend-keepalive-time=30s",
		fmt.Sprintf("--server-count=%d", servers),
		"--log-file-max-size=0",
	}
	args = append(args, "--tls-min-version="+tls.MinVersion)
	if len(tls.CipherSuites) > 0 {
		args = append(args, "--cipher-suites="+strings.Join(tls.CipherSuites, ","))
	}
	image := tunnelImage
	if override := strings.TrimSpace(ctx.HCP.Annotations[hyperv1.KonnectivityServerImageAnnotation]); override != "" {
		image = override
	}
	// kube-apiserver goes on for its shutdown delay, and so do tunnels that it has.
	sleep := int64(5)
	switch {
	case ctx.HighlyAvailable() && ownTunnel(ctx.HCP):
		// Agents have met as many servers as there are, and look for the one in its place when this one tells them that it ends: at once, not when it is gone.
		sleep = 0
		args = append(args, "--shutdown-delay=65s")
	case ctx.HighlyAvailable():
		sleep = 70
	}
	return corev1.Container{
		Name: tunnelContainer, Image: image,
		Command: []string{"/usr/bin/proxy-server"}, Args: args,
		Ports: []corev1.ContainerPort{
			{Name: "tunnel", ContainerPort: endpoints.KonnectivityLocalPort, Protocol: corev1.ProtocolTCP},
			{Name: "agents", ContainerPort: endpoints.KonnectivityPort, Protocol: corev1.ProtocolTCP},
			{Name: "tunnel-health", ContainerPort: tunnelHealthPort, Protocol: corev1.ProtocolTCP},
		},
		Lifecycle: preStop(sleep),
		LivenessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(tunnelHealthPort), Scheme: corev1.URISchemeHTTP}},
			InitialDelaySeconds: 120, PeriodSeconds: 60, TimeoutSeconds: 30, FailureThreshold: 3,
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
		}},
	}
}

// ownTunnel tells that the server is ours. The stock one, which annotations can name, doesn't know our flags and ends with its first signal.
func ownTunnel(hcp *hyperv1.HostedControlPlane) bool {
	for pair := range strings.SplitSeq(hcp.Annotations[hyperv1.ImageOverridesAnnotation], ",") {
		if tag, _, _ := strings.Cut(pair, "="); strings.TrimSpace(tag) == tunnelImage {
			return false
		}
	}
	return strings.TrimSpace(hcp.Annotations[hyperv1.KonnectivityServerImageAnnotation]) == ""
}

// preStop has a container sleep before it is told to end. The kubelet does it: images have no shell.
func preStop(seconds int64) *corev1.Lifecycle {
	if seconds == 0 {
		return nil
	}
	return &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}}
}
