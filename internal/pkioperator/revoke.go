package pkioperator

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/pki"
)

const (
	// revocationPoll is how often API servers are asked; nobody tells of what they trust.
	revocationPoll = 10 * time.Second
	// maxSecrets bounds the list of a namespace that holds about a hundred.
	maxSecrets = 2000
)

// asker asks every API server of the control plane about two client certificates.
type asker interface {
	// Accepted says whether all servers accept the newer certificate, and whether any accepts the older. ok is false when not all of them
	// could be asked.
	Accepted(ctx context.Context, newer, older *authority) (a, b, ok bool, err error)
}

// revocations carries out CertificateRevocationRequests.
type revocations struct {
	config
	servers asker
}

// Reconcile makes one step.
func (r *revocations) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	request, err := read(ctx, r.client, req.Namespace, req.Name, &certificatesv1alpha1.CertificateRevocationRequest{})
	if err != nil || request == nil || !request.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	obs, err := r.observe(ctx, request)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := nextMove(obs, r.clock.Now())
	if next.ask {
		if next, err = r.ask(ctx, obs, next); err != nil {
			return ctrl.Result{}, err
		}
	}
	err = r.carryOut(ctx, obs, next)
	switch {
	case err != nil, next.done:
		return ctrl.Result{}, err
	case next.status != nil || next.copySigner || next.bundle != nil:
		return ctrl.Result{RequeueAfter: outcome.Soon}, nil // the next step may be ready
	}
	return ctrl.Result{RequeueAfter: revocationPoll}, nil
}

func (r *revocations) observe(ctx context.Context, request *certificatesv1alpha1.CertificateRevocationRequest) (observedRevocation, error) {
	obs := observedRevocation{namespace: r.namespace, request: request}
	s, known := signerOfClass(request.Spec.SignerClass)
	if !known {
		return obs, nil
	}
	var errs [5]error
	obs.secret, errs[0] = read(ctx, r.client, r.namespace, s.secret, &corev1.Secret{})
	obs.previous, errs[1] = read(ctx, r.client, r.namespace, previousSignerName(request.Name), &corev1.Secret{})
	obs.bundle, errs[2] = read(ctx, r.client, r.namespace, s.bundle, &corev1.ConfigMap{})
	given, err := read(ctx, r.client, r.namespace, pki.ClientCABundle, &corev1.ConfigMap{})
	obs.trusted, errs[3] = parseBundle(given, pki.CACertKey), err
	list := &corev1.SecretList{}
	if errs[4] = r.client.List(ctx, list, client.InNamespace(r.namespace), client.Limit(maxSecrets)); errs[4] == nil {
		obs.secrets = list.Items
	}
	return obs, errors.Join(errs[:]...)
}

// ask gives the move that the answers lead to.
func (r *revocations) ask(ctx context.Context, obs observedRevocation, next move) (move, error) {
	newer, err := parseAuthority(obs.secret)
	if err != nil {
		return move{}, nil //nolint:nilerr // because it is made anew by the controller of rotation, which causes the next pass
	}
	var older *authority
	if previous, err := parseAuthority(obs.previous); err == nil && r.clock.Now().Before(previous.cert.NotAfter) {
		older = &previous
	}
	a, b, ok, err := r.servers.Accepted(ctx, &newer, older)
	if err != nil {
		return move{}, err
	}
	return next.accepted(ok && a, !ok || b), nil
}

func (r *revocations) carryOut(ctx context.Context, obs observedRevocation, m move) error {
	switch {
	case m.copySigner:
		return r.store(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: previousSignerName(obs.request.Name), OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(obs.request, certificatesv1alpha1.GroupVersion.WithKind("CertificateRevocationRequest")),
			}},
			Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{corev1.TLSCertKey: obs.secret.Data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: obs.secret.Data[corev1.TLSPrivateKeyKey]},
		})
	case m.regenerate != nil:
		secret := m.regenerate.DeepCopy()
		if secret.Annotations == nil {
			secret.Annotations = map[string]string{}
		}
		secret.Annotations[notAfterAnnotation] = forceRegeneration
		return r.store(ctx, secret)
	case m.bundle != nil:
		return r.store(ctx, m.bundle)
	case m.status != nil:
		before := obs.request.DeepCopy()
		obs.request.Status = *m.status
		if err := patch.Status(ctx, r.client, before, obs.request); err != nil {
			return fmt.Errorf("reporting on CertificateRevocationRequest %s: %w", obs.request.Name, err)
		}
	}
	return nil
}
