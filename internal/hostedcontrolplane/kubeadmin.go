package hostedcontrolplane

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
)

// kubeadminPassword is the Secret, with key passwordKey, of the first administrator: who logs in by the OAuth server until the user configures it.
const kubeadminPassword, passwordKey = "kubeadmin-password", "password"

// passwordLetters are those of passwords: none that looks like another.
const passwordLetters = "abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789"

// newPassword is four groups of five letters and a dash between them.
func newPassword() (string, error) {
	password := make([]byte, 23)
	for i := range password {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(passwordLetters))))
		if err != nil {
			return "", fmt.Errorf("making a password: %w", err)
		}
		password[i] = passwordLetters[n.Int64()]
	}
	for _, i := range []int{5, 11, 17} {
		password[i] = '-'
	}
	return string(password), nil
}

// keepKubeadmin makes the password once, and takes it away when spec.configuration.oauth says who logs in. Releases without an OAuth server have none.
func (r *Reconciler) keepKubeadmin(ctx context.Context, obs *Observed) error {
	hcp := obs.HCP
	if obs.Flavour != openShift {
		return nil
	}
	secret := &corev1.Secret{}
	found, err := r.get(ctx, hcp.Namespace, kubeadminPassword, secret)
	if err != nil {
		return err
	}
	c := hcp.Spec.Configuration
	wanted := kit.OAuthEnabled(hcp) && (c == nil || c.OAuth == nil)
	obs.Kubeadmin = ptr.To(wanted)
	switch {
	case wanted && !found:
		password, err := newPassword()
		if err != nil {
			return err
		}
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: kubeadminPassword, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(hcp, hyperv1.GroupVersion.WithKind("HostedControlPlane"))}},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{passwordKey: []byte(password)},
		}
		// Created, never applied: one that another pass made stays.
		if err := r.Client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making Secret %s: %w", kubeadminPassword, err)
		}
	case !wanted && found:
		err := r.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Secret %s: %w", kubeadminPassword, err)
		}
	}
	return nil
}

// reportKubeadmin says where the password is.
func reportKubeadmin(status *hyperv1.HostedControlPlaneStatus, obs Observed) {
	switch {
	case obs.Kubeadmin == nil: // not looked at in this pass, or no OAuth server
	case *obs.Kubeadmin:
		status.KubeadminPassword = &corev1.LocalObjectReference{Name: kubeadminPassword}
	default:
		status.KubeadminPassword = nil
	}
}
