package openshift

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/pki"
)

// readTimeout bounds reading one object of the hosted cluster.
const readTimeout = 10 * time.Second

// sources are the names of what is read of the control plane namespace, for a HostedControlPlane.
func sources(hcp *hyperv1.HostedControlPlane) (configMaps, secrets, services []string) {
	configMaps = []string{pki.RootCABundle, pki.KubeletCABundle}
	secrets = []string{hcp.Spec.PullSecret.Name}
	services = []string{openshiftAPIServer, oauthAPIServer, packageServer}
	if c := hcp.Spec.Configuration; c != nil {
		if c.Proxy != nil && c.Proxy.TrustedCA.Name != "" {
			configMaps = append(configMaps, c.Proxy.TrustedCA.Name)
		}
	}
	return configMaps, secrets, services
}

// wanted are the objects of the hosted cluster that are read before the plan.
func wanted() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		reference(configV1, "Proxy", "", cluster), reference(configV1, "Build", "", cluster), reference(configV1, "Project", "", cluster),
	}
}

// ObserveControl reads the control plane namespace. What is missing is left out, for the plan to say.
func ObserveControl(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) (Control, error) {
	control := Control{ConfigMaps: map[string]*corev1.ConfigMap{}, Secrets: map[string]*corev1.Secret{}, Services: map[string]*corev1.Service{}}
	configMaps, secrets, services := sources(hcp)
	err := errors.Join(
		readAll(ctx, c, hcp.Namespace, configMaps, control.ConfigMaps, func() *corev1.ConfigMap { return &corev1.ConfigMap{} }),
		readAll(ctx, c, hcp.Namespace, secrets, control.Secrets, func() *corev1.Secret { return &corev1.Secret{} }),
		readAll(ctx, c, hcp.Namespace, services, control.Services, func() *corev1.Service { return &corev1.Service{} }),
	)
	return control, err
}

func readAll[T client.Object](ctx context.Context, c client.Reader, namespace string, names []string, into map[string]T, fresh func() T) error {
	for _, name := range names {
		if name == "" {
			continue
		}
		obj := fresh()
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %T %s/%s: %w", obj, namespace, name, err)
		}
		into[name] = obj
	}
	return nil
}

// ObserveHosted reads the hosted cluster. Kinds that it doesn't serve yet are as objects that it doesn't have.
func ObserveHosted(ctx context.Context, c client.Reader) (Hosted, error) {
	hosted := Hosted{Objects: map[string]map[string]any{}, Kubelets: map[string]string{}}
	for _, u := range wanted() {
		key := u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		err := c.Get(ctx, client.ObjectKeyFromObject(u), u)
		cancel()
		switch {
		case err == nil:
			hosted.Objects[key] = u.Object
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return hosted, fmt.Errorf("reading %s: %w", key, err)
		}
	}
	return hosted, nil
}
