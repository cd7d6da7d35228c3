// Package objects reads and writes objects whose kinds have no Go types here, for stand-ins of programs of others.
package objects

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// New is an object with nothing but its name.
func New(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// Decode fills a struct that has those fields of an object that matter.
func Decode(u *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("%s %s has fields of another type: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	return nil
}

// List reads all objects of a kind in a namespace; "" means all namespaces.
func List(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, l, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	return l.Items, nil
}

// Set writes field "spec" or "status" of u, with u's metadata, unless the field is so already. Who is late loses: the next pass sees what became of it.
func Set(ctx context.Context, c client.Client, u *unstructured.Unstructured, field string, value any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		return fmt.Errorf("encoding %s of %s %s: %w", field, u.GetKind(), u.GetName(), err)
	}
	if was, _ := u.Object[field].(map[string]any); reflect.DeepEqual(was, content) || len(was) == 0 && len(content) == 0 {
		return nil
	}
	u.Object[field] = content
	if field == "status" {
		err = c.Status().Update(ctx, u)
	} else {
		err = c.Update(ctx, u)
	}
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing %s of %s %s: %w", field, u.GetKind(), client.ObjectKeyFromObject(u), err)
	}
	return nil
}

// lookEvery is how often stand-ins look.
const lookEvery = 500 * time.Millisecond

// Run makes passes until ctx ends. What fails is told and tried again.
func Run(ctx context.Context, pass func(context.Context) error, log func(format string, args ...any)) {
	for ctx.Err() == nil {
		if err := pass(ctx); err != nil && ctx.Err() == nil {
			log("%v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}
