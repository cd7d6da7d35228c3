package watch

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/world"
)

const (
	// tryEvery is how often a tenant tries all ways.
	tryEvery = 20 * time.Second
	// maxAnswer is as much of an answer as is looked at.
	maxAnswer = 1 << 20
	canaryKey = "token"
)

// way is a request that a tenant has no right to make.
type way struct {
	method, path, body string
	header             http.Header
}

// managementWays lead to what is another's in the management cluster.
func managementWays() []way {
	demo := world.ControlPlane(plan.Demo)
	token := `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`
	ways := []way{
		{path: "/api/v1/namespaces/" + world.Victim + "/secrets/canary"}, {path: "/api/v1/secrets"}, {path: "/api/v1/secrets?watch=1&timeoutSeconds=1"},
		{path: "/api/v1/namespaces/" + demo + "/secrets"}, {path: "/api/v1/namespaces/" + world.Key(plan.Demo).Namespace + "/secrets"}, {path: "/api/v1/namespaces/hypershift/secrets"},
		{path: "/api/v1/namespaces/" + demo + "/pods/etcd-0/log"}, {path: "/api/v1/namespaces/" + demo + "/configmaps"},
		{method: http.MethodPost, path: "/api/v1/namespaces/" + demo + "/pods/etcd-0/exec?command=id&stdout=1"},
		{path: "/api/v1/namespaces/" + demo + "/pods/etcd-0/portforward?ports=2379"},
		{path: "/api/v1/namespaces/" + demo + "/services/https:kube-apiserver:6443/proxy/readyz"}, {path: "/api/v1/nodes/local/proxy/pods"},
		{method: http.MethodPost, path: "/api/v1/namespaces/" + demo + "/serviceaccounts/default/token", body: token},
		{method: http.MethodPost, path: "/api/v1/namespaces/hypershift/serviceaccounts/operator/token", body: token},
		{method: http.MethodPost, path: "/api/v1/namespaces/package-operator-system/serviceaccounts/package-operator/token", body: token},
		{method: http.MethodPost, path: "/apis/rbac.authorization.k8s.io/v1/namespaces/" + world.Tenant + "/rolebindings",
			body: `{"metadata":{"name":"more"},"subjects":[{"kind":"ServiceAccount","name":"tenant"}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`},
	}
	return append(ways, disguises("/api/v1/namespaces/"+world.Victim+"/secrets/canary")...)
}

// hostedWays are the same in a hosted cluster.
func hostedWays() []way {
	return append([]way{{path: "/api/v1/secrets"}, {path: "/api/v1/namespaces/kube-system/secrets"}, {path: "/api/v1/namespaces/kube-system/configmaps"}, {path: "/metrics"}, {path: "/debug/pprof/heap"}, {path: "/api/v1/nodes"}},
		disguises("/api/v1/namespaces/kube-system/secrets")...)
}

// disguises ask as somebody else.
func disguises(path string) []way {
	return []way{
		{path: path, header: http.Header{"Impersonate-User": {"admin"}, "Impersonate-Group": {"system:masters"}}},
		{path: path, header: http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}},
		{path: path, header: http.Header{"Authorization": {"Bearer x"}}},
	}
}

// Secrets tries, as a tenant, to read what is another's.
type Secrets struct {
	World    *world.World
	Violated func(invariant, what string)

	canary string
	tries  int
}

// Prepare makes a Secret that no tenant may read, and asks operators for it in the tenant's name.
func (s *Secrets) Prepare(ctx context.Context, canary string) error {
	s.canary = canary
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: world.Victim, Name: "canary"}, StringData: map[string]string{canaryKey: canary}}
	if err := client.IgnoreAlreadyExists(s.World.Client.Create(ctx, secret)); err != nil {
		return err
	}
	user, err := s.World.User(ctx, s.World.Management)
	if err != nil {
		return err
	}
	c, err := world.NewClient(user)
	if err != nil {
		return err
	}
	for _, o := range detours() {
		if err := c.Create(ctx, o); err != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s as a tenant: %w", o.GetName(), err)
		}
	}
	return nil
}

// detours are objects of the tenant's own namespace that have operators read or write in the victim's.
func detours() []client.Object {
	meta := metav1.ObjectMeta{Namespace: world.Tenant, Name: "detour"}
	binding, _ := json.Marshal(rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: world.Victim, Name: "detour"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: world.Tenant, Name: "tenant"}}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}})
	manifest := &unstructured.Unstructured{}
	_ = json.Unmarshal(binding, &manifest.Object)
	return []client.Object{
		&v1alpha1.ObjectTemplate{ObjectMeta: meta, Spec: v1alpha1.ObjectTemplateSpec{
			Template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: loot}, data: {value: {{ toJson .config | quote }}}}`,
			Sources: []v1alpha1.ObjectTemplateSource{{APIVersion: "v1", Kind: "Secret", Namespace: world.Victim, Name: "canary",
				Items: []v1alpha1.ObjectTemplateSourceItem{{Key: ".data." + canaryKey, Destination: ".value"}}}},
		}},
		&v1alpha1.ObjectSet{ObjectMeta: meta, Spec: v1alpha1.ObjectSetSpec{
			Revision: 1,
			ObjectSetTemplateSpec: v1alpha1.ObjectSetTemplateSpec{Phases: []v1alpha1.ObjectSetTemplatePhase{{Name: "all", Objects: []v1alpha1.ObjectSetObject{
				{Object: *manifest}}}}},
		}},
	}
}

// Run tries all ways again and again until ctx ends.
func (s *Secrets) Run(ctx context.Context) {
	for {
		s.try(ctx, "the management cluster", func() (*rest.Config, error) { return s.World.Management, nil }, managementWays())
		s.try(ctx, "the demo cluster", func() (*rest.Config, error) { return s.World.Hosted(ctx, plan.Demo) }, hostedWays())
		s.loot(ctx)
		if !world.Wait(ctx, tryEvery) {
			return
		}
	}
}

// Tries is how many requests were refused.
func (s *Secrets) Tries() int { return s.tries }

func (s *Secrets) try(ctx context.Context, where string, admin func() (*rest.Config, error), ways []way) {
	cfg, err := admin()
	if err != nil {
		return
	}
	user, err := s.World.User(ctx, cfg)
	if err != nil {
		return // no answer: there is a fault
	}
	c, err := rest.HTTPClientFor(user)
	if err != nil {
		return
	}
	defer c.CloseIdleConnections()
	for _, w := range ways {
		code, body, err := w.ask(ctx, c, user.Host)
		if err != nil || ctx.Err() != nil {
			continue
		}
		s.tries++
		if code < http.StatusMultipleChoices || code == http.StatusSwitchingProtocols || s.has(body) {
			s.Violated("nobody reads another's Secret", fmt.Sprintf("a tenant of %s got status %d from %s %s %v: %.200s", where, code, w.method, w.path, w.header, body))
		}
	}
}

func (w way) ask(ctx context.Context, c *http.Client, host string) (code int, body []byte, err error) {
	if w.method == "" {
		w.method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, w.method, host+w.path, strings.NewReader(w.body))
	if err != nil {
		return 0, nil, err
	}
	for name, values := range w.header {
		req.Header[name] = values
	}
	if w.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, _ = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, body, nil
}

func (s *Secrets) has(body []byte) bool {
	return bytes.Contains(body, []byte(s.canary)) || bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString([]byte(s.canary))))
}

// loot looks through everything that the tenant may read for what it may not have.
func (s *Secrets) loot(ctx context.Context) {
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &v1alpha1.ObjectTemplateList{}, &v1alpha1.ObjectSetList{}, &v1alpha1.PackageList{}, &corev1.EventList{},
	} {
		if s.World.Client.List(ctx, list, client.InNamespace(world.Tenant)) != nil {
			continue
		}
		if raw, err := json.Marshal(list); err == nil && s.has(raw) {
			s.Violated("nobody reads another's Secret", fmt.Sprintf("what is in Secret %s/canary is in a %T of the tenant's namespace", world.Victim, list))
		}
	}
	binding := &rbacv1.RoleBinding{}
	if s.World.Client.Get(ctx, client.ObjectKey{Namespace: world.Victim, Name: "detour"}, binding) == nil {
		s.Violated("nobody reads another's Secret", "an ObjectSet of the tenant's namespace made a RoleBinding in "+world.Victim)
	}
}
