package prober

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"hcp.internal/platform/internal/sidecar/kubeapi"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// apiServer is the part of a hosted API that probing sees.
type apiServer struct {
	ready   atomic.Int32 // status of /readyz
	refuses atomic.Int32 // how often /readyz answers that before it is ready; 0: always
	body    map[string]string
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/readyz" {
		w.WriteHeader(int(a.ready.Load()))
		if a.refuses.Load() > 0 && a.refuses.Add(-1) == 0 {
			a.ready.Store(http.StatusOK)
		}
		return
	}
	body, ok := a.body[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	fmt.Fprint(w, body)
}

func start(t *testing.T, body map[string]string, conditions Conditions) (*Prober, *apiServer, *bytes.Buffer) {
	t.Helper()
	api := &apiServer{body: body}
	api.ready.Store(http.StatusOK)
	server := httptest.NewTLSServer(api) // its certificate is nobody's: the target's isn't verified
	t.Cleanup(server.Close)
	plain := httptest.NewServer(api)
	t.Cleanup(plain.Close)
	conditions.Target = server.URL + "/readyz"
	log := &bytes.Buffer{}
	return &Prober{Conditions: conditions, Log: log, Now: func() time.Time { return noon }, Connect: func() (*kubeapi.Client, error) {
		return kubeapi.FromKubeconfigBytes(fmt.Appendf(nil,
			"current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: %q}}]", plain.URL))
	}}, api, log
}

func TestWait(t *testing.T) {
	t.Run("When the target becomes ready later it should wait and say for what, once", func(t *testing.T) {
		g := NewWithT(t)
		p, api, log := start(t, nil, Conditions{})
		api.ready.Store(http.StatusInternalServerError)
		api.refuses.Store(2)
		g.Expect(p.Wait(t.Context())).To(Succeed())
		g.Expect(strings.Count(log.String(), "answers 500 Internal Server Error")).To(Equal(1))
	})
	t.Run("When nothing listens it should go on trying", func(t *testing.T) {
		g := NewWithT(t)
		p, _, _ := start(t, nil, Conditions{})
		p.Conditions.Target = "https://127.0.0.1:1/readyz"
		log, ended := gbytes.NewBuffer(), make(chan error, 1)
		p.Log = log
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ended <- p.Wait(ctx) }()
		g.Eventually(log).Should(gbytes.Say("connection refused"))
		cancel()
		g.Eventually(ended).Should(Receive(MatchError(context.Canceled)))
	})
}

func TestCheck(t *testing.T) {
	core := map[string]string{
		"/api/v1":       `{"resources":[{"kind":"Namespace"}]}`,
		"/apis/apps/v1": `{"resources":[{"kind":"Deployment"}]}`,
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hcco-cluster-admin": `{}`,
		"/apis/config.openshift.io/v1/infrastructures/cluster":                      `{}`,
	}
	pods := func(items string) map[string]string {
		return map[string]string{"/api/v1/namespaces/dns/pods": `{"items":[` + items + `]}`}
	}
	gone := &Pods{Namespace: "dns", Selector: "name=dns-operator"}
	for name, tc := range map[string]struct {
		body       map[string]string
		conditions Conditions
		want       string // empty: holds
	}{
		"When every kind is served it should hold": {
			body: core, conditions: Conditions{Kinds: []Kind{{"", "v1", "Namespace"}, {"apps", "v1", "Deployment"}}},
		},
		"When a kind isn't served it should name it": {
			body: core, conditions: Conditions{Kinds: []Kind{{"apps", "v1", "DaemonSet"}}}, want: "kind DaemonSet of apps/v1 is not served yet",
		},
		"When an API group isn't served it should name the kind": {
			body: core, conditions: Conditions{Kinds: []Kind{{"x.io", "v1", "X"}}}, want: "kind X of x.io/v1 is not served yet",
		},
		"When the objects exist it should hold": {
			body: core, conditions: Conditions{Infrastructure: true, ClusterRoleBinding: "hcco-cluster-admin"},
		},
		"When a binding doesn't exist it should name it": {
			body: core, conditions: Conditions{ClusterRoleBinding: "other"}, want: "clusterrolebindings/other",
		},
		"When no pod is left it should hold": {
			body: pods(``), conditions: Conditions{PodsGone: gone},
		},
		"When a pod runs it should count it": {
			body: pods(`{"metadata":{"name":"a"}}`), conditions: Conditions{PodsGone: gone}, want: "1 pods of namespace dns",
		},
		"When a pod has been terminating for a short time it should count it": {
			body: pods(`{"metadata":{"deletionTimestamp":"2026-11-21T11:59:00Z"}}`), conditions: Conditions{PodsGone: gone}, want: "1 pods",
		},
		"When a pod has been terminating for ten minutes it should ignore it": {
			body: pods(`{"metadata":{"deletionTimestamp":"2026-11-21T11:50:00Z"}}`), conditions: Conditions{PodsGone: gone},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, _, _ := start(t, tc.body, tc.conditions)
			p.target = http.DefaultClient
			p.Conditions.Target = "" // the other conditions alone
			err := p.check(t.Context())
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
	t.Run("When the kubeconfig comes later it should try again", func(t *testing.T) {
		g := NewWithT(t)
		p, _, _ := start(t, core, Conditions{Infrastructure: true})
		connect, calls := p.Connect, 0
		p.Connect = func() (*kubeapi.Client, error) {
			if calls++; calls < 3 {
				return nil, errors.New("no such file")
			}
			return connect()
		}
		g.Expect(p.Wait(t.Context())).To(Succeed())
		g.Expect(calls).To(Equal(3))
	})
}

func TestFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"When there is no target it should ask for one":                 {nil, "--target must be given"},
		"When the target is no URL it should quote it":                  {[]string{"--target=kube-apiserver"}, `--target "kube-apiserver"`},
		"When a kind is malformed it should show the form":              {[]string{"--target=https://a", "--required-api=apps/v1"}, "group,version,kind"},
		"When the pods are malformed it should show the form":           {[]string{"--target=https://a", "--wait-for-labeled-pods-gone=x"}, "namespace/label=value"},
		"When a condition needs a kubeconfig it should say so":          {[]string{"--target=http://127.0.0.1:1", "--timeout=1ms"}, "deadline"},
		"When an unknown flag is given it should be an error":           {[]string{"--targget=x"}, "unknown flag"},
		"When arguments are given that mean nothing it should complain": {[]string{"x"}, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := Command()
			cmd.SetArgs(tc.args)
			cmd.SetOut(&bytes.Buffer{})
			NewWithT(t).Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}
