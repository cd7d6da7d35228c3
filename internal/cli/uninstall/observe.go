package uninstall

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/placement"
)

// maxInstances bounds how many objects of one kind are read: enough to say what there is, and to delete page by page.
const maxInstances = 500

// object is one that is in the management cluster.
type object struct {
	schema.GroupVersionKind
	client.ObjectKey
	uid        string
	finalizers []string
	// owned: another object of the cluster owns it, so it goes with that one.
	owned bool
	// placeholder: the operator made it to hold nodes for hosted clusters, or to wait for them.
	placeholder bool
}

// String is the object as messages name it.
func (o object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// kind is a kind whose definition an installation made.
type kind struct {
	crd       object
	group     string
	ours      bool   // the definition came with an installation of ours
	why       string // it stays; empty: it is ours
	instances []object
	more      bool // there are more than instances lists
	converts  bool // the definition isn't ours and still needs the conversion of our operator
}

// observed is what the plan may look at.
type observed struct {
	// installed are the objects of an installation that are there, without the definitions, in the order of their application.
	installed []object
	kinds     []kind
	// foreign are objects with names of an installation that others made.
	foreign []object
	// clouds say what of hosted clusters that are to be destroyed stays in accounts of clouds.
	clouds []string
	// strangers are workloads in namespaces of the installation that it didn't make, by namespace.
	strangers map[string][]string
}

func observe(ctx context.Context, c client.Client, namespace string) (observed, error) {
	obs := observed{strangers: map[string][]string{}}
	inventory, err := install.Inventory(namespace)
	if err != nil {
		return obs, err
	}
	known := map[client.ObjectKey]bool{}
	for _, obj := range inventory {
		gvk, err := apiutil.GVKForObject(obj, c.Scheme())
		if err != nil {
			return obs, fmt.Errorf("finding the kind of %T: %w", obj, err)
		}
		if crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition); ok {
			k, found, err := observeKind(ctx, c, crd, namespace)
			if err != nil {
				return obs, err
			}
			if found {
				obs.kinds = append(obs.kinds, k)
			}
			continue
		}
		live, err := get(ctx, c, gvk, client.ObjectKeyFromObject(obj))
		if err != nil {
			return obs, err
		}
		if live == nil {
			continue
		}
		ours, err := owns(ctx, c, obj, live, namespace)
		switch {
		case err != nil:
			return obs, err
		case !ours:
			obs.foreign = append(obs.foreign, objectOf(live))
			continue
		case gvk.Kind == "Deployment":
			known[client.ObjectKeyFromObject(obj)] = true
		}
		obs.installed = append(obs.installed, objectOf(live))
	}
	obs.leavePackages()
	if err := obs.addMade(ctx, c); err != nil {
		return obs, err
	}
	for _, o := range obs.installed {
		if o.Kind != "Namespace" {
			continue
		}
		if obs.strangers[o.Name], err = strangers(ctx, c, o.Name, known); err != nil {
			return obs, err
		}
	}
	return obs, nil
}

// owns tells whether an object that is there is the one of our inventory.
func owns(ctx context.Context, c client.Client, want client.Object, live *metav1.PartialObjectMetadata, namespace string) (bool, error) {
	class, ok := want.(*schedulingv1.PriorityClass)
	if !ok {
		return install.Owns(live, namespace), nil
	}
	full := &schedulingv1.PriorityClass{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(live), full); err != nil {
		return false, fmt.Errorf("reading PriorityClass %s: %w", live.Name, err)
	}
	return install.OwnsPriorityClass(full, class), nil
}

// leavePackages keeps the definitions of packages, and so every package, for an operator of packages that isn't ours.
func (o *observed) leavePackages() {
	i := slices.IndexFunc(o.foreign, func(obj object) bool {
		return obj.Kind == "Deployment" && obj.Namespace == install.PackageOperatorNamespace
	})
	if i < 0 {
		return
	}
	for j := range o.kinds {
		if k := &o.kinds[j]; isPackage(*k) && k.ours {
			k.ours, k.why, k.instances, k.more = false, o.foreign[i].String()+", which another owner has, needs it", nil, false
		}
	}
}

// addMade adds what the operator makes for all hosted clusters together, and never deletes.
func (o *observed) addMade(ctx context.Context, c client.Client) error {
	// Claims of nodes, and the placeholders beside them, mean nothing without the operator.
	claims, err := get(ctx, c, corev1.SchemeGroupVersion.WithKind("Namespace"), client.ObjectKey{Name: placement.Namespace})
	if err != nil {
		return err
	}
	if claims != nil {
		o.installed = append(o.installed, objectOf(claims))
	}
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		if err := c.List(ctx, list, client.MatchingLabels{names.OwnedByLabel: names.HypershiftOperator}); err != nil {
			return fmt.Errorf("listing %ss: %w", kind, err)
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
			o.installed = append(o.installed, objectOf(&list.Items[i]))
		}
	}
	return nil
}

// get reads an object's metadata; nil when there is none, or no such kind.
func get(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	err := c.Get(ctx, key, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", gvk.Kind, key, err)
	}
	live.SetGroupVersionKind(gvk)
	return live, nil
}

func objectOf(m *metav1.PartialObjectMetadata) object {
	return object{
		GroupVersionKind: m.GroupVersionKind(), ObjectKey: client.ObjectKeyFromObject(m), uid: string(m.UID), finalizers: m.Finalizers,
		owned: metav1.GetControllerOf(m) != nil, placeholder: m.Namespace == placement.Namespace && m.Labels[placement.PlaceholderLabel] != "",
	}
}

// observeKind reads the definition and what there is of its kind.
func observeKind(ctx context.Context, c client.Client, want *apiextensionsv1.CustomResourceDefinition, namespace string) (kind, bool, error) {
	live := &apiextensionsv1.CustomResourceDefinition{}
	err := c.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return kind{}, false, nil
	}
	if err != nil {
		return kind{}, false, fmt.Errorf("reading CustomResourceDefinition %s: %w", want.Name, err)
	}
	crd := object{
		GroupVersionKind: apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), ObjectKey: client.ObjectKeyFromObject(live), uid: string(live.UID),
	}
	k := kind{crd: crd, group: live.Spec.Group, ours: install.OwnsCRD(live, live.Spec.Group)}
	if !k.ours {
		k.why = otherOwner
		k.converts = install.Converts(live, namespace)
		return k, true, nil // what is in it is none of our business
	}
	version := ""
	for _, v := range live.Spec.Versions {
		// The stored one needs no conversion, which a program of ours would have to do that may be gone already.
		if v.Storage && v.Served || version == "" && v.Served {
			version = v.Name
		}
	}
	if version == "" {
		return k, true, nil
	}
	k.instances, k.more, err = list(ctx, c, schema.GroupVersionKind{Group: live.Spec.Group, Version: version, Kind: live.Spec.Names.Kind})
	return k, true, err
}

func list(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, in ...client.ListOption) (objs []object, more bool, _ error) {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := c.List(ctx, l, append(in, client.Limit(maxInstances))...)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("listing objects of kind %s: %w", gvk.Kind, err)
	}
	for i := range l.Items {
		l.Items[i].SetGroupVersionKind(gvk)
		objs = append(objs, objectOf(&l.Items[i]))
	}
	return objs, l.Continue != "", nil
}

// strangers are workloads of a namespace that aren't the installation's.
func strangers(ctx context.Context, c client.Client, namespace string, known map[client.ObjectKey]bool) ([]string, error) {
	var names []string
	for _, gvk := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"), appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	} {
		objs, _, err := list(ctx, c, gvk, client.InNamespace(namespace))
		if err != nil {
			return nil, err
		}
		for _, o := range objs {
			if !known[o.ObjectKey] && !o.placeholder {
				names = append(names, o.String())
			}
		}
	}
	return names, nil
}
