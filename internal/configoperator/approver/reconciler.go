package approver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/platform"
)

// passTimeout bounds a pass: a healthy API server needs well under a second.
const passTimeout = 30 * time.Second

// Reconciler decides on the requests of one hosted cluster. It is for one worker.
//
// It is the only writer of conditions of requests that are ours, and of KeyAnnotation; kube-controller-manager approves renewals,
// which aren't.
type Reconciler struct {
	Management client.Client // uncached: an approval must not rest on an old look at a Machine
	Hosted     client.Client // uncached: what a cache would hold is chosen by the tenant
	Clock      clock.PassiveClock
	// Hold says why nothing is to be done, if so, and when that ends.
	Hold func(*hyperv1.HostedControlPlane, time.Time) (string, time.Duration)
	// Watch is called when requests are to be decided: it sees to it that new ones cause passes. It is called often.
	Watch func()
	// Pending is told how many requests wait; nil: nobody wants to know.
	Pending *Pending

	round round
}

// Managed tells whether somebody makes Machines that requests can be compared with. Where nobody does, people decide on requests.
func Managed(hcp *hyperv1.HostedControlPlane) bool {
	if _, disabled := hcp.Annotations[hyperv1.DisableMachineManagement]; disabled {
		return false
	}
	p, err := platform.ForControlPlane(hcp)
	return err == nil && p.Traits().Managed
}

// Reconcile makes one pass over pending requests, over a portion of them when there are very many.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	hcp := &hyperv1.HostedControlPlane{}
	if err := r.Management.Get(ctx, req.NamespacedName, hcp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading HostedControlPlane %s: %w", req, err))
	}
	if !Managed(hcp) {
		return ctrl.Result{}, nil
	}
	r.Watch()
	if reason, after := r.Hold(hcp, r.Clock.Now()); reason != "" {
		return ctrl.Result{RequeueAfter: after}, nil
	}
	next := r.round
	csrs, more, err := next.pending(ctx, r.Hosted)
	if err == nil {
		err = r.decideAll(ctx, req.Namespace, csrs, &next)
	}
	if err != nil {
		return ctrl.Result{}, err // the same portion again
	}
	if more {
		r.round = next
		return ctrl.Result{RequeueAfter: breath}, nil
	}
	r.Pending.set(next.waiting, next.oldest)
	r.round = round{}
	return ctrl.Result{RequeueAfter: next.after}, nil
}

func (r *Reconciler) decideAll(ctx context.Context, namespace string, csrs []certificatesv1.CertificateSigningRequest, round *round) error {
	var facts Facts
	var looked bool
	var errs []error
	events := 0
	for i := range csrs {
		csr := &csrs[i]
		request := requestOf(csr)
		if !request.ours() {
			continue
		}
		if !looked {
			list, err := machines(ctx, r.Management, namespace)
			if err != nil {
				return errors.Join(append(errs, err)...)
			}
			facts.Machines, looked = list, true
		}
		d, err := r.decide(ctx, request, facts)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switch d.Verdict {
		case Approve, Deny:
			if d.Verdict == Approve && request.Signer == certificatesv1.KubeAPIServerClientKubeletSignerName {
				if err := r.reserve(ctx, namespace, request, facts); err != nil {
					errs = append(errs, err)
					continue
				}
			}
			errs = append(errs, r.record(ctx, csr, request, d))
		case Wait, Ignore:
			if d.Verdict == Wait {
				round.waits(request.Created, r.Clock.Now())
			}
			if d.Reason == "" || events >= maxEvents {
				continue
			}
			wrote, err := r.explain(ctx, csr, d)
			errs = append(errs, err)
			if wrote {
				events++
			}
		}
	}
	return errors.Join(errs...)
}

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

// decide looks for the Node of a request only when everything else is in order: a stranger's words cause no reads.
func (r *Reconciler) decide(ctx context.Context, request Request, facts Facts) (Decision, error) {
	d := decide(request, facts, r.Clock.Now())
	if d.Verdict != Approve || request.Signer != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return d, nil
	}
	exists, err := nodeExists(ctx, r.Hosted, request.node())
	if err != nil {
		return Decision{}, err
	}
	facts.NodeExists = exists
	return decide(request, facts, r.Clock.Now()), nil
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
