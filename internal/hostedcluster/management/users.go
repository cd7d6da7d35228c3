package management

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
)

// Users of control-plane pods: every namespace gets one of its own, so that pods which escape their container are strangers to each other.
const (
	firstUID = component.DefaultSecurityContextUID
	uidRange = 10000
)

// UIDs hands out users. What is stored in the annotations of namespaces counts; reserved only bridges the time until the cache has seen them,
// and losing it on a restart costs nothing, because by then it has.
type UIDs struct {
	mu       sync.Mutex
	reserved map[string]int64
}

// Allocate returns the user of the namespace: the one it has, or the next free one.
func (u *UIDs) Allocate(ctx context.Context, reader client.Reader, name string, ns *corev1.Namespace) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if uid, ok := uidOf(ns); ok {
		delete(u.reserved, name)
		return uid, nil
	}
	if uid, ok := u.reserved[name]; ok {
		return uid, nil
	}
	list := &corev1.NamespaceList{}
	if err := reader.List(ctx, list, client.MatchingLabels{hyperv1.HostedControlPlaneLabel: "true"}); err != nil {
		return 0, fmt.Errorf("listing control-plane namespaces: %w", err)
	}
	used := sets.New[int64]()
	for _, uid := range u.reserved {
		used.Insert(uid)
	}
	for i := range list.Items {
		if uid, ok := uidOf(&list.Items[i]); ok {
			used.Insert(uid)
		}
	}
	uid, err := nextUID(used)
	if err != nil {
		return 0, err
	}
	if u.reserved == nil {
		u.reserved = map[string]int64{}
	}
	u.reserved[name] = uid
	return uid, nil
}

// Forget gives a reservation back.
func (u *UIDs) Forget(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.reserved, name)
}

func uidOf(ns *corev1.Namespace) (int64, bool) {
	if ns == nil {
		return 0, false
	}
	uid, err := strconv.ParseInt(ns.Annotations[hyperv1.DefaultSecurityContextUIDAnnotation], 10, 64)
	return uid, err == nil && uid > 0
}

// nextUID is the one after the highest in use, so that a user is not soon used again; past the end of the range, the lowest free one.
func nextUID(used sets.Set[int64]) (int64, error) {
	highest := firstUID - 1
	for uid := range used {
		if uid < firstUID+uidRange {
			highest = max(highest, uid)
		}
	}
	if highest+1 < firstUID+uidRange {
		return highest + 1, nil
	}
	for uid := firstUID; uid < firstUID+uidRange; uid++ {
		if !used.Has(uid) {
			return uid, nil
		}
	}
	return 0, fmt.Errorf("all %d users for control-plane namespaces are taken: delete hosted clusters, or use another management cluster", uidRange)
}
