package openshift

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/pki"
)

// readTimeout bounds reading one object of the hosted cluster.
const readTimeout = 10 * time.Second

// sources are the names of what is read of the control plane namespace, for a HostedControlPlane.
func sources(hcp *hyperv1.HostedControlPlane) (configMaps, secrets, services []string) {
	configMaps = []string{pki.RootCABundle, pki.KubeletCABundle, oauthBundle}
	secrets = []string{hcp.Spec.PullSecret.Name, "ingress-crt", kubeadminPassword}
	if payload.ForwardsMetrics(hcp) {
		configMaps, secrets = append(configMaps, metricsProxyConfig), append(secrets, pki.MetricsProxyCA)
	}
	services = []string{openshiftAPIServer, oauthAPIServer, packageServer}
	if hcp.Spec.AdditionalTrustBundle != nil {
		configMaps = append(configMaps, names.UserCABundle)
	}
	moreMaps, moreSecrets := credentialSources(hcp)
	configMaps, secrets = append(configMaps, moreMaps...), append(secrets, moreSecrets...)
	c := hcp.Spec.Configuration
	if c == nil {
		return configMaps, secrets, services
	}
	if c.Proxy != nil {
		configMaps = append(configMaps, c.Proxy.TrustedCA.Name)
	}
	if c.Image != nil {
		configMaps = append(configMaps, c.Image.AdditionalTrustedCA.Name)
	}
	if c.Authentication != nil && len(c.Authentication.OIDCProviders) > 0 {
		provider := c.Authentication.OIDCProviders[0]
		configMaps = append(configMaps, provider.Issuer.CertificateAuthority.Name)
		for _, client := range provider.OIDCClients {
			secrets = append(secrets, client.ClientSecret.Name)
		}
	}
	return configMaps, secrets, services
}

// wanted are the objects of the hosted cluster that are read before the plan, by their key in Hosted.
func wanted(hcp *hyperv1.HostedControlPlane) map[string]*unstructured.Unstructured {
	all := map[string]*unstructured.Unstructured{networkOperatorKey: reference(operatorV1, "Network", "", cluster)}
	for _, u := range []*unstructured.Unstructured{
		reference(configV1, "Proxy", "", cluster), reference(configV1, "Build", "", cluster), reference(configV1, "Project", "", cluster),
		reference(configV1, "OperatorHub", "", cluster), reference(configV1, "ClusterVersion", "", "version"), reference(imageRegistryV1, "Config", "", cluster),
		reference(core, "Secret", "kube-system", kubeadmin),
		reference(core, "ConfigMap", managedConfig, serviceCA), reference(core, "ConfigMap", managedConfig, ingressCA),
	} {
		all[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = u
	}
	if platform := hcp.Spec.Platform.Type; platform == hyperv1.AWSPlatform || platform == hyperv1.AzurePlatform {
		all[additionalKey] = reference(core, "Secret", systemNamespace, additionalPullSecret)
	}
	if passesThrough(hcp) {
		all[routerKey] = reference(core, "Service", ingressNamespace, routerService)
	}
	return all
}

// ObserveMetricsHost is the name at which the control plane offers its metrics to its hosted cluster: that of a Route that a router has admitted, or on a management
// cluster without Routes the one that the control plane's own router goes by. Empty: there is none, or not yet.
func ObserveMetricsHost(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) (string, error) {
	if !payload.ForwardsMetrics(hcp) {
		return "", nil
	}
	route := reference(endpoints.RouteKind.GroupVersion().String(), endpoints.RouteKind.Kind, hcp.Namespace, endpoints.MetricsProxyRouteName)
	err := c.Get(ctx, client.ObjectKeyFromObject(route), route)
	switch {
	case meta.IsNoMatchError(err):
		return endpoints.MetricsRouteHost(hcp), nil
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading Route %s: %w", route.GetName(), err)
	}
	return endpoints.AdmittedHost(route), nil
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
	if err != nil {
		return control, err
	}
	kubelets := &corev1.ConfigMapList{}
	if err := c.List(ctx, kubelets, client.InNamespace(hcp.Namespace), client.MatchingLabels{kubeletConfigLabel: "true"}, client.Limit(maxKubelets)); err != nil {
		return control, fmt.Errorf("listing settings of kubelets: %w", err)
	}
	control.Kubelets = kubelets.Items
	control.Machines, err = observeMachines(ctx, c, hcp)
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
func ObserveHosted(ctx context.Context, c client.Reader, hcp *hyperv1.HostedControlPlane) (Hosted, error) {
	hosted := Hosted{Objects: map[string]map[string]any{}, Kubelets: map[string]KubeletCopy{}}
	all := wanted(hcp)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		u := all[key]
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
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	copies := &metav1.PartialObjectMetadataList{}
	copies.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	if err := c.List(ctx, copies, client.InNamespace(managedConfig), client.MatchingLabels{kubeletConfigLabel: "true"}, client.Limit(maxKubelets)); err != nil {
		return hosted, fmt.Errorf("listing copies of settings of kubelets: %w", err)
	}
	for i := range copies.Items {
		labels := copies.Items[i].Labels
		hosted.Kubelets[copies.Items[i].Name] = KubeletCopy{NodePool: labels[nodePoolLabel], Mirrored: labels[mirroredConfigLabel] == "true"}
	}
	return hosted, nil
}
