package server_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/consoletest"
	"hcp.internal/platform/internal/console/server"
	"hcp.internal/platform/internal/console/world"
	"hcp.internal/platform/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const patience = 90 * time.Second

var (
	once   sync.Once
	seeded client.WithWatch
)

// fleet is the seeded world on the API server of the tests.
func fleet(t *testing.T) (*testenv.Env, client.WithWatch) {
	t.Helper()
	env := testenv.Start(t)
	once.Do(func() { c := env.Client(t, consoletest.Scheme()); consoletest.Fleet(t, env, c); seeded = c })
	return env, seeded
}

// picture is a world that is kept until the test ends.
func picture(t *testing.T, c client.WithWatch) *world.World {
	t.Helper()
	w := world.New()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx, c, "", logr.Discard()) }()
	t.Cleanup(func() { cancel(); <-done })
	NewWithT(t).Eventually(w.Synced, patience).Should(BeTrue())
	return w
}

func serve(t *testing.T, w *world.World, gate access.Gate) *httptest.Server {
	t.Helper()
	s := &server.Server{World: w, Gate: gate, Log: logr.Discard(), Clock: clock.RealClock{}}
	out := httptest.NewServer(s.Handler())
	t.Cleanup(out.Close)
	return out
}

// ask sends a request, and reads the answer.
func ask(t *testing.T, srv *httptest.Server, path, token string, change ...func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(r)
	}
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(raw)
}

// person is a service account with some rights, and its token.
func person(t *testing.T, c client.Client, name string, bind func(rbacv1.Subject) []client.Object) string {
	t.Helper()
	g := NewWithT(t)
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	g.Expect(c.Create(t.Context(), sa)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(context.Background(), sa) })
	for _, o := range bind(rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: name}) {
		g.Expect(c.Create(t.Context(), o)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(context.Background(), o) })
		switch role := o.(type) {
		case *rbacv1.ClusterRole:
			defer awaitRules(t, c, name, "", role.Rules)
		case *rbacv1.Role:
			defer awaitRules(t, c, name, role.Namespace, role.Rules)
		}
	}
	request := &authenticationv1.TokenRequest{}
	g.Expect(c.SubResource("token").Create(t.Context(), sa, request)).To(Succeed())
	return request.Status.Token
}

// awaitRules waits until the API server has heard of what a person may do, which it does by a watch.
func awaitRules(t *testing.T, c client.Client, name, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			resource, sub, _ := strings.Cut(resource, "/")
			NewWithT(t).Eventually(func() (bool, error) {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User:               "system:serviceaccount:default:" + name,
					ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: sub, Name: strings.Join(rule.ResourceNames, "")},
				}}
				err := c.Create(t.Context(), review)
				return review.Status.Allowed, err
			}).WithTimeout(patience).Should(BeTrue(), "%s of %s", resource, name)
		}
	}
}

var readAll = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}

func everywhere(name string, rules []rbacv1.PolicyRule) func(rbacv1.Subject) []client.Object {
	return func(s rbacv1.Subject) []client.Object {
		return []client.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{s}}}
	}
}

func inNamespaces(name string, namespaces ...string) func(rbacv1.Subject) []client.Object {
	return func(s rbacv1.Subject) []client.Object {
		var out []client.Object
		for _, ns := range namespaces {
			out = append(out, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Rules: readAll},
				&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{s}})
		}
		return out
	}
}

// endpoints are all that answer with JSON.
var endpoints = []string{
	"/api/v1/me", "/api/v1/fleet", "/api/v1/hc/production/payments-eu", "/api/v1/hc/production/payments-eu/yaml", "/api/v1/hc/production/payments-eu/certificates", "/api/v1/hc/staging/orders", "/api/v1/hc/staging/orders/certificates", "/api/v1/certificates", "/api/v1/rollouts", "/api/v1/rollout/logging-agent",
	"/api/v1/packages", "/api/v1/pkg/production-routing/logging-agent", "/api/v1/pkg/staging-orders/logging-agent", "/api/v1/events", "/api/v1/events?ns=staging", "/api/v1/events?hc=production/payments-eu", "/api/v1/about",
}

// TestMatrix asks each endpoint as each kind of person.
func TestMatrix(t *testing.T) {
	env, c := fleet(t)
	srv := serve(t, picture(t, c), access.NewTokens(c, env.Config, clock.RealClock{}))
	tokens := map[string]string{
		"all":     person(t, c, "console-all", everywhere("console-all", readAll)),
		"staging": person(t, c, "console-staging", inNamespaces("console-staging", "staging", "staging-orders", "staging-hostile")),
		"nothing": person(t, c, "console-nothing", func(rbacv1.Subject) []client.Object { return nil }),
		"wrong":   "wrong",
		"none":    "",
	}
	allowed := map[string][]string{
		"staging": {"/api/v1/me", "/api/v1/fleet", "/api/v1/hc/staging/orders", "/api/v1/hc/staging/orders/certificates", "/api/v1/certificates", "/api/v1/rollouts", "/api/v1/packages", "/api/v1/pkg/staging-orders/logging-agent", "/api/v1/events?ns=staging", "/api/v1/about"},
		"nothing": {"/api/v1/me", "/api/v1/fleet", "/api/v1/certificates", "/api/v1/rollouts", "/api/v1/packages", "/api/v1/about"},
	}
	for who, token := range tokens {
		for _, path := range endpoints {
			t.Run(fmt.Sprintf("When %s is asked for by who may see %s it should answer with no more than that", path, who), func(t *testing.T) {
				g := NewWithT(t)
				resp, body := ask(t, srv, path, token)
				for resp.StatusCode == http.StatusTooManyRequests { // the tests are faster than a person may be
					resp, body = ask(t, srv, path, token)
				}
				want := http.StatusForbidden
				switch {
				case who == "wrong" || who == "none":
					want = http.StatusUnauthorized
				case who == "all":
					want = http.StatusOK
				default:
					for _, p := range allowed[who] {
						if p == path {
							want = http.StatusOK
						}
					}
				}
				g.Expect(resp.StatusCode).To(Equal(want), body)
				if who != "all" {
					// Not a name, nor a count of what they may not list. Refusals repeat what was asked for.
					for _, secret := range []string{"checkout-workers", "recommendations", "EtcdWaitingForQuorum", "registry.example.com/addons/ingress"} {
						g.Expect(body).NotTo(ContainSubstring(secret))
					}
				}
				var fleet struct {
					Summary struct {
						Total      int
						Namespaces []struct{ Name string }
					}
					Rows []struct{ Ns string }
				}
				if path == "/api/v1/fleet" && want == http.StatusOK {
					g.Expect(json.Unmarshal([]byte(body), &fleet)).To(Succeed())
					g.Expect(fleet.Summary.Total).To(Equal(map[string]int{"all": 21, "staging": 6, "nothing": 0}[who]))
					for _, r := range fleet.Rows {
						if who != "all" {
							g.Expect(r.Ns).To(Equal("staging"))
						}
					}
				}
				if path == "/api/v1/packages" && who == "staging" {
					g.Expect(body).To(And(ContainSubstring(`"total":2`), Not(ContainSubstring("production"))))
				}
			})
		}
	}
	t.Run("When who may see one namespace follows the fleet it should be told nothing of others", func(t *testing.T) {
		g := NewWithT(t)
		events := follow(t, srv, "/api/v1/stream?topic=fleet&show=all", tokens["staging"])
		g.Eventually(events, patience).Should(Receive(ContainSubstring(`"total":6`)))
		touch(t, c, consoletest.Production, "orders", "console-a")
		touch(t, c, consoletest.Staging, "orders", "console-b")
		for told := ""; !strings.Contains(told, "console-b"); {
			g.Eventually(events, patience).Should(Receive(&told))
			g.Expect(told).NotTo(Or(ContainSubstring("console-a"), ContainSubstring("production")))
		}
	})
	t.Run("When a stream is asked for without a token it should be refused", func(t *testing.T) {
		resp, _ := ask(t, srv, "/api/v1/stream?topic=fleet", "")
		NewWithT(t).Expect(resp.StatusCode).To(Equal(http.StatusUnauthorized))
	})
}

// own is a console on a person's own machine, and its token.
func own(t *testing.T, c client.WithWatch, w *world.World) (*httptest.Server, string) {
	t.Helper()
	gate := &access.Own{User: "alice", Client: c}
	token, ok := gate.Exchange(gate.Ticket())
	NewWithT(t).Expect(ok).To(BeTrue())
	return serve(t, w, gate), token
}

// TestNoSecrets opens every page and looks at what the console reads.
func TestNoSecrets(t *testing.T) {
	_, c := fleet(t)
	var mu sync.Mutex
	kinds := map[string]bool{}
	see := func(obj any) {
		mu.Lock()
		defer mu.Unlock()
		if o, ok := obj.(client.Object); ok {
			gvk, _ := apiutil.GVKForObject(o, c.Scheme())
			kinds[gvk.Kind] = true
		} else if l, ok := obj.(client.ObjectList); ok {
			gvk, _ := apiutil.GVKForObject(l, c.Scheme())
			kinds[gvk.Kind] = true
		}
	}
	watched := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			see(obj)
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			see(list)
			return c.List(ctx, list, opts...)
		},
	})
	srv, token := own(t, watched, picture(t, watched))
	for _, path := range endpoints {
		if strings.HasSuffix(path, "/certificates") {
			continue // see TestCertificates
		}
		resp, body := ask(t, srv, path, token)
		NewWithT(t).Expect(resp.StatusCode).To(Equal(http.StatusOK), path+" "+body)
	}
	mu.Lock() // the world goes on reading
	defer mu.Unlock()
	g := NewWithT(t)
	g.Expect(kinds).To(And(HaveKey("HostedClusterList"), HaveKey("ConfigMap")), "the test sees nothing")
	g.Expect(kinds).NotTo(Or(HaveKey("Secret"), HaveKey("SecretList"), HaveKey("ConfigMapList")))
}

func TestPages(t *testing.T) {
	_, c := fleet(t)
	srv, token := own(t, c, picture(t, c))
	for path, want := range map[string][]string{
		"/api/v1/fleet":                                               {`"show":"notwell"`, `"name":"payments-eu"`, `"health":"Degraded"`},
		"/api/v1/fleet?show=all&q=pay":                                {`"matching":1`},
		"/api/v1/fleet?show=all&ns=staging":                           {`"matching":6`},
		"/api/v1/fleet?show=all&label=tier%3Dgold":                    {`"matching":5`},
		"/api/v1/hc/production/payments-eu":                           {"etcd-1", "Insufficient memory", `"waits":["etcd"]`, `"first":15`, `"newest":true`, "It is to be replaced, and waits: WaitingForRemediation", "hypershift why hostedcluster/payments-eu -n production"},
		"/api/v1/rollout/logging-agent":                               {`"name":"canary"`, `"state":"flight"`, `"budget":3`, `"waves":[{`},
		"/api/v1/rollout/logging-agent?fail=production/search":        {`"fails":true`},
		"/api/v1/rollout/logging-agent?fail=production/search&per=5m": {`"perCluster":300`},
		"/api/v1/pkg/production-routing/logging-agent":                {`"number":3`, `"state":"failing"`, `"change":"added"`, "spec.template.spec.image"},
		"/api/v1/pkg/production-sessions/metrics":                     {`"collisions":[{`, `"owner":"Package monitoring, by its ObjectSet monitoring-5d9c"`, `"owner":"Helm release tools/agent"`},
		"/api/v1/events?hc=production/payments-eu":                    {"FailedScheduling", `"count":9`},
		"/api/v1/hc/production/payments-eu/yaml":                      {"kind: HostedCluster"},
		"/api/v1/about":                                               {`"verdict"`},
	} {
		t.Run("When "+path+" is asked for it should tell what there is", func(t *testing.T) {
			g := NewWithT(t)
			resp, body := ask(t, srv, path, token)
			g.Expect(resp.StatusCode).To(Equal(http.StatusOK), body)
			for _, w := range want {
				g.Expect(body).To(ContainSubstring(w))
			}
			g.Expect(body).NotTo(Or(ContainSubstring("\\u202e"), ContainSubstring("\u202e"), ContainSubstring("\\u001b")), "what steers terminals and turns writing is taken out")
		})
	}
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/api/v1/fleet?sort=secret":                      {400, "unknown column"},
		"/api/v1/fleet?limit=99999":                      {400, "from 1 to 2000"},
		"/api/v1/rollout/logging-agent?fail=nobody/here": {400, "matches no hosted cluster"},
		"/api/v1/rollout/logging-agent?per=1ms":          {400, "no duration"},
		"/api/v1/hc/production/nobody":                   {404, "there is no such object"},
		"/api/v1/pkg/production-routing/nobody":          {404, "there is no such object"},
		"/api/v1/nothing":                                {404, "no such page"},
		"/api/v1/fleet?q=" + strings.Repeat("x", 5000):   {414, "too long"},
	} {
		t.Run("When "+path[:min(len(path), 60)]+" makes no sense it should say so", func(t *testing.T) {
			g := NewWithT(t)
			resp, body := ask(t, srv, path, token)
			g.Expect(resp.StatusCode).To(Equal(want.code), body)
			g.Expect(body).To(ContainSubstring(want.text))
		})
	}
}

func TestManners(t *testing.T) {
	_, c := fleet(t)
	w := picture(t, c)
	srv, token := own(t, c, w)
	t.Run("When anything is answered browsers should be told to trust nobody else", func(t *testing.T) {
		g := NewWithT(t)
		for _, path := range []string{"/", "/app.js", "/hc/a/b", "/api/v1/fleet", "/healthz"} {
			resp, _ := ask(t, srv, path, token)
			g.Expect(resp.Header.Get("Content-Security-Policy")).To(And(ContainSubstring("default-src 'none'"), ContainSubstring("require-trusted-types-for 'script'"), ContainSubstring("frame-ancestors 'none'")))
			g.Expect(resp.Header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
			g.Expect(resp.Header.Values("Set-Cookie")).To(BeEmpty())
		}
	})
	t.Run("When nothing changed it should send nothing again", func(t *testing.T) {
		g := NewWithT(t)
		resp, _ := ask(t, srv, "/api/v1/rollouts", token)
		tag := resp.Header.Get("ETag")
		resp, body := ask(t, srv, "/api/v1/rollouts", token, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
		g.Expect(resp.StatusCode).To(Equal(http.StatusNotModified))
		g.Expect(body).To(BeEmpty())
	})
	t.Run("When the browser takes it compressed the first page should be small", func(t *testing.T) {
		g := NewWithT(t)
		total := 0
		for _, path := range []string{"/", "/app.js", "/app.css", "/api/v1/fleet?show=all"} {
			resp, body := ask(t, srv, path, token, func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
			g.Expect(resp.StatusCode).To(Equal(http.StatusOK))
			total += len(body)
			if resp.Header.Get("Content-Encoding") == "gzip" {
				_, err := gzip.NewReader(strings.NewReader(body))
				g.Expect(err).NotTo(HaveOccurred())
			}
		}
		t.Logf("%d bytes", total)
		g.Expect(total).To(BeNumerically("<", 90_000))
	})
	t.Run("When a page of somebody else asks it should refuse", func(t *testing.T) {
		resp, _ := ask(t, srv, "/api/v1/fleet", token, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") })
		NewWithT(t).Expect(resp.StatusCode).To(Equal(http.StatusForbidden))
	})
	t.Run("When a name leads to this address that is not ours it should refuse", func(t *testing.T) {
		gate := &access.Own{User: "alice", Client: c}
		s := &server.Server{World: w, Gate: gate, Log: logr.Discard(), Clock: clock.RealClock{}, Hosts: []string{"127.0.0.1:1"}}
		bound := httptest.NewServer(s.Handler())
		t.Cleanup(bound.Close)
		resp, _ := ask(t, bound, "/", "", func(r *http.Request) { r.Host = "evil.example" })
		NewWithT(t).Expect(resp.StatusCode).To(Equal(http.StatusMisdirectedRequest))
	})
	t.Run("When somebody asks all the time it should slow them down", func(t *testing.T) {
		g := NewWithT(t)
		gate, now := &access.Own{User: "alice", Client: c}, clocktesting.NewFakePassiveClock(time.Now())
		token, _ := gate.Exchange(gate.Ticket())
		s := &server.Server{World: w, Gate: gate, Log: logr.Discard(), Clock: now}
		slow := httptest.NewServer(s.Handler())
		t.Cleanup(slow.Close)
		last := 0
		for range 61 {
			resp, _ := ask(t, slow, "/api/v1/me", token)
			last = resp.StatusCode
		}
		g.Expect(last).To(Equal(http.StatusTooManyRequests))
		now.SetTime(now.Now().Add(time.Second))
		resp, _ := ask(t, slow, "/api/v1/me", token)
		g.Expect(resp.StatusCode).To(Equal(http.StatusOK))
	})
}

func TestTickets(t *testing.T) {
	g := NewWithT(t)
	gate := &access.Own{User: "alice"}
	_, ok := gate.Exchange("")
	g.Expect(ok).To(BeFalse(), "there is no ticket yet")
	ticket := gate.Ticket()
	_, ok = gate.Exchange("wrong")
	g.Expect(ok).To(BeFalse())
	token, ok := gate.Exchange(ticket)
	g.Expect(ok).To(BeTrue())
	_, ok = gate.Exchange(ticket)
	g.Expect(ok).To(BeFalse(), "it is good once")
	again, ok := gate.Exchange(gate.Ticket())
	g.Expect(ok).To(BeTrue())
	g.Expect(again).To(Equal(token), "tabs share a session")
}
