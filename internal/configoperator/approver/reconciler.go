package approver

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/configoperator/hold"
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
	Hold hold.Func
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
