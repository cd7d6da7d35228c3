package hostedcontrolplane

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/ignition/clusterconfig"
	"hcp.internal/platform/internal/pki"
)

// managedTrustBundle are, under names.CABundleKey, all authorities that machines trust, where somebody has put them together.
const managedTrustBundle = "trusted-ca-bundle-managed"

// keepNodeConfig writes what machines of an OpenShift release are configured with: the description of the cluster for the release's tools, and the core
// configurations. Those of Kubernetes releases are written by the component ignition-server. It waits for the authorities and the address of the API.
func (r *Reconciler) keepNodeConfig(ctx context.Context, obs *Observed) error {
	hcp := obs.HCP
	if obs.UserRelease == nil || obs.UserRelease.Kubernetes || hcp.Status.ControlPlaneEndpoint.Host == "" {
		return nil
	}
	in := clusterconfig.Input{HCP: hcp}
	var err error
	for into, from := range map[*string][2]string{
		&in.RootCA: {pki.RootCABundle, pki.CACertKey}, &in.KubeletClientCA: {pki.KubeletCABundle, pki.CACertKey},
	} {
		if *into, err = r.configMapKey(ctx, hcp.Namespace, from[0], from[1]); err != nil {
			return err
		}
	}
	if in.RootCA == "" || in.KubeletClientCA == "" {
		return nil // the certificates of the next pass
	}
	if in.TrustBundle, err = r.machineTrust(ctx, obs); err != nil {
		return err
	}
	if hcp.Spec.SSHKey.Name != "" {
		secret := &corev1.Secret{}
		found, err := r.get(ctx, hcp.Namespace, names.SSHKey, secret)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("waiting for Secret %s/%s, the copy of spec.sshKey of the HostedCluster", hcp.Namespace, names.SSHKey)
		}
		in.SSHKey = strings.TrimSpace(string(secret.Data[names.SSHPublicKey]))
	}
	configMaps, err := clusterconfig.Objects(in)
	if err != nil {
		return fmt.Errorf("describing the cluster to machines: %w", err)
	}
	var objects []client.Object
	for _, cm := range configMaps {
		cm.OwnerReferences = []metav1.OwnerReference{ownerReference(hcp)}
		objects = append(objects, cm)
	}
	if err := r.applier().All(ctx, objects...); err != nil {
		return fmt.Errorf("describing the cluster to machines: %w", err)
	}
	return nil
}

// machineTrust are the authorities that machines trust besides those of their system: the user's own, and those behind the proxy.
func (r *Reconciler) machineTrust(ctx context.Context, obs *Observed) (string, error) {
	hcp := obs.HCP
	if managed, err := r.configMapKey(ctx, hcp.Namespace, managedTrustBundle, names.CABundleKey); err != nil || managed != "" {
		return managed, err
	}
	var sources []string
	if hcp.Spec.AdditionalTrustBundle != nil {
		sources = append(sources, names.UserCABundle)
	}
	if c := hcp.Spec.Configuration; c != nil && c.Proxy != nil && c.Proxy.TrustedCA.Name != "" {
		sources = append(sources, c.Proxy.TrustedCA.Name)
	}
	bundle := ""
	for _, name := range sources {
		text, err := r.configMapKey(ctx, hcp.Namespace, name, names.CABundleKey)
		if err != nil {
			return "", err
		}
		if text != "" {
			bundle += strings.TrimSpace(text) + "\n"
		}
	}
	return bundle, nil
}

// configMapKey is a key of a ConfigMap; empty when there is none.
func (r *Reconciler) configMapKey(ctx context.Context, namespace, name, key string) (string, error) {
	cm := &corev1.ConfigMap{}
	_, err := r.get(ctx, namespace, name, cm)
	return cm.Data[key], err
}
