package hypershift

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/packages/control/connector"
	"hcp.internal/platform/internal/packages/engine/owner"
)

// observe reads caches. One that is behind costs a write that is refused, or another pass.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (observed, error) {
	in := observed{Key: key, Namespace: names.ControlPlaneNamespace(key.Namespace, key.Name)}
	hc := &hyperv1.HostedCluster{}
	switch err := r.Client.Get(ctx, key, hc); {
	case err == nil:
		in.Cluster = hc
	case !apierrors.IsNotFound(err):
		return in, err
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: in.Namespace}, ns); err != nil {
		return in, client.IgnoreNotFound(err)
	}
	in.Present, in.Owner = ns.DeletionTimestamp.IsZero(), ns.Annotations[hyperv1.HostedClusterAnnotation]
	for _, part := range parts() {
		part.SetNamespace(in.Namespace)
		part.SetName(connector.Name)
		err := r.Parts.Get(ctx, client.ObjectKeyFromObject(part), part)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return in, err
		}
		if hostedClusterOf(part) == key {
			in.Parts = append(in.Parts, part)
		}
	}
	p := &v1alpha1.Package{}
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: connectorPackage}, p); {
	case err == nil && hostedClusterOf(p) == key:
		in.Package = p
	case client.IgnoreNotFound(err) != nil:
		return in, err
	}
	return in, nil
}

// parts are the kinds that a connector consists of, what runs first.
func parts() []client.Object {
	return []client.Object{&appsv1.Deployment{}, &rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{}}
}

// hostedClusterOf is the HostedCluster that an object was made for, empty when it was made for none.
func hostedClusterOf(obj client.Object) client.ObjectKey {
	owners, err := owner.Annotation{}.Read(obj)
	if err != nil {
		return client.ObjectKey{}
	}
	c := owner.Controller(owners)
	if c == nil || c.GroupKind() != hostedCluster.GroupKind() {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
}
