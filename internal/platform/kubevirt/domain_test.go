package kubevirt

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func virtual() *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", UID: "1"}}
	hc.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: &hyperv1.KubevirtPlatformSpec{BaseDomainPassthrough: ptr.To(true)}}
	return hc
}

// served is a cluster with Routes and some Secrets. It stands for reading and writing one object; what a router does is played by the test.
func served(objs ...client.Object) client.Client {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	scheme.AddKnownTypeWithName(routeKind, &unstructured.Unstructured{})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build()
}

func TestBaseDomain(t *testing.T) {
	ask := func(t *testing.T, c client.Client, hc *hyperv1.HostedCluster) (string, error) {
		return Platform{}.BaseDomain(t.Context(), c, c, hc)
	}
	t.Run("When the management cluster's router names a Route the domain should be what is below the name, and the Route go", func(t *testing.T) {
		g := NewWithT(t)
		c, hc := served(), virtual()
		_, err := ask(t, c, hc)
		g.Expect(err).To(MatchError(ContainSubstring("waiting for the router")))
		route := temporary("clusters")
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(route), route)).To(Succeed())
		g.Expect(route.GetOwnerReferences()).To(HaveLen(1))
		g.Expect(unstructured.SetNestedField(route.Object, "kubevirt-infra-temp-route-clusters.apps.mgmt.example.com", "spec", "host")).To(Succeed())
		g.Expect(c.Update(t.Context(), route)).To(Succeed())
		g.Expect(ask(t, c, hc)).To(Equal("apps.mgmt.example.com"))
		g.Expect(client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(route), route))).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(route), route)).NotTo(Succeed())
	})
	t.Run("When the router has named it in the status alone that should count", func(t *testing.T) {
		g := NewWithT(t)
		route := temporary("clusters")
		g.Expect(unstructured.SetNestedSlice(route.Object, []any{map[string]any{"host": "x.apps.example.com"}}, "status", "ingress")).To(Succeed())
		g.Expect(ask(t, served(route), virtual())).To(Equal("apps.example.com"))
	})
	for name, change := range map[string]func(*hyperv1.HostedCluster){
		"there is a domain":  func(hc *hyperv1.HostedCluster) { hc.Spec.DNS.BaseDomain = "example.com" },
		"nobody asks for it": func(hc *hyperv1.HostedCluster) { hc.Spec.Platform.Kubevirt.BaseDomainPassthrough = nil },
	} {
		t.Run("When "+name+" it should ask nobody", func(t *testing.T) {
			hc := virtual()
			change(hc)
			NewWithT(t).Expect(ask(t, nil, hc)).To(BeEmpty())
		})
	}
	t.Run("When the router names nonsense it should be refused", func(t *testing.T) {
		g := NewWithT(t)
		route := temporary("clusters")
		g.Expect(unstructured.SetNestedField(route.Object, "x.a b", "spec", "host")).To(Succeed())
		_, err := ask(t, served(route), virtual())
		g.Expect(err).To(MatchError(ContainSubstring("set spec.dns.baseDomain")))
	})
	t.Run("When the management cluster has no Routes it should say what to do", func(t *testing.T) {
		_, err := Platform{}.BaseDomain(t.Context(), nil, noRoutes{}, virtual())
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("the management cluster serves no Routes")))
	})
}

// noRoutes is a cluster that doesn't know Routes.
type noRoutes struct{ client.Reader }

func (noRoutes) Get(_ context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return &apimeta.NoKindMatchError{GroupKind: routeKind.GroupKind()}
}

func TestBaseDomainElsewhere(t *testing.T) {
	var mu sync.Mutex
	var route map[string]any
	var asked []string
	router := true
	open := map[net.Conn]bool{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method)
		if r.URL.Path != "/apis/route.openshift.io/v1/namespaces/vms/routes/kubevirt-infra-temp-route" || r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPatch:
			raw, _ := io.ReadAll(r.Body)
			if yaml.Unmarshal(raw, &route) != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			if router {
				route["spec"].(map[string]any)["host"] = "kubevirt-infra-temp-route-vms.apps.other.example.com"
			}
		case route == nil:
			w.WriteHeader(http.StatusNotFound)
			return
		case r.Method == http.MethodDelete:
			route = nil
			_, _ = io.WriteString(w, "{}")
			return
		}
		_ = json.NewEncoder(w).Encode(route)
	}))
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			open[c] = true
		case http.StateClosed:
			delete(open, c)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	kubeconfig := func(token string) []byte {
		ca, _ := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
		return fmt.Appendf(nil, `{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],
			"clusters":[{"name":"a","cluster":{"server":%q,"certificate-authority-data":%s}}],"users":[{"name":"a","user":{"token":%q}}]}`, s.URL, ca, token)
	}
	hc := virtual()
	hc.Spec.Platform.Kubevirt.Credentials = &hyperv1.KubevirtPlatformCredentials{InfraNamespace: "vms", InfraKubeConfigSecret: &hyperv1.KubeconfigSecretRef{Name: "infra", Key: "config"}}
	secret := func(content []byte) client.Client {
		return served(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "infra"}, Data: map[string][]byte{"config": content}})
	}
	t.Run("When virtual machines are in another cluster its router should name the Route", func(t *testing.T) {
		g := NewWithT(t)
		c := secret(kubeconfig("t"))
		g.Expect(Platform{}.BaseDomain(t.Context(), c, c, hc)).To(Equal("apps.other.example.com"))
		g.Expect(asked).To(Equal([]string{"GET", "PATCH", "GET", "DELETE"}))
		g.Expect(route).To(BeNil())
	})
	t.Run("When it was asked no connection should be left behind", func(t *testing.T) {
		NewWithT(t).Eventually(func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(open)
		}).Should(BeZero())
	})
	for name, tc := range map[string]struct {
		content []byte
		says    string
	}{
		"may not":             {kubeconfig("other"), "must allow to get, create, patch and delete Routes"},
		"runs programs":       {[]byte(`{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"clusters":[{"name":"a","cluster":{"server":"https://x"}}],"users":[{"name":"a","user":{"exec":{"command":"sh"}}}]}`), "is no kubeconfig that can be used here"},
		"isn't a kubeconfig":  {[]byte("x"), "is no kubeconfig that can be used here"},
		"isn't in the Secret": {nil, "is no kubeconfig that can be used here"},
	} {
		t.Run("When its kubeconfig "+name+" it should say so", func(t *testing.T) {
			c := secret(tc.content)
			_, err := Platform{}.BaseDomain(t.Context(), c, c, hc)
			NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("spec.platform.kubevirt.baseDomainPassthrough: "), ContainSubstring(tc.says))))
		})
	}
	t.Run("When there is no Secret it should be named", func(t *testing.T) {
		c := served()
		_, err := Platform{}.BaseDomain(t.Context(), c, c, hc)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("there is no Secret infra")))
	})
}
