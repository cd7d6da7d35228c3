package issuers

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/net/http/httpproxy"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/konnectivity"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/sidecar/kubeapi"
	"hcp.internal/platform/internal/sidecar/tunnelproxy"
)

const (
	// tunnelPort is where the konnectivity server takes requests for tunnels.
	tunnelPort = "8090"
	// clientCA is the key of a provider's ConfigMap with authorities, bundleKey that of a proxy's.
	clientCA  = "ca.crt"
	bundleKey = "ca-bundle.crt"
)

// Path leads to issuers as the OAuth server itself reaches them: by the tunnel, and by the proxy of the hosted cluster.
type Path struct {
	// Reader reads Secrets and ConfigMaps of the control plane.
	Reader client.Reader
	HCP    *hyperv1.HostedControlPlane
	// NoProxy are the destinations that the hosted cluster reaches without its proxy, separated by commas.
	NoProxy string
	// Server is host:port of the konnectivity server; empty: that of the control plane.
	Server string
}

// Asker reads what the connection needs. The error says what there isn't yet.
func (p Path) Asker(ctx context.Context) (Asker, error) {
	certificate, authorities, kubeconfig := &corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Secret{}
	for _, part := range []struct {
		kind, name string
		into       client.Object
	}{{"Secret", pki.KonnectivityClient, certificate}, {"ConfigMap", pki.KonnectivityCABundle, authorities}, {"Secret", names.ServiceNetworkKubeconfig, kubeconfig}} {
		switch found, err := p.read(ctx, part.name, part.into); {
		case err != nil:
			return nil, fmt.Errorf("issuers can't be asked: reading %s %s: %w", part.kind, part.name, err)
		case !found:
			return nil, fmt.Errorf("issuers can't be asked yet: %s %s, which the tunnel into the hosted cluster needs, is not there", part.kind, part.name)
		}
	}
	server := p.Server
	if server == "" {
		server = net.JoinHostPort(endpoints.KonnectivityLocalServiceName+"."+p.HCP.Namespace+".svc", tunnelPort)
	}
	tunnel, err := konnectivity.NewDialerFrom(server, certificate.Data[corev1.TLSCertKey], certificate.Data[corev1.TLSPrivateKeyKey], []byte(authorities.Data[pki.CACertKey]))
	if err != nil {
		return nil, fmt.Errorf("issuers can't be asked: %w", err)
	}
	dialer := &tunnelproxy.Dialer{
		Tunnel: tunnel.DialContext, ResolveFromGuestClusterDNS: true, ResolveFromManagementClusterDNS: true,
		LookupHost: net.DefaultResolver.LookupHost,
		API: func() (*kubeapi.Client, error) {
			return kubeapi.FromKubeconfigBytes(kubeconfig.Data[pki.KubeconfigKey])
		},
	}
	asker := &Client{Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		return dialer.DialContext(ctx, "https", address)
	}}
	if c := p.HCP.Spec.Configuration; c != nil && c.Proxy != nil {
		dialer.GuestProxy = httpproxy.Config{HTTPProxy: c.Proxy.HTTPProxy, HTTPSProxy: c.Proxy.HTTPSProxy, NoProxy: p.NoProxy}
		if name := c.Proxy.TrustedCA.Name; name != "" {
			bundle := &corev1.ConfigMap{}
			if _, err := p.read(ctx, name, bundle); err != nil {
				return nil, fmt.Errorf("issuers can't be asked: reading ConfigMap %s (spec.configuration.proxy.trustedCA.name): %w", name, err)
			}
			asker.Trust = append([]byte(bundle.Data[bundleKey]), bundle.BinaryData[bundleKey]...)
		}
	}
	return asker, nil
}

func (p Path) read(ctx context.Context, name string, into client.Object) (bool, error) {
	err := p.Reader.Get(ctx, client.ObjectKey{Namespace: p.HCP.Namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		err = errors.New(string(status.Status().Reason))
	}
	return err == nil, err
}

// CA is the content of a provider's ConfigMap with authorities.
func CA(cm *corev1.ConfigMap) []byte {
	if text := cm.Data[clientCA]; text != "" {
		return []byte(text)
	}
	return cm.BinaryData[clientCA]
}
