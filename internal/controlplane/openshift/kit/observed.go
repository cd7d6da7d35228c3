package kit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/controlplane/component"
)

// ConfigMaps that hold an object of the hosted cluster, as the hosted-cluster-config-operator copies it: the Build and the Project "cluster".
const (
	ObservedBuild   = payload.ObservedBuild
	ObservedProject = payload.ObservedProject
)

// Observed is the object of the hosted cluster in one of these ConfigMaps, empty when there is none.
func Observed(ctx component.WorkloadContext, name string) (map[string]any, error) {
	cm := &corev1.ConfigMap{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: name}, cm)
	if apierrors.IsNotFound(err) {
		return map[string]any{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", name, err)
	}
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(cm.Data[payload.ObservedKey]), &object); err != nil {
		return nil, fmt.Errorf("parsing key %s of ConfigMap %s: %w", payload.ObservedKey, name, err)
	}
	return object, nil
}
