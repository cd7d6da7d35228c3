package configoperator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/configoperator/resources"
	"hcp.internal/platform/internal/pki"
)

// observeTunnel reads what agents on nodes need. What is missing is left empty, for the plan to report.
func (r *Reconciler) observeTunnel(ctx context.Context, namespace string) (resources.Tunnel, error) {
	tunnel := resources.Tunnel{Host: r.TunnelHost, Port: r.TunnelPort}
	if r.TunnelHost == "" {
		return tunnel, nil
	}
	secret, bundle := &corev1.Secret{}, &corev1.ConfigMap{}
	if err := r.Management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pki.KonnectivityAgent}, secret); client.IgnoreNotFound(err) != nil {
		return tunnel, fmt.Errorf("reading Secret %s/%s: %w", namespace, pki.KonnectivityAgent, err)
	}
	if err := r.Management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pki.KonnectivityCABundle}, bundle); client.IgnoreNotFound(err) != nil {
		return tunnel, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, pki.KonnectivityCABundle, err)
	}
	tunnel.Cert, tunnel.Key, tunnel.CA = secret.Data[pki.TLSCertKey], secret.Data[pki.TLSKeyKey], []byte(bundle.Data[pki.CACertKey])
	return tunnel, nil
}
