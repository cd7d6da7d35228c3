package pkioperator

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/pki"
)

// requests approves and signs CertificateSigningRequests.
type requests struct{ config }

// Reconcile answers the CertificateSigningRequest of the request's name.
func (r *requests) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	csr, err := read(ctx, r.client, "", req.Name, &certificatesv1.CertificateSigningRequest{})
	if err != nil || csr == nil {
		return ctrl.Result{}, err
	}
	s, ours := signerOf(r.namespace, csr.Spec.SignerName)
	if !ours {
		return ctrl.Result{}, nil
	}
	consent, err := read(ctx, r.client, r.namespace, csr.Name, &certificatesv1alpha1.CertificateSigningRequestApproval{})
	if err != nil {
		return ctrl.Result{}, err
	}
	approved := consent != nil && isFor(consent, csr)
	if consent != nil && !approved && len(csr.Status.Conditions) == 0 {
		events.Event(r.events, consent, true, outdatedReason, "Approve", fmt.Sprintf(
			"CertificateSigningRequest %s is not approved: it was created later than this. If it is the one that you mean, delete this object and create it anew", csr.Name))
	}
	ca, err := r.authority(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.clock.Now()
	a, err := decide(s, csr, approved, ca, r.day, r.source())
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("signing CertificateSigningRequest %s: %w", csr.Name, err)
	}
	switch {
	case a.approve:
		csr.Status.Conditions = append(csr.Status.Conditions, approval(now))
		return r.write(ctx, csr, "approval", "approved")
	case a.failure != "":
		csr.Status.Conditions = append(csr.Status.Conditions, failed(a.failure, now))
		return r.write(ctx, csr, "status", "refused")
	case len(a.certificate) > 0:
		if err := r.clocks.Err(); err != nil {
			return ctrl.Result{}, fmt.Errorf("CertificateSigningRequest %s is not signed: %w", csr.Name, err)
		}
		csr.Status.Certificate = a.certificate
		return r.write(ctx, csr, "status", "signed")
	}
	return ctrl.Result{}, nil // approved and waiting for the authority: its event asks again
}

func (r *requests) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, subresource, what string) (ctrl.Result, error) {
	apply.Count("CertificateSigningRequest", "update", names.PKIOperator)
	err := r.client.SubResource(subresource).Update(ctx, csr, client.FieldOwner(names.PKIOperator))
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("writing the %s of CertificateSigningRequest %s: %w", subresource, csr.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info(what, "certificateSigningRequest", csr.Name, "signer", csr.Spec.SignerName, "by", csr.Spec.Username)
	return ctrl.Result{}, nil
}

// authority is the one that signs, nil while kube-apiserver is not given it to trust.
func (r *requests) authority(ctx context.Context, s signer) (*authority, error) {
	secret, err := read(ctx, r.client, r.namespace, s.secret, &corev1.Secret{})
	if err != nil {
		return nil, err
	}
	ca, err := parseAuthority(secret)
	if err != nil || secret.Annotations[notAfterAnnotation] == forceRegeneration {
		return nil, nil //nolint:nilerr // because a broken one is made anew by the controller of rotation
	}
	trusted, err := read(ctx, r.client, r.namespace, pki.TotalClientCABundle, &corev1.ConfigMap{})
	if err != nil || !has(parseBundle(trusted, names.CABundleKey), ca.cert) {
		return nil, err
	}
	return &ca, nil
}
