package hostedcluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/apply"
)

// copies lists what was copied into the control-plane namespace, from the cache, which holds only what is ours.
func (r *Reconciler) copies(ctx context.Context, hc *hyperv1.HostedCluster) ([]client.Object, error) {
	var found []client.Object
	keep := func(obj client.Object) {
		a := obj.GetAnnotations()
		if a[copyOfAnnotation] != "" && a[hyperv1.HostedClusterAnnotation] == names.BackReference(hc) && obj.GetDeletionTimestamp().IsZero() {
			found = append(found, obj)
		}
	}
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	for _, list := range []client.ObjectList{secrets, configMaps} {
		if err := r.Client.List(ctx, list, client.InNamespace(names.NamespaceOf(hc))); err != nil {
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

// staleCopies is the step that deletes copies that nothing refers to any more: neither the HostedCluster, nor the control plane as it is,
// which may still read with an encryption key, or mount what the next pass tells it to leave.
func staleCopies(obs *observed) step {
	s := step{name: stepStaleCopies, class: supporting}
	if len(obs.copies) == 0 || obs.hcp == nil {
		return s
	}
	wanted := sets.New[sourceKey]()
	for _, ref := range references(&obs.hc.Spec) {
		wanted.Insert(sourceKey{ref.kind, ref.target})
	}
	mentioned, err := mentions(obs.hcp)
	if err != nil {
		s.err = err
		return s
	}
	for _, obj := range obs.copies {
		kind := secretKind
		if _, ok := obj.(*corev1.ConfigMap); ok {
			kind = configMapKind
		}
		if !wanted.Has(sourceKey{kind, obj.GetName()}) && !mentioned.Has(obj.GetName()) {
			s.delete = append(s.delete, obj)
		}
	}
	return s
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

// ownCreated is the step that makes the HostedCluster an owner of what the CLI created for it, so that it is deleted with it. Each of these
// is one that the spec refers to.
func ownCreated(obs *observed) step {
	s := step{name: stepCreatedSecrets, class: blockable}
	var names []sourceKey
	for key, source := range obs.sources {
		if key.kind == secretKind && !source.missing && source.labels[safeToDeleteLabel] == "true" && source.labels[autoCreatedForLabel] == obs.hc.Spec.InfraID &&
			!source.owners.Has(obs.hc.UID) {
			names = append(names, key)
		}
	}
	sortSources(names)
	for _, key := range names {
		s.own = append(s.own, ownedSecret{name: key.name, uid: obs.sources[key].uid})
	}
	return s
}

// addOwner is given a client that leaves no reference: the Secret is not ours, and must not look so. Owners are a list that each adds to
// by UID, and a field owner of its own keeps what the other steps apply apart.
func addOwner(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, to ownedSecret) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hc.Namespace, Name: to.name, UID: to.uid}}
	owner := ownerReference(hc)
	owner.Controller, owner.BlockOwnerDeletion = nil, nil
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
