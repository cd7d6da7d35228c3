package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// managedBy marks the Services whose status we wrote, so that we clear it when they stop being load balancers.
const managedBy = "local.hypershift.openshift.io/load-balancer"

// loadBalancers gives each Service of type LoadBalancer an address. It runs on one worker.
type loadBalancers struct {
	client   kubernetes.Interface
	services corelisters.ServiceLister
	ledger   *ledger
	seeded   bool
	log      logr.Logger
}

func (r *loadBalancers) reconcile(ctx context.Context, key string) error {
	ns, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil //nolint:nilerr // a key that is not one will never be
	}
	if err := r.seed(); err != nil {
		return err
	}
	svc, err := r.services.Services(ns).Get(name)
	if apierrors.IsNotFound(err) {
		return r.forgetDeleted()
	}
	if err != nil {
		return fmt.Errorf("reading Service %s: %w", key, err)
	}
	uid := string(svc.UID)
	if !wantsAddress(svc) {
		r.ledger.release(uid)
		if _, ours := svc.Annotations[managedBy]; ours && svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
			return r.write(ctx, svc, netip.Addr{})
		}
		return nil
	}
	wanted, _ := netip.ParseAddr(svc.Spec.LoadBalancerIP) // the zero Addr when none is wished for
	addr, err := r.ledger.allocate(uid, wanted)
	if err != nil {
		return fmt.Errorf("giving Service %s an address: %w", key, err)
	}
	if slices.Equal(assigned(svc), []netip.Addr{addr}) {
		return nil
	}
	if err := r.write(ctx, svc, addr); err != nil {
		return err
	}
	r.log.Info("gave a load balancer its address", "service", key, "address", addr.String())
	return nil
}

// seed learns once, from the filled cache, which addresses are taken. Before that nothing is given away.
func (r *loadBalancers) seed() error {
	if r.seeded {
		return nil
	}
	all, err := r.services.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing Services: %w", err)
	}
	for _, svc := range all {
		if !wantsAddress(svc) {
			continue
		}
		for _, a := range assigned(svc) {
			r.ledger.claim(string(svc.UID), a) // of two with one address the first keeps it, the other gets a new one
		}
	}
	r.seeded = true
	return nil
}

func (r *loadBalancers) forgetDeleted() error {
	all, err := r.services.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing Services: %w", err)
	}
	uids := make([]string, 0, len(all))
	for _, svc := range all {
		uids = append(uids, string(svc.UID))
	}
	r.ledger.keep(uids)
	return nil
}

// write sets the status with a merge patch that fails when the Service has been replaced by another of its name.
func (r *loadBalancers) write(ctx context.Context, svc *corev1.Service, addr netip.Addr) error {
	ingress := []corev1.LoadBalancerIngress{}
	mark := any(nil)
	if addr.IsValid() {
		mode := corev1.LoadBalancerIPModeVIP
		ingress = append(ingress, corev1.LoadBalancerIngress{IP: addr.String(), IPMode: &mode})
		mark = "true"
	}
	meta := map[string]any{"uid": svc.UID, "annotations": map[string]any{managedBy: mark}}
	if svc.Annotations[managedBy] == "" && addr.IsValid() {
		if err := r.patch(ctx, svc, map[string]any{"metadata": meta}); err != nil {
			return err
		}
	}
	status := map[string]any{"metadata": map[string]any{"uid": svc.UID}, "status": map[string]any{"loadBalancer": map[string]any{"ingress": ingress}}}
	if err := r.patch(ctx, svc, status, "status"); err != nil {
		return err
	}
	if !addr.IsValid() {
		return r.patch(ctx, svc, map[string]any{"metadata": meta})
	}
	return nil
}

func (r *loadBalancers) patch(ctx context.Context, svc *corev1.Service, body map[string]any, subresources ...string) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = r.client.CoreV1().Services(svc.Namespace).Patch(ctx, svc.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: fieldOwner}, subresources...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // deleted or replaced meanwhile; the watch says so
	}
	if err != nil {
		return fmt.Errorf("patching Service %s/%s: %w", svc.Namespace, svc.Name, err)
	}
	return nil
}

// wantsAddress leaves Services of another load balancer class to whoever serves that.
func wantsAddress(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.LoadBalancerClass == nil && svc.DeletionTimestamp.IsZero()
}

func assigned(svc *corev1.Service) []netip.Addr {
	var out []netip.Addr
	for _, i := range svc.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(i.IP); err == nil {
			out = append(out, a)
		}
	}
	return out
}
