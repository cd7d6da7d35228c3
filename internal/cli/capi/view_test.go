package capi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
)

// TestViewFollowsMoves is about clients that work on while a hosted cluster is moved, and back.
func TestViewFollowsMoves(t *testing.T) {
	env, _, ns := management(t)
	g, c := NewWithT(t), env.Client(t, runtime.NewScheme())
	hcp := hostedControlPlane(t, env, ns)
	upstream, err := Upstream(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	now := clocktesting.NewFakePassiveClock(time.Now())
	view, err := NewView(t.Context(), upstream, now)
	g.Expect(err).NotTo(HaveOccurred())
	view.every = 10 * time.Millisecond
	server := httptest.NewServer(view)
	t.Cleanup(server.Close)

	through, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	g.Expect(err).NotTo(HaveOccurred())
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(through, 0, ns, nil)
	clusters := factory.ForResource(schema.GroupVersionResource{Group: translate.Standard, Version: "v1beta2", Resource: "clusters"}).Informer()
	stop := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() { clusters.Run(stop) })
	t.Cleanup(func() { close(stop); ended.Wait() })
	known := func() (all []string) {
		for _, key := range clusters.GetStore().ListKeys() {
			all = append(all, strings.TrimPrefix(key, ns+"/"))
		}
		return all
	}
	g.Eventually(known, "60s").Should(ConsistOf("of-" + ns))
	add := func(group, name string) {
		t.Helper()
		NewWithT(t).Expect(c.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1beta2", "kind": "Cluster",
			"metadata": map[string]any{"name": name, "namespace": ns}, "spec": map[string]any{"infrastructureRef": map[string]any{
				"apiGroup": "infrastructure." + group, "kind": "LocalCluster", "name": "c"}}}})).To(Succeed())
	}
	later := func() []string {
		now.SetTime(now.Now().Add(modeFor + time.Second))
		return known()
	}
	add(translate.Private, "copy")
	t.Run("When the objects of a namespace are moved informers should follow them", func(t *testing.T) {
		g := NewWithT(t)
		hcp.SetAnnotations(map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"})
		g.Expect(c.Update(t.Context(), hcp)).To(Succeed())
		g.Eventually(later, "60s").Should(ConsistOf("copy"))
		add(translate.Private, "new")
		g.Eventually(later, "60s").Should(ConsistOf("copy", "new"))
	})
	t.Run("When they are moved back informers should follow them again", func(t *testing.T) {
		g := NewWithT(t)
		hcp.SetAnnotations(nil)
		g.Expect(c.Update(t.Context(), hcp)).To(Succeed())
		g.Eventually(later, "60s").Should(ConsistOf("of-" + ns))
	})
}

// storage is an API server that says where a namespace stores its objects, and notes what reaches it.
type storage struct {
	mu       sync.Mutex
	private  bool
	version  int
	requests []string
}

func (s *storage) set(private bool, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.private, s.version = private, version
}

// reached are the requests since the last call, but for questions where objects are.
func (s *storage) reached() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.requests
	s.requests = nil
	return all
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/apis/"+translate.Private:
		_, _ = io.WriteString(w, "{}")
	case strings.HasSuffix(r.URL.Path, "/hostedcontrolplanes"):
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"},"items":[{"metadata":{"annotations":{%q:"%t"}}}]}`, s.version, hyperv1.PrivateCAPITypesAnnotation, s.private)
	default:
		s.requests = append(s.requests, strings.TrimPrefix(r.URL.RequestURI(), "/apis/"))
		_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`)
	}
}

func TestViewFlip(t *testing.T) {
	g, back := NewWithT(t), &storage{version: 100}
	management := httptest.NewServer(back)
	t.Cleanup(management.Close)
	upstream, err := Upstream(&rest.Config{Host: management.URL})
	g.Expect(err).NotTo(HaveOccurred())
	now := clocktesting.NewFakePassiveClock(time.Now())
	view, err := NewView(t.Context(), upstream, now)
	g.Expect(err).NotTo(HaveOccurred())
	ask := func(t *testing.T, method, query string) (int, string, []string) {
		t.Helper()
		back.reached()
		answer, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines"+query, http.NoBody)
		r.Host = "127.0.0.1"
		view.ServeHTTP(answer, r)
		return answer.Code, answer.Body.String(), back.reached()
	}
	const standard, private = "cluster.x-k8s.io/v1beta2/namespaces/n/machines", "cluster.hypershift.openshift.io/v1beta2/namespaces/n/machines"
	t.Run("When nothing was moved every watch should pass as it is", func(t *testing.T) {
		code, _, reached := ask(t, http.MethodGet, "?watch=1&resourceVersion=5")
		NewWithT(t).Expect(code).To(Equal(http.StatusOK))
		NewWithT(t).Expect(reached).To(Equal([]string{standard + "?watch=1&resourceVersion=5"}))
	})
	back.set(true, 200)
	t.Run("When objects were moved a moment ago a write should find them already", func(t *testing.T) {
		_, _, reached := ask(t, http.MethodDelete, "/m")
		NewWithT(t).Expect(reached).To(Equal([]string{private + "/m"}))
	})
	t.Run("When a watch would go on where an earlier one in the other group ended it should have to list again", func(t *testing.T) {
		g := NewWithT(t)
		for _, query := range []string{"?watch=1&resourceVersion=150", "?resourceVersion=199&watch=true&allowWatchBookmarks=true"} {
			code, body, reached := ask(t, http.MethodGet, query)
			g.Expect(code).To(Equal(http.StatusGone), query)
			g.Expect(body).To(ContainSubstring(`"reason":"` + string(metav1.StatusReasonExpired) + `"`))
			g.Expect(reached).To(BeEmpty())
		}
	})
	t.Run("When a watch begins with what is there, or after the move, it should pass", func(t *testing.T) {
		for _, query := range []string{"?watch=1", "?watch=1&resourceVersion=0", "?watch=1&resourceVersion=200", "?watch=1&sendInitialEvents=true&resourceVersion=150&resourceVersionMatch=NotOlderThan"} {
			code, _, reached := ask(t, http.MethodGet, query)
			NewWithT(t).Expect(code).To(Equal(http.StatusOK), query)
			NewWithT(t).Expect(reached).To(Equal([]string{private + query}))
		}
	})
	t.Run("When a list may be older than the move it should be as new as there is, or its watch would expire at once", func(t *testing.T) {
		for query, want := range map[string]string{"?limit=500&resourceVersion=0": "?limit=500", "?resourceVersion=150&resourceVersionMatch=NotOlderThan": "", "?resourceVersion=200": "?resourceVersion=200", "?limit=5": "?limit=5"} {
			code, _, reached := ask(t, http.MethodGet, query)
			NewWithT(t).Expect(code).To(Equal(http.StatusOK), query)
			NewWithT(t).Expect(reached).To(Equal([]string{private + want}))
		}
	})
	t.Run("When a list is of an exact time before the move it should be too old", func(t *testing.T) {
		code, _, reached := ask(t, http.MethodGet, "?resourceVersion=150&resourceVersionMatch=Exact")
		NewWithT(t).Expect(code).To(Equal(http.StatusGone))
		NewWithT(t).Expect(reached).To(BeEmpty())
	})
	t.Run("When kinds of other groups are watched nothing should change for them", func(t *testing.T) {
		answer, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/namespaces/n/pods?watch=1&resourceVersion=5", http.NoBody)
		r.Host = "127.0.0.1"
		back.reached()
		view.ServeHTTP(answer, r)
		NewWithT(t).Expect(answer.Code).To(Equal(http.StatusOK))
		NewWithT(t).Expect(back.reached()).To(HaveLen(1))
	})
}
