package approver

import (
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	"hcp.internal/platform/internal/kube/patch"
)

// reserve notes on its Machine for which key a client certificate is about to be approved. The patch holds for the version of the Machine
// that the decision was made on, so of two that ask at a time, or of two processes that approve, one gets through.
func (r *Reconciler) reserve(ctx context.Context, namespace string, request Request, facts Facts) error {
	i := slices.IndexFunc(facts.Machines, func(m Machine) bool { return m.called(request.node()) })
	m := &facts.Machines[i] // an approval has exactly one
	if m.Key == request.Content.Key {
		return nil
	}
	note := patch.Metadata{ResourceVersion: m.Version, Annotations: map[string]*string{KeyAnnotation: &request.Content.Key}}
	object := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: m.Name}}
	if err := r.Management.Patch(ctx, object, note.Patch()); err != nil {
		return fmt.Errorf("noting the key of Machine %s: %w", m.Name, err)
	}
	m.Key, m.Version = request.Content.Key, object.ResourceVersion
	return nil
}

// record writes a decision. It is an update with the version that was read: a request that somebody decided on meanwhile is
// left as it is.
func (r *Reconciler) record(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request Request, d Decision) error {
	kind := certificatesv1.CertificateApproved
	if d.Verdict == Deny {
		kind = certificatesv1.CertificateDenied
	}
	now := metav1.NewTime(r.Clock.Now())
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: d.Reason, Message: d.Message, LastUpdateTime: now, LastTransitionTime: now,
	})
	err := r.Hosted.SubResource("approval").Update(ctx, csr)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or changed: then its change causes the next pass
	}
	if err != nil {
		return fmt.Errorf("writing condition %s of a certificate signing request: %w", kind, err)
	}
	ctrl.LoggerFrom(ctx).Info("decided on a certificate", "verdict", d.Verdict, "reason", d.Reason, "message", d.Message,
		"request", klog.KObj(csr), "signer", request.Signer)
	return nil
}
