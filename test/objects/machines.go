package objects

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// machineKind is that of Cluster API's Machines.
var machineKind = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"}

// OwnerMachine is the name of the Machine that an infrastructure machine belongs to; empty: of none yet.
func OwnerMachine(o client.Object) string {
	for _, r := range o.GetOwnerReferences() {
		if r.Kind == machineKind.Kind {
			return r.Name
		}
	}
	return ""
}

// UserData is what the Machine of an infrastructure machine boots with. An error says what is waited for.
func UserData(ctx context.Context, c client.Reader, o client.Object) ([]byte, error) {
	owner := OwnerMachine(o)
	if owner == "" {
		return nil, errors.New("no Machine owns this one yet")
	}
	u := New(machineKind, o.GetNamespace(), owner)
	if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return nil, fmt.Errorf("reading Machine %s: %w", owner, err)
	}
	name, _, _ := unstructured.NestedString(u.Object, "spec", "bootstrap", "dataSecretName")
	if name == "" {
		return nil, fmt.Errorf("Machine %s names no Secret with user data yet", owner)
	}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: name}, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s with user data: %w", name, err)
	}
	if len(secret.Data["value"]) == 0 {
		return nil, fmt.Errorf("Secret %s has no user data", name)
	}
	return secret.Data["value"], nil
}
