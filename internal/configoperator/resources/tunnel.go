package resources

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/contract/images"
)

// Tunnel is where agents find the tunnel's servers and how they prove who they are.
type Tunnel struct {
	Host string
	Port int32
	// CA, Cert and Key are PEM, copied from the control plane namespace.
	CA, Cert, Key []byte
}

// TunnelAgents run on every node, so that the control plane reaches it.
func TunnelAgents(in Input) ([]client.Object, error) {
	image, ok := in.Images[images.TunnelAgent]
	if !ok || in.Tunnel.Host == "" {
		return nil, nil
	}
	if len(in.Tunnel.CA) == 0 || len(in.Tunnel.Cert) == 0 || len(in.Tunnel.Key) == 0 {
		return nil, errors.New("the control plane has no certificate for agents yet: Secret konnectivity-agent or ConfigMap konnectivity-ca-bundle is missing")
	}
	objects := load("konnectivity-agent.yaml")
	find[*corev1.Secret](objects).Data = map[string][]byte{corev1.TLSCertKey: in.Tunnel.Cert, corev1.TLSPrivateKeyKey: in.Tunnel.Key}
	find[*corev1.ConfigMap](objects).Data = map[string]string{"ca.crt": string(in.Tunnel.CA)}
	template := &find[*appsv1.DaemonSet](objects).Spec.Template
	template.Spec.Containers[0].Args = append(template.Spec.Containers[0].Args,
		"--proxy-server-host="+in.Tunnel.Host, "--proxy-server-port="+strconv.Itoa(int(in.Tunnel.Port)))
	// The authority alone: agents read a renewed certificate again by themselves, stock ones at their next restart.
	complete(template, image, string(in.Tunnel.CA))
	return objects, nil
}

// systemNamespace lets pods of ours on nodes have the rights that they need, whatever is the default of the cluster.
func systemNamespace(Input) ([]client.Object, error) {
	return []client.Object{&corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "privileged",
			"pod-security.kubernetes.io/audit":   "privileged",
			"pod-security.kubernetes.io/warn":    "privileged",
		}},
	}}, nil
}

// nodeKubeconfig is for programs that make the network of a node and so can't use Service kubernetes: they go to the
// published API with their ServiceAccount's token.
func nodeKubeconfig(in Input) (string, error) {
	published := in.HCP.Status.ControlPlaneEndpoint
	if published.Host == "" || published.Port == 0 {
		return "", errors.New("status.controlPlaneEndpoint of the HostedControlPlane isn't known yet")
	}
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	data, err := yaml.Marshal(clientcmdv1.Config{
		APIVersion: clientcmdv1.SchemeGroupVersion.String(), Kind: "Config", CurrentContext: "default",
		Clusters: []clientcmdv1.NamedCluster{{Name: "default", Cluster: clientcmdv1.Cluster{
			Server: "https://" + net.JoinHostPort(published.Host, strconv.Itoa(int(published.Port))), CertificateAuthority: account + "ca.crt",
		}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: "default", AuthInfo: clientcmdv1.AuthInfo{TokenFile: account + "token"}}},
		Contexts:  []clientcmdv1.NamedContext{{Name: "default", Context: clientcmdv1.Context{Cluster: "default", AuthInfo: "default"}}},
	})
	if err != nil {
		return "", fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	if _, err := clientcmd.Load(data); err != nil {
		return "", fmt.Errorf("checking a kubeconfig: %w", err)
	}
	return string(data), nil
}
