package approver

import (
	"context"
	"crypto/sha256"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// explain writes an Event that says why a request isn't approved, once for each reason. Its name holds the reason, so that a
// process that starts anew doesn't write it again.
func (r *Reconciler) explain(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, d Decision) (bool, error) {
	name := fmt.Sprintf("csr-%x", sha256.Sum256([]byte(string(csr.UID)+"/"+d.Reason)))[:40]
	have := &metav1.PartialObjectMetadata{}
	have.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}
	if err := r.Hosted.Get(ctx, key, have); err == nil {
		return false, nil
	} else if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("looking for an event about a certificate signing request: %w", err)
	}
	now := metav1.NewTime(r.Clock.Now())
	err := r.Hosted.Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest", Name: csr.Name, UID: csr.UID,
		},
		Type: corev1.EventTypeWarning, Reason: d.Reason, Message: "not approved: " + d.Message, Count: 1,
		FirstTimestamp: now, LastTimestamp: now, Source: corev1.EventSource{Component: Controller}, ReportingController: Controller,
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("writing an event about a certificate signing request: %w", err)
	}
	return err == nil, nil
}
