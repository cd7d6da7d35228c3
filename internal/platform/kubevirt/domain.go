package kubevirt

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/sidecar/kubeapi"
)

const (
	// temporaryRoute is made without a host, so that the router chooses one, and deleted once it has.
	temporaryRoute = "kubevirt-infra-temp-route"
	// domainTimeout bounds all requests to the cluster that runs the virtual machines.
	domainTimeout = 15 * time.Second
	operatorName  = "hypershift-operator"
)

var routeKind = schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"}

// remedy ends each message about a domain that can't be found.
const remedy = "or set spec.dns.baseDomain"

// routes are Routes of a namespace, of the management cluster or of another.
type routes interface {
	// host is that of a Route: "" while it has none. found is false when there is no such Route.
	host(ctx context.Context) (host string, found bool, err error)
	create(ctx context.Context) error
	remove(ctx context.Context) error
	// close ends connections to the other cluster. Its server is a user's, and need not end them itself.
	close()
}

// BaseDomain implements platform.DomainFinder: with spec.platform.kubevirt.baseDomainPassthrough the applications of a hosted cluster have names below the
// domain of the router where its virtual machines run. What that domain is, a Route without a host tells.
func (Platform) BaseDomain(ctx context.Context, c client.Client, live client.Reader, hc *hyperv1.HostedCluster) (string, error) {
	k := hc.Spec.Platform.Kubevirt
	if hc.Spec.DNS.BaseDomain != "" || k == nil || k.BaseDomainPassthrough == nil || !*k.BaseDomainPassthrough {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, domainTimeout)
	defer cancel()
	of, err := routesOf(ctx, c, live, hc)
	if err != nil {
		return "", fmt.Errorf("spec.platform.kubevirt.baseDomainPassthrough: %w", err)
	}
	defer of.close()
	domain, err := findDomain(ctx, of)
	if err != nil {
		return "", fmt.Errorf("spec.platform.kubevirt.baseDomainPassthrough: %w", err)
	}
	return domain, nil
}

// errNoHost says that the router has not chosen yet.
var errNoHost = errors.New("waiting for the router of the cluster that runs the virtual machines to give Route " + temporaryRoute + " a host; " + remedy)

func findDomain(ctx context.Context, of routes) (string, error) {
	host, found, err := of.host(ctx)
	if err != nil {
		return "", err
	}
	if !found {
		if err := of.create(ctx); err != nil {
			return "", err
		}
		if host, _, err = of.host(ctx); err != nil {
			return "", err
		}
	}
	if host == "" {
		return "", errNoHost
	}
	_, domain, _ := strings.Cut(host, ".")
	if len(validation.IsDNS1123Subdomain(domain)) > 0 || !strings.Contains(domain, ".") {
		return "", fmt.Errorf("the router chose a host below no domain for Route %s; %s", temporaryRoute, remedy)
	}
	return domain, of.remove(ctx)
}

// routesOf are the Routes where the virtual machines run. In the management cluster those of the HostedCluster's own namespace, for the control plane has none yet.
func routesOf(ctx context.Context, c client.Client, live client.Reader, hc *hyperv1.HostedCluster) (routes, error) {
	credentials := credentialsOf(hc)
	if credentials == nil {
		return managementRoutes{c, live, hc}, nil
	}
	if credentials.InfraKubeConfigSecret == nil || credentials.InfraNamespace == "" {
		return nil, errors.New("credentials need infraKubeConfigSecret and infraNamespace")
	}
	secret := &corev1.Secret{}
	name := credentials.InfraKubeConfigSecret.Name
	if err := live.Get(ctx, client.ObjectKey{Namespace: hc.Namespace, Name: name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no Secret %s with the kubeconfig of the cluster that runs the virtual machines: create it", name)
		}
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	key := credentials.InfraKubeConfigSecret.Key
	if key == "" {
		key = kubeconfigKey
	}
	api, err := kubeapi.FromKubeconfigBytes(secret.Data[key])
	if err != nil {
		return nil, fmt.Errorf("key %s of Secret %s is no kubeconfig that can be used here: its credentials must be embedded", key, name)
	}
	base := "/apis/route.openshift.io/v1/namespaces/" + url.PathEscape(credentials.InfraNamespace) + "/routes/" + temporaryRoute
	return otherRoutes{api, base, credentials.InfraNamespace}, nil
}

// temporary is the Route, of which only the host matters.
func temporary(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"to": map[string]any{"kind": "Service", "name": "fake-service"}}}}
	u.SetGroupVersionKind(routeKind)
	u.SetNamespace(namespace)
	u.SetName(temporaryRoute)
	return u
}

// hostOf is the host that a router has chosen, or been told.
func hostOf(route map[string]any) string {
	if host, _, _ := unstructured.NestedString(route, "spec", "host"); host != "" {
		return host
	}
	ingress, _, _ := unstructured.NestedSlice(route, "status", "ingress")
	for _, i := range ingress {
		entry, _ := i.(map[string]any)
		if host, _ := entry["host"].(string); host != "" {
			return host
		}
	}
	return ""
}

type managementRoutes struct {
	client client.Client
	live   client.Reader
	hc     *hyperv1.HostedCluster
}

func (m managementRoutes) host(ctx context.Context) (string, bool, error) {
	u := temporary(m.hc.Namespace)
	err := m.live.Get(ctx, client.ObjectKeyFromObject(u), u)
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case apimeta.IsNoMatchError(err):
		return "", false, errors.New("the management cluster serves no Routes, by which its ingress domain is found: use one of OpenShift, " + remedy)
	case err != nil:
		return "", false, fmt.Errorf("reading Route %s: %w", temporaryRoute, err)
	}
	return hostOf(u.Object), true, nil
}

func (m managementRoutes) create(ctx context.Context) error {
	u := temporary(m.hc.Namespace)
	// It goes with the HostedCluster should nobody come to delete it.
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedCluster", Name: m.hc.Name, UID: m.hc.UID}})
	if err := m.client.Create(ctx, u); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating Route %s: %w", temporaryRoute, err)
	}
	return nil
}

func (m managementRoutes) remove(ctx context.Context) error {
	if err := m.client.Delete(ctx, temporary(m.hc.Namespace)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Route %s: %w", temporaryRoute, err)
	}
	return nil
}

func (managementRoutes) close() {}

// otherRoutes are those of a cluster that a user's kubeconfig leads to. Its answers are not repeated.
type otherRoutes struct {
	api       *kubeapi.Client
	path      string
	namespace string
}

var errOther = errors.New("the cluster that runs the virtual machines refuses, or can't be asked for, Route " + temporaryRoute +
	": its kubeconfig must allow to get, create, patch and delete Routes in infraNamespace; " + remedy)

func (o otherRoutes) host(ctx context.Context) (string, bool, error) {
	var route map[string]any
	err := o.api.Get(ctx, o.path, &route)
	if kubeapi.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, errOther
	}
	return hostOf(route), true, nil
}

func (o otherRoutes) create(ctx context.Context) error {
	raw, err := yaml.Marshal(temporary(o.namespace).Object)
	if err != nil {
		return fmt.Errorf("encoding Route %s: %w", temporaryRoute, err)
	}
	if err := o.api.Apply(ctx, o.path, operatorName, raw); err != nil {
		return errOther
	}
	return nil
}

func (o otherRoutes) remove(ctx context.Context) error {
	if err := o.api.Delete(ctx, o.path); err != nil && !kubeapi.IsNotFound(err) {
		return errOther
	}
	return nil
}

func (o otherRoutes) close() { o.api.Close() }
