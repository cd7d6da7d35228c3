package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxSecret bounds what is copied; the API server takes no larger Secret either.
const maxSecret = 1 << 20

// Source is a Secret of the user's, beside the HostedCluster.
type Source struct {
	// Field that names it, for errors.
	Field string
	Name  string
	// Keys that it must have.
	Keys []string
}

// Read reads the data of a Secret beside the HostedCluster. Errors name field, Secret and key, and never content.
func Read(ctx context.Context, reader client.Reader, namespace string, s Source) (map[string][]byte, error) {
	if s.Name == "" {
		return nil, fmt.Errorf("%s names no Secret: name one in namespace %s with the keys %s", s.Field, namespace, strings.Join(s.Keys, ", "))
	}
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: namespace, Name: s.Name}
	err := reader.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("Secret %s, which %s names, does not exist: create it with the keys %s", key, s.Field, strings.Join(s.Keys, ", "))
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	size := 0
	for _, value := range secret.Data {
		size += len(value)
	}
	if size > maxSecret {
		return nil, fmt.Errorf("Secret %s, which %s names, is larger than %d bytes", key, s.Field, maxSecret)
	}
	for _, k := range s.Keys {
		if len(secret.Data[k]) == 0 {
			return nil, fmt.Errorf("Secret %s, which %s names, has no key %s: add it", key, s.Field, k)
		}
	}
	return secret.Data, nil
}

// Secret makes one of the control plane's namespace.
func Secret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

// Only are the given keys of data, those that it has.
func Only(data map[string][]byte, keys ...string) map[string][]byte {
	out := maps.Clone(data)
	maps.DeleteFunc(out, func(k string, _ []byte) bool { return !slices.Contains(keys, k) })
	return out
}
