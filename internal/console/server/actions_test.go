package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/console/access"
	"hcp.internal/platform/internal/console/server"
	"hcp.internal/platform/internal/kube/patch"
)

// order asks for an action, and reads the answer.
func order(t *testing.T, srv *httptest.Server, path, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
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
	return resp.StatusCode, string(raw)
}

// mayPatch are rights to read all, and to patch rollouts: that of one name, or all if it is empty.
func mayPatch(name, only string) func(rbacv1.Subject) []client.Object {
	rule := rbacv1.PolicyRule{APIGroups: []string{packagesv1.GroupVersion.Group}, Resources: []string{"hostedclusterpackages"}, Verbs: []string{"patch"}}
	if only != "" {
		rule.ResourceNames = []string{only}
	}
	return everywhere(name, append([]rbacv1.PolicyRule{rule}, readAll...))
}

func TestActions(t *testing.T) {
	env, c := fleet(t)
	var mu sync.Mutex
	var lines []string // of the console's own log
	s := &server.Server{World: picture(t, c), Gate: access.NewTokens(c, env.Config, clock.RealClock{}), Clock: clock.RealClock{},
		Log: funcr.New(func(_, args string) { mu.Lock(); defer mu.Unlock(); lines = append(lines, args) }, funcr.Options{})}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	reads, patches, one := person(t, c, "action-reads", everywhere("action-reads", readAll)), person(t, c, "action-patches", mayPatch("action-patches", "")), person(t, c, "action-one", mayPatch("action-one", "ingress"))
	const path = "/api/v1/rollout/logging-agent"
	stored := func(g Gomega, name string) *packagesv1.HostedClusterPackage {
		out := &packagesv1.HostedClusterPackage{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Name: name}, out)).To(Succeed())
		return out
	}
	resumed := func(t *testing.T) {
		t.Helper()
		NewWithT(t).Expect(c.Patch(context.Background(), &packagesv1.HostedClusterPackage{ObjectMeta: metav1.ObjectMeta{Name: "logging-agent"}}, patch.Annotation(packagesv1.RolloutPausedAnnotation, nil))).To(Succeed())
	}
	for name, tc := range map[string]struct {
		token, path, body string
		code              int
		text              string
	}{
		"nobody asks":                              {"", path, `{"action":"pause"}`, 401, "no valid token"},
		"who may read alone asks for a dry run":    {reads, path, `{"action":"pause","dryRun":true}`, 403, "ask for a role with verb patch on hostedclusterpackages.package-operator.run"},
		"who may read alone asks for it":           {reads, path, `{"action":"pause"}`, 403, "you may not do this"},
		"who may change another rollout asks":      {one, path, `{"action":"pause"}`, 403, "you may not do this"},
		"the action is unknown":                    {patches, path, `{"action":"delete"}`, 400, "must be pause or resume"},
		"the body has more than it may":            {patches, path, `{"action":"pause","spec":{}}`, 400, "the body must be"},
		"there is no such rollout":                 {patches, "/api/v1/rollout/nobody", `{"action":"pause"}`, 404, "there is no such object"},
		"another rollout has the name meanwhile":   {patches, path, `{"action":"pause","uid":"11111111-1111-1111-1111-111111111111"}`, 409, "another one has its name"},
		"a rollout is resumed that is not paused":  {patches, path, `{"action":"resume"}`, 200, `"already":true`},
		"a rollout is paused that is paused":       {one, "/api/v1/rollout/ingress", `{"action":"pause"}`, 200, `"already":true`},
		"an action is asked for by way of reading": {patches, path + "?action=pause", ``, 400, "the body must be"},
	} {
		t.Run("When "+name+" nothing should be changed", func(t *testing.T) {
			g := NewWithT(t)
			before := stored(g, "logging-agent").ResourceVersion
			code, body := order(t, srv, tc.path, tc.token, tc.body)
			g.Expect(code).To(Equal(tc.code), body)
			g.Expect(body).To(ContainSubstring(tc.text))
			g.Expect(stored(g, "logging-agent").ResourceVersion).To(Equal(before))
		})
	}
	t.Run("When who may patch rollouts asks for a dry run it should tell what would come of it, and change nothing", func(t *testing.T) {
		g := NewWithT(t)
		before := stored(g, "logging-agent")
		code, body := order(t, srv, path, patches, `{"action":"pause","dryRun":true}`)
		g.Expect(code).To(Equal(http.StatusOK), body)
		var out struct {
			UID, From, To, Command string
			Effects                []string
		}
		g.Expect(json.Unmarshal([]byte(body), &out)).To(Succeed())
		g.Expect(out.UID).To(Equal(string(before.UID)))
		g.Expect(out.From + " " + out.To).To(Equal(" true"))
		g.Expect(out.Command).To(Equal("hypershift rollout pause hostedclusterpackage/logging-agent"))
		g.Expect(out.Effects).To(ContainElements(ContainSubstring("goes on: production/routing."), ContainSubstring("gets it all the same: staging/hostile"),
			And(ContainSubstring("not changed until someone resumes it: "), ContainSubstring("production/stock"), Not(ContainSubstring("hostile")))))
		g.Expect(stored(g, "logging-agent").ResourceVersion).To(Equal(before.ResourceVersion))
	})
	t.Run("When who may patch rollouts pauses and resumes one it should be done in their name", func(t *testing.T) {
		g := NewWithT(t)
		t.Cleanup(func() { resumed(t) })
		uid := string(stored(g, "logging-agent").UID)
		code, body := order(t, srv, path, patches, `{"action":"pause","uid":"`+uid+`"}`)
		g.Expect(code).To(Equal(http.StatusOK), body)
		after := stored(g, "logging-agent")
		g.Expect(after.Annotations).To(HaveKeyWithValue(packagesv1.RolloutPausedAnnotation, "true"))
		g.Expect(slices.ContainsFunc(after.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == "hypershift-console" })).To(BeTrue())
		mu.Lock()
		logged := slices.Clone(lines)
		mu.Unlock()
		g.Expect(logged).To(ContainElement(And(ContainSubstring("action done"), ContainSubstring(`"user"="system:serviceaccount:default:action-patches"`), ContainSubstring(`"action"="pause"`), ContainSubstring(`"rollout"="logging-agent"`))))
		g.Expect(logged).To(ContainElement(And(ContainSubstring("action refused"), ContainSubstring("action-reads"))))
		_, page := ask(t, srv, path, patches) //nolint:bodyclose // because ask closes it
		g.Expect(page).To(ContainSubstring(`"paused":true`))
		code, body = order(t, srv, path, patches, `{"action":"resume","dryRun":true}`)
		g.Expect(code).To(Equal(http.StatusOK), body)
		g.Expect(body).To(And(ContainSubstring("1 hosted cluster is changed at once: staging/hostile."), ContainSubstring("more follow, in"), ContainSubstring("if each takes 2m0s")))
		code, body = order(t, srv, path, patches, `{"action":"resume","uid":"`+uid+`"}`)
		g.Expect(code).To(Equal(http.StatusOK), body)
		g.Expect(stored(g, "logging-agent").Annotations).NotTo(HaveKey(packagesv1.RolloutPausedAnnotation))
	})
	t.Run("When somebody writes without having been asked about the API server should refuse them", func(t *testing.T) {
		g := NewWithT(t)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+reads)
		viewer, err := access.NewTokens(c, env.Config, clock.RealClock{}).Viewer(r)
		g.Expect(err).NotTo(HaveOccurred())
		err = viewer.Writer.Patch(t.Context(), stored(g, "logging-agent"), patch.Annotation(packagesv1.RolloutPausedAnnotation, nil))
		g.Expect(err).To(MatchError(ContainSubstring("action-reads")))
		g.Expect(err).To(MatchError(ContainSubstring("forbidden")))
	})
	t.Run("When it is a person's own console their kubeconfig should decide", func(t *testing.T) {
		g := NewWithT(t)
		t.Cleanup(func() { resumed(t) })
		mine, token := own(t, c, s.World)
		code, body := order(t, mine, path, token, `{"action":"pause"}`)
		g.Expect(code).To(Equal(http.StatusOK), body)
		g.Expect(stored(g, "logging-agent").Annotations).To(HaveKeyWithValue(packagesv1.RolloutPausedAnnotation, "true"))
	})
}
