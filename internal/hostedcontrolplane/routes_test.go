package hostedcontrolplane

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/testenv"
)

// withRoutes is an API server that serves Routes, as that of a management cluster of OpenShift does.
func withRoutes(t testing.TB) *testenv.Env {
	t.Helper()
	env := testenv.StartOther(t)
	crds, err := config.CRDs("default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: crds, Paths: []string{"testdata/routes.crd.yaml"}, MaxTime: 3 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	return env
}

// byRoutes publishes everything by Routes of these names.
func byRoutes(api, oauth, tunnel, ignition string) func(*hyperv1.HostedControlPlane) {
	return func(h *hyperv1.HostedControlPlane) {
		for service, name := range map[hyperv1.ServiceType]string{hyperv1.APIServer: api, hyperv1.OAuthServer: oauth, hyperv1.Konnectivity: tunnel, hyperv1.Ignition: ignition} {
			s := hyperv1.ServicePublishingStrategy{Type: hyperv1.Route}
			if name != "" {
				s.Route = &hyperv1.RoutePublishingStrategy{Hostname: hyperv1.PublishedHostname(name)}
			}
			if present := strategy(h, service); present != nil {
				*present = s
			} else {
				h.Spec.Services = append(h.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: s})
			}
		}
	}
}

var allRoutes = byRoutes("api.example.com", "oauth.example.com", "tunnel.example.com", "ignition.example.com")

// nameRoutes plays what chooses names: the router of the management cluster.
func (w *world) nameRoutes() {
	w.t.Helper()
	for _, name := range []string{endpoints.OAuthRouteName, endpoints.KonnectivityRouteName, endpoints.IgnitionRouteName} {
		route := routeNamed(w.hcp.Namespace, name)
		if err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(route), route); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			w.t.Fatal(err)
		}
		if host, _, _ := unstructured.NestedString(route.Object, "spec", "host"); host != "" {
			continue
		}
		_ = unstructured.SetNestedField(route.Object, name+".apps.management.example.com", "spec", "host")
		if err := w.c.Update(w.t.Context(), route); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestRoutesPasses(t *testing.T) {
	t.Run("When the management cluster serves no Routes the control plane's router should publish, under the names of the spec", func(t *testing.T) {
		g := NewWithT(t)
		w := newPayloadWorld(t, allRoutes)
		w.generateFeatureGates()
		g.Expect(w.settle(w.c)).To(Succeed())
		hcp := w.read()
		g.Expect(condition(hcp, "ValidHostedControlPlaneConfiguration")).To(HavePrefix("True"))
		g.Expect(condition(hcp, "InfrastructureReady")).To(HavePrefix("True"))
		g.Expect(hcp.Status.ControlPlaneEndpoint).To(Equal(hyperv1.APIEndpoint{Host: "api.example.com", Port: 443}))
		g.Expect(hcp.Status.OAuthCallbackURLTemplate).To(HavePrefix("https://oauth.example.com:443/"))
		get := func(obj client.Object, name string) {
			g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: hcp.Namespace, Name: name}, obj)).To(Succeed(), name)
		}
		svc, kas, cm := &corev1.Service{}, &corev1.Service{}, &corev1.ConfigMap{}
		get(svc, "router")
		get(kas, "kube-apiserver")
		get(cm, "router")
		get(&appsv1.Deployment{}, "router")
		g.Expect(svc.Spec.Type).To(Equal(corev1.ServiceTypeLoadBalancer))
		g.Expect(kas.Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))
		g.Expect(svc.Annotations).To(HaveKeyWithValue("external-dns.alpha.kubernetes.io/hostname", "api.example.com,ignition.example.com,oauth.example.com,tunnel.example.com"))
		for _, line := range []string{"-i api.example.com\n  use_backend kube_api", "-i oauth.example.com\n  use_backend oauth", "-i tunnel.example.com\n  use_backend konnectivity",
			"-i ignition.example.com\n  use_backend ignition", "default_backend kube_api", "server kube_api " + kas.Spec.ClusterIP + ":6443"} {
			g.Expect(cm.Data["haproxy.cfg"]).To(ContainSubstring(line))
		}
		g.Expect(string(w.secrets()["admin-kubeconfig"].Data["kubeconfig"])).To(ContainSubstring("server: https://api.example.com:443"))
		g.Expect(string(w.secrets()["bootstrap-kubeconfig"].Data["kubeconfig"])).To(ContainSubstring("server: https://api.example.com:443"))
		testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error { _, err := w.pass(c); return err })
		w.update(func(h *hyperv1.HostedControlPlane) {
			*strategy(h, hyperv1.APIServer) = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
		})
		_, err := w.pass(w.c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(condition(w.read(), "ValidHostedControlPlaneConfiguration")).To(HavePrefix("False InsufficientClusterCapabilities service OAuthServer is published by Route"))
	})

	t.Run("When Routes are served", func(t *testing.T) {
		env := withRoutes(t)
		t.Run("When everything has a name it should make Routes for its own router, and admit them", func(t *testing.T) {
			g := NewWithT(t)
			w := newPayloadWorldOn(t, env, allRoutes)
			w.routes = true
			w.generateFeatureGates()
			g.Expect(w.settle(w.c)).To(Succeed())
			for name, host := range map[string]string{"kube-apiserver": "api.example.com", "oauth": "oauth.example.com", "konnectivity-server": "tunnel.example.com", "ignition-server": "ignition.example.com"} {
				route := routeNamed(w.hcp.Namespace, name)
				g.Expect(w.c.Get(t.Context(), client.ObjectKeyFromObject(route), route)).To(Succeed(), name)
				g.Expect(route.GetLabels()).To(HaveKeyWithValue("hypershift.openshift.io/hosted-control-plane", w.hcp.Namespace), name)
				g.Expect(route.GetAnnotations()).To(HaveKeyWithValue("hypershift.openshift.io/route-status-writer", "hcp-router"), name)
				ingress, _, _ := unstructured.NestedSlice(route.Object, "status", "ingress")
				g.Expect(ingress).To(HaveLen(1), name)
				g.Expect(ingress[0]).To(And(HaveKeyWithValue("host", host), HaveKeyWithValue("routerName", "router"), HaveKeyWithValue("routerCanonicalHostname", "10.97.0.1")), name)
			}
			svc := &corev1.Service{}
			g.Expect(w.c.Get(t.Context(), client.ObjectKey{Namespace: w.hcp.Namespace, Name: "router"}, svc)).To(Succeed())
			g.Expect(svc.Annotations).NotTo(HaveKey("external-dns.alpha.kubernetes.io/hostname"), "it goes by Routes")
			testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error { _, err := w.pass(c); return err })
		})

		t.Run("When names are the router's it should wait for them, and then tell nodes and users", func(t *testing.T) {
			g := NewWithT(t)
			w := newPayloadWorldOn(t, env, byRoutes("api.example.com", "", "", ""), func(h *hyperv1.HostedControlPlane) {
				*strategy(h, hyperv1.APIServer) = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
			})
			w.routes = true
			w.generateFeatureGates()
			g.Expect(w.settle(w.c)).To(Succeed())
			g.Expect(condition(w.read(), "InfrastructureReady")).To(ContainSubstring("/oauth has no host yet"))
			w.nameRoutes()
			g.Expect(w.settle(w.c)).To(Succeed())
			w.nameRoutes() // that of the ignition server comes with its component
			g.Expect(w.settle(w.c)).To(Succeed())
			hcp := w.read()
			g.Expect(condition(hcp, "InfrastructureReady")).To(HavePrefix("True"))
			g.Expect(hcp.Status.OAuthCallbackURLTemplate).To(HavePrefix("https://oauth.apps.management.example.com:443/"))
			router := &corev1.Service{}
			g.Expect(apierrors.IsNotFound(w.c.Get(t.Context(), client.ObjectKey{Namespace: hcp.Namespace, Name: "router"}, router))).To(BeTrue())
			for secret, name := range map[string]string{"oauth-server-crt": "oauth.apps.management.example.com", "konnectivity-cluster": "konnectivity-server.apps.management.example.com",
				"ignition-server-serving-cert": "ignition-server.apps.management.example.com"} {
				g.Expect(certificateNames(t, w.secrets()[secret].Data["tls.crt"])).To(ContainElement(name), secret)
			}
			testenv.ExpectQuiet(t, w.c, func(c client.WithWatch) error { _, err := w.pass(c); return err })
			// What is no longer published so has no Route.
			w.update(func(h *hyperv1.HostedControlPlane) {
				*strategy(h, hyperv1.OAuthServer) = hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.10"}}
			})
			g.Expect(w.settle(w.c)).To(Succeed())
			route := routeNamed(hcp.Namespace, "oauth")
			g.Expect(apierrors.IsNotFound(w.c.Get(t.Context(), client.ObjectKeyFromObject(route), route))).To(BeTrue())
		})
	})
}

// certificateNames are the DNS names of a certificate.
func certificateNames(t testing.TB, chain []byte) []string {
	t.Helper()
	block, _ := pem.Decode(chain)
	if block == nil {
		t.Fatal("there is no certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert.DNSNames
}
