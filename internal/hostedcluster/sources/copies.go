package sources

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
)

// Copies lists what was copied into the control-plane namespace. reader may be a cache that holds only what is ours.
func Copies(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster) ([]client.Object, error) {
	var found []client.Object
	keep := func(obj client.Object) {
		if isCopy(obj, hc) && obj.GetDeletionTimestamp().IsZero() {
			found = append(found, obj)
		}
	}
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{secrets, configMaps} {
		if err := reader.List(ctx, list, client.InNamespace(names.NamespaceOf(hc))); err != nil {
			return nil, fmt.Errorf("listing copies in namespace %s: %w", names.NamespaceOf(hc), err)
		}
	}
	for i := range secrets.Items {
		keep(&secrets.Items[i])
	}
	for i := range configMaps.Items {
		keep(&configMaps.Items[i])
	}
	return found, nil
}

// isCopy says whether an object of the control-plane namespace is a copy that we made, and not somebody else's of that name.
func isCopy(obj client.Object, hc *hyperv1.HostedCluster) bool {
	a := obj.GetAnnotations()
	return a[copyOf] != "" && a[hyperv1.HostedClusterAnnotation] == names.BackReference(hc)
}

// Stuck says that a live object is a copy that can't become what is wanted: it is immutable or has another type, as an older version of the operator mirrored
// from its source.
func Stuck(live, want client.Object, hc *hyperv1.HostedCluster) bool {
	if !isCopy(live, hc) {
		return false
	}
	switch live := live.(type) {
	case *corev1.ConfigMap:
		return ptr.Deref(live.Immutable, false)
	case *corev1.Secret:
		secret, ok := want.(*corev1.Secret)
		return ptr.Deref(live.Immutable, false) || ok && live.Type != secret.Type
	}
	return false
}

// Stale are the copies that nothing refers to any more: neither the spec, nor the control plane as it is, which may still read with an
// encryption key, or mount what the next pass tells it to leave.
func Stale(spec *hyperv1.HostedClusterSpec, hcp *hyperv1.HostedControlPlane, copies []client.Object) ([]client.Object, error) {
	if len(copies) == 0 || hcp == nil {
		return nil, nil
	}
	wanted := sets.New[Key]()
	for _, ref := range References(spec) {
		wanted.Insert(Key{ref.Kind, ref.target})
	}
	mentioned, err := mentions(hcp)
	if err != nil {
		return nil, err
	}
	var stale []client.Object
	for _, obj := range copies {
		kind := Secret
		if _, ok := obj.(*corev1.ConfigMap); ok {
			kind = ConfigMap
		}
		if !wanted.Has(Key{kind, obj.GetName()}) && !mentioned.Has(obj.GetName()) {
			stale = append(stale, obj)
		}
	}
	return stale, nil
}

// mentions are all strings in the spec and status of a HostedControlPlane: the names of everything that it refers to are among them.
func mentions(hcp *hyperv1.HostedControlPlane) (sets.Set[string], error) {
	raw, err := json.Marshal(map[string]any{"spec": hcp.Spec, "status": hcp.Status})
	if err != nil {
		return nil, fmt.Errorf("looking through HostedControlPlane %s: %w", client.ObjectKeyFromObject(hcp), err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("looking through HostedControlPlane %s: %w", client.ObjectKeyFromObject(hcp), err)
	}
	found := sets.New[string]()
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			found.Insert(v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(value)
	return found, nil
}

// Labels of Secrets that the CLI makes for a cluster; those that have both go with it.
const (
	safeToDeleteLabel   = "hypershift.openshift.io/safe-to-delete-with-cluster"
	autoCreatedForLabel = "hypershift.openshift.io/auto-created-for-infra"
)

// CreatedSecret is a Secret of the user that gets the HostedCluster as an owner. With the UID, one that is gone meanwhile is not made again.
type CreatedSecret struct {
	name string
	uid  types.UID
}

// Created are the Secrets that the CLI made for the HostedCluster and that do not have it as an owner yet.
func (s Set) Created(hc *hyperv1.HostedCluster) (secrets []CreatedSecret) {
	keys := s.keys(func(key Key, source Object) bool {
		return key.Kind == Secret && !source.Missing && source.labels[safeToDeleteLabel] == "true" && source.labels[autoCreatedForLabel] == hc.Spec.InfraID &&
			!source.owners.Has(hc.UID)
	})
	for _, key := range keys {
		secrets = append(secrets, CreatedSecret{name: key.Name, uid: s[key].uid})
	}
	return secrets
}

// AddOwner makes the HostedCluster an owner of a Secret, so that it is deleted with it. It is given a client that leaves no reference: the Secret is not ours, and must not look so. Owners are a list that each adds to
// by UID, and a field owner of its own keeps what the other steps apply apart.
func AddOwner(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, to CreatedSecret) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hc.Namespace, Name: to.name, UID: to.uid}}
	owner := metav1.OwnerReference{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster", Name: hc.Name, UID: hc.UID}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": secret.Name, "namespace": secret.Namespace, "uid": secret.UID, "ownerReferences": []metav1.OwnerReference{owner}},
	})
	if err != nil {
		return err
	}
	apply.Count("Secret", "apply", names.HypershiftOperator)
	// With the UID, a Secret that is gone meanwhile is not made again, empty.
	err = c.Patch(ctx, secret, client.RawPatch("application/apply-patch+yaml", body), client.FieldOwner(names.HypershiftOperator+"-owner"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("making HostedCluster %s an owner of Secret %s/%s: %w", hc.Name, secret.Namespace, secret.Name, err)
	}
	return nil
}
