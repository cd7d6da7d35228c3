package pki

import (
	"fmt"
	"net"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hcp.internal/platform/internal/contract/names"
)

// kubeconfig is a Secret that holds a kubeconfig.
type kubeconfig struct {
	secret, key string
	client      string // Secret of the client certificate
	server      string
	labels      map[string]string
	// namedCertificates is true for the one that users get: it also trusts the certificates they configured for the API.
	namedCertificates bool
}

// ServerURL is where an API server is reached; an IPv6 address is put in brackets.
func ServerURL(host string, port int32) string {
	return "https://" + net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// kubeconfigs that can be made with what is known now.
func (s Spec) kubeconfigs() []kubeconfig {
	if !s.keepsKubeconfigs() {
		return nil
	}
	internal := ServerURL(names.KubeAPIServer, s.InternalAPIPort)
	localhost := ServerURL("localhost", s.PodAPIPort)
	scope := func(v string) map[string]string { return map[string]string{KubeconfigScopeLabel: v} }

	all := []kubeconfig{
		{secret: names.ServiceNetworkKubeconfig, key: KubeconfigKey, client: SystemAdminClient, server: internal, labels: scope("local")},
		{secret: LocalhostKubeconfig, key: KubeconfigKey, client: SystemAdminClient, server: localhost, labels: scope("local")},
		{secret: HCCOKubeconfig, key: KubeconfigKey, client: HCCOClient, server: internal},
		{secret: KASBootstrapKubeconfig, key: KubeconfigKey, client: KASBootstrapClient, server: localhost},
		{secret: KCMKubeconfig, key: KubeconfigKey, client: KCMClient, server: internal},
		{secret: SchedulerKubeconfig, key: KubeconfigKey, client: SchedulerClient, server: internal},
	}
	if s.InfraID != "" {
		all = append(all, kubeconfig{secret: CAPIKubeconfig(s.InfraID), key: CAPIKubeconfigKey, client: SystemAdminClient, server: internal,
			labels: map[string]string{capiClusterLabel: s.InfraID}})
	}
	if s.APIHost == "" {
		return all
	}
	name, key := s.AdminKubeconfigRef()
	all = append(all,
		kubeconfig{secret: name, key: key, client: SystemAdminClient, server: ServerURL(s.APIHost, s.APIPort), labels: scope("external"), namedCertificates: true},
		kubeconfig{secret: NodeBootstrapKubeconfig, key: KubeconfigKey, client: NodeBootstrapClient, server: ServerURL(s.APIHost, s.APIPort), labels: scope("bootstrap")})
	if s.CustomAPIHost != "" {
		all = append(all, kubeconfig{secret: CustomAdminKubeconfig, key: KubeconfigKey, client: SystemAdminClient,
			server: ServerURL(s.CustomAPIHost, s.APIPort), labels: scope("external"), namedCertificates: true})
	}
	return all
}

// AdminKubeconfigRef is the Secret and key under which the admin kubeconfig is published.
func (s Spec) AdminKubeconfigRef() (name, key string) {
	name, key = AdminKubeconfig, KubeconfigKey
	if s.AdminKubeconfigName != "" {
		name = s.AdminKubeconfigName
	}
	if s.AdminKubeconfigKey != "" {
		key = s.AdminKubeconfigKey
	}
	return name, key
}

// RenderKubeconfig is a kubeconfig for one server and one client certificate, all in PEM. It gives the same bytes for the same input.
func RenderKubeconfig(server string, caPEM, certPEM, keyPEM []byte) ([]byte, error) {
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["cluster"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caPEM}
	cfg.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
	cfg.Contexts["admin"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "admin", Namespace: "default"}
	cfg.CurrentContext = "admin"
	out, err := clientcmd.Write(*cfg)
	if err != nil {
		return nil, fmt.Errorf("rendering kubeconfig for %s: %w", server, err)
	}
	return out, nil
}
