package reencryption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/kube/apply"
)

const (
	// pageSize bounds what is held at once: a Secret has at most 1.5 MiB in etcd, so that a page stays below the limit of an
	// answer from the hosted API (16 MiB).
	pageSize = 8
	// chunkTime is how long one pass rewrites before it records where it is. A crash repeats at most that much.
	chunkTime = 15 * time.Second
	// requestTimeout bounds one request. A healthy API server needs milliseconds, one whose webhooks time out up to 34 s, which is all that it gives a write: a
	// webhook that may be ignored lets it pass then. A page of such Secrets takes minutes, and is recorded at its end.
	requestTimeout = 45 * time.Second
	// maxContinue bounds what we keep of the hosted API's words: it names a position in etcd, which is a namespace and a name.
	maxContinue = 4 << 10
)

// secretKind and configMapKind are what is encrypted: Secrets, and with keys of clouds ConfigMaps, too. What other servers store is not.
const secretKind, configMapKind = "Secret", "ConfigMap"

// kindsOf are the kinds that are encrypted in a hosted cluster.
func kindsOf(hcp *hyperv1.HostedControlPlane) []string {
	if _, _, ok := encryption.CloudRefs(hcp); ok {
		return []string{secretKind, configMapKind}
	}
	return []string{secretKind}
}

// progress is how far the rewriting is.
type progress struct {
	rotation  string
	kind      int    // the place among the kinds
	next      string // where to go on; empty: at the beginning
	rewritten int
	failed    int
}

// outcome is what a pass of rewriting came to.
type outcome struct {
	done    bool // everything stored is encrypted with the target
	failed  string
	message string
	after   time.Duration // when to look again
}

// rewriter writes every Secret of the hosted cluster again.
type rewriter struct {
	management client.Client // progress
	hosted     client.Client // Secrets, not through a cache
	clock      clock.PassiveClock
	pageSize   int64
	chunk      time.Duration
	request    time.Duration // for one write; 0: requestTimeout
	kinds      []string      // to write again; none: Secrets
}

// what names the kinds in messages.
func (r *rewriter) what() string {
	if len(r.kinds) < 2 {
		return "Secrets"
	}
	return "Secrets and ConfigMaps"
}

// of is the kind at a place.
func (r *rewriter) of(place int) string {
	if len(r.kinds) == 0 {
		return secretKind
	}
	return r.kinds[place]
}

// run goes on where the last pass was, for one chunk.
func (r *rewriter) run(ctx context.Context, hcp *hyperv1.HostedControlPlane, rotation string) (outcome, error) {
	p, err := r.load(ctx, hcp, rotation)
	if err != nil {
		return outcome{}, err
	}
	began := r.clock.Now()
	for {
		last, err := r.page(ctx, &p)
		if err != nil {
			return outcome{}, errors.Join(err, r.save(ctx, hcp, p))
		}
		if last {
			break
		}
		if r.clock.Since(began) >= r.chunk {
			return outcome{message: fmt.Sprintf("%d %s were written again, more follow", p.rewritten, r.what())}, r.save(ctx, hcp, p)
		}
	}
	if p.failed == 0 {
		return outcome{done: true}, nil
	}
	// Those that went through are quickly through again: the API server does not store them anew.
	failed := fmt.Sprintf("%d of %d %[3]s could not be written again, as the hosted API refuses it, or doesn't answer in time: look for webhooks in the hosted cluster that forbid changes of %[3]s, or are down", p.failed, p.rewritten, r.what())
	return outcome{failed: failed, after: failedPause}, r.save(ctx, hcp, progress{rotation: rotation})
}

// page rewrites one page of objects of one kind. An error leaves p where the page began.
func (r *rewriter) page(ctx context.Context, p *progress) (last bool, err error) {
	list := &unstructured.UnstructuredList{}
	if err := r.list(ctx, list, p); err != nil {
		return false, err
	}
	failed := 0
	for i := range list.Items {
		refused, err := r.touch(ctx, &list.Items[i])
		if err != nil {
			return false, err
		}
		if refused {
			failed++
		}
		list.Items[i].Object = nil // not needed any more
	}
	p.rewritten, p.failed = p.rewritten+len(list.Items), p.failed+failed
	p.next = list.GetContinue()
	if p.next == "" {
		p.kind++
	}
	if len(p.next) > maxContinue {
		return false, fmt.Errorf("listing objects of the hosted cluster: the position has %d bytes, more than %d", len(p.next), maxContinue)
	}
	return p.kind >= max(len(r.kinds), 1), nil
}

// list reads the page at p. A position that the API server doesn't know any more is given up for the beginning.
func (r *rewriter) list(ctx context.Context, list *unstructured.UnstructuredList, p *progress) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(r.of(p.kind) + "List"))
	err := r.hosted.List(ctx, list, client.Limit(r.pageSize), client.Continue(p.next))
	if p.next != "" && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsBadRequest(err)) {
		// An expired position comes with one that goes on in what is stored now. What was created since was encrypted with the
		// target, and what was deleted is gone, so that this is as good.
		var status apierrors.APIStatus
		next := ""
		if errors.As(err, &status) && !apierrors.IsBadRequest(err) {
			next = status.Status().ListMeta.Continue
		}
		if next == "" || next == p.next || len(next) > maxContinue {
			*p = progress{rotation: p.rotation}
			next = ""
		}
		p.next = next
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(r.of(p.kind) + "List"))
		err = r.hosted.List(ctx, list, client.Limit(r.pageSize), client.Continue(p.next))
	}
	if err != nil {
		return fmt.Errorf("listing what is encrypted in the hosted cluster: %w", err)
	}
	return nil
}

// touch stores a Secret again as it is. When somebody else stored it since, that was with the target; one that is gone needs
// nothing. An answer that it must not be changed is reported and doesn't keep the others from being written, nor does one that
// doesn't come: the same Secret would end each pass.
func (r *rewriter) touch(pass context.Context, secret *unstructured.Unstructured) (refused bool, err error) {
	ctx, cancel := context.WithTimeout(pass, cmp.Or(r.request, requestTimeout))
	defer cancel()
	version := secret.GetResourceVersion()
	err = r.hosted.Update(ctx, secret, client.FieldOwner(fieldOwner))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// A webhook of the tenant can answer this, too, so that the Secret itself has to confirm it.
		err = r.hosted.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err == nil {
			return secret.GetResourceVersion() == version, nil
		}
	}
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, new(apierrors.APIStatus)) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsServiceUnavailable(err):
		return true, nil
	case errors.Is(err, context.DeadlineExceeded) && pass.Err() == nil:
		return true, nil
	}
	return false, fmt.Errorf("writing a Secret of the hosted cluster again: %w", err)
}

func (r *rewriter) load(ctx context.Context, hcp *hyperv1.HostedControlPlane, rotation string) (progress, error) {
	cm := &corev1.ConfigMap{}
	err := r.management.Get(ctx, client.ObjectKey{Namespace: hcp.Namespace, Name: progressName}, cm)
	if client.IgnoreNotFound(err) != nil {
		return progress{}, fmt.Errorf("reading ConfigMap %s: %w", progressName, err)
	}
	p := progress{rotation: rotation}
	if cm.Data[rotationKey] != rotation { // also when there is none
		return p, nil
	}
	rewritten, err1 := strconv.Atoi(cm.Data[rewrittenKey])
	failed, err2 := strconv.Atoi(cm.Data[failedKey])
	if err1 != nil || err2 != nil {
		return p, nil //nolint:nilerr // because it was not written by us, so that everything is rewritten
	}
	if text := cm.Data[kindKey]; text != "" {
		if p.kind, err = strconv.Atoi(text); err != nil || p.kind < 0 || p.kind >= max(len(r.kinds), 1) {
			return progress{rotation: rotation}, nil //nolint:nilerr // because it was not written by us, either
		}
	}
	p.next, p.rewritten, p.failed = cm.Data[continueKey], rewritten, failed
	return p, nil
}

// save records the progress. The last one who writes wins: wherever that is, everything before it was written again.
func (r *rewriter) save(ctx context.Context, hcp *hyperv1.HostedControlPlane, p progress) error {
	cm := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: progressName, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane", Name: hcp.Name, UID: hcp.UID,
		}}},
		Data: map[string]string{
			rotationKey: p.rotation, continueKey: p.next, rewrittenKey: strconv.Itoa(p.rewritten), failedKey: strconv.Itoa(p.failed),
			kindKey: strconv.Itoa(p.kind),
		},
	}
	return apply.New(r.management, fieldOwner).Apply(ctx, cm)
}

// forget removes the progress of a rotation that is complete.
func (r *rewriter) forget(ctx context.Context, namespace string) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: progressName}}
	err := r.management.Get(ctx, client.ObjectKeyFromObject(cm), cm)
	if err == nil {
		err = r.management.Delete(ctx, cm, client.Preconditions{UID: &cm.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ConfigMap %s: %w", progressName, err)
	}
	return nil
}
