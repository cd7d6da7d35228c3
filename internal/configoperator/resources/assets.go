package resources

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed assets
var assets embed.FS

// kinds are those that assets may have.
var kinds = map[string]func() client.Object{
	"v1/ConfigMap":      func() client.Object { return &corev1.ConfigMap{} },
	"v1/Secret":         func() client.Object { return &corev1.Secret{} },
	"v1/Service":        func() client.Object { return &corev1.Service{} },
	"v1/ServiceAccount": func() client.Object { return &corev1.ServiceAccount{} },
	"apps/v1/DaemonSet": func() client.Object { return &appsv1.DaemonSet{} },
	"apps/v1/Deployment": func() client.Object {
		return &appsv1.Deployment{}
	},
	"policy/v1/PodDisruptionBudget": func() client.Object { return &policyv1.PodDisruptionBudget{} },
	"rbac.authorization.k8s.io/v1/ClusterRole": func() client.Object {
		return &rbacv1.ClusterRole{}
	},
	"rbac.authorization.k8s.io/v1/ClusterRoleBinding": func() client.Object { return &rbacv1.ClusterRoleBinding{} },
	"storage.k8s.io/v1/StorageClass":                  func() client.Object { return &storagev1.StorageClass{} },
}

// load gives fresh objects of an asset, in its order. It panics when the asset is broken, which any test of it finds.
func load(name string) []client.Object {
	objects, err := decode(name)
	if err != nil {
		panic(fmt.Sprintf("asset %s: %v", name, err))
	}
	return objects
}

func decode(name string) ([]client.Object, error) {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	var objects []client.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting: %w", err)
		}
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			return nil, fmt.Errorf("decoding: %w", err)
		}
		fresh := kinds[meta.APIVersion+"/"+meta.Kind]
		if fresh == nil {
			return nil, fmt.Errorf("unknown kind %s of %s", meta.Kind, meta.APIVersion)
		}
		obj := fresh()
		if err := yaml.UnmarshalStrict(document, obj); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", meta.Kind, err)
		}
		objects = append(objects, obj)
	}
}

// find gives the object of a type among objects; an asset has one of each that code changes.
func find[T client.Object](objects []client.Object) T {
	for _, o := range objects {
		if found, ok := o.(T); ok {
			return found
		}
	}
	panic(fmt.Sprintf("no %T in the asset", *new(T)))
}
