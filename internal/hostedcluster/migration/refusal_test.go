package migration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/testenv"
)

// TestJudge is about everything that speaks against a move and can be seen in objects.
func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	machine := func(change func(*unstructured.Unstructured)) Object {
		u := object(translate.Standard, "v1beta2", "Machine", "n", "m", machineSpec("m"))
		u.SetUID("m")
		change(u)
		return Object{u, schema.GroupVersionResource{Group: translate.Standard, Version: "v1beta2", Resource: "machines"}}
	}
	deleting := func(ago time.Duration) func(*Inventory) {
		return func(in *Inventory) {
			in.From[0].SetDeletionTimestamp(ptr.To(metav1.NewTime(now.Add(-ago))))
		}
	}
	annotated := func(key, value string) func(*Inventory) {
		return func(in *Inventory) { in.HC.Annotations[key] = value }
	}
	pool := func(condition string) func(*Inventory) {
		return func(in *Inventory) {
			in.Pools = []hyperv1.NodePool{{Status: hyperv1.NodePoolStatus{Conditions: []hyperv1.NodePoolCondition{{Type: condition, Status: corev1.ConditionTrue}}}}}
		}
	}
	for name, tc := range map[string]struct {
		change func(*Inventory)
		reason string // empty: it may begin
		says   string
	}{
		"When nothing speaks against it it may begin":                     {change: func(*Inventory) {}},
		"When it is being deleted it should stay":                         {change: func(in *Inventory) { in.HC.DeletionTimestamp = &metav1.Time{Time: now} }, reason: "Deleting"},
		"When an operator of another scope looks after it it should stay": {change: annotated(hyperv1.HostedClusterScopeAnnotation, "shard-7"), reason: "ForeignScope", says: "shard-7"},
		"When it is private already there should be nothing to do":        {change: annotated(hyperv1.PrivateCAPITypesAnnotation, "true"), reason: "AlreadyMoved"},
		"When nobody knows where its objects are it should stay":          {change: func(in *Inventory) { in.HC.Annotations = nil }, reason: "Unknown"},
		"When it is held it should stay":                                  {change: annotated(hyperv1.PrivateCAPIHoldAnnotation, "true"), reason: "Held", says: hyperv1.PrivateCAPIHoldAnnotation},
		"When it was taken back before somebody should look first":        {change: annotated(hyperv1.PrivateCAPIMigrationFailedAnnotation, "internal"), reason: "FailedBefore"},
		"When it is paused it should stay":                                {change: func(in *Inventory) { in.HC.Spec.PausedUntil = ptr.To("true") }, reason: "Paused"},
		"When its version is being rolled out it should wait": {change: func(in *Inventory) {
			in.HC.Status.Conditions = []metav1.Condition{{Type: hyperv1.ClusterVersionProgressing, Status: "True"}}
		}, reason: "RollingOut"},
		"When the version of a NodePool is being rolled out it should wait": {change: pool(hyperv1.NodePoolUpdatingVersionConditionType), reason: "RollingOut"},
		"When the config of a NodePool is being rolled out it should wait":  {change: pool(hyperv1.NodePoolUpdatingConfigConditionType), reason: "RollingOut"},
		"When a NodePool is only being scaled it may begin":                 {change: pool(hyperv1.NodePoolAllMachinesReadyConditionType)},
		"When a NodePool is being deleted it should wait": {change: func(in *Inventory) {
			in.Pools = []hyperv1.NodePool{{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now}}}}
		}, reason: "RollingOut"},
		"When its namespace is going it should stay": {change: func(in *Inventory) { in.Namespace.DeletionTimestamp = &metav1.Time{Time: now} }, reason: "NoNamespace"},
		"When it has no namespace it should stay":    {change: func(in *Inventory) { in.Namespace = nil }, reason: "NoNamespace"},
		"When a kind has no twin it should be named": {change: func(in *Inventory) { in.Kinds = nil }, reason: "NoTwin", says: "would be moved to cluster.hypershift.openshift.io/v1beta2/machines"},
		"When a program that isn't ours has a finalizer it should be named": {change: func(in *Inventory) {
			in.From[0].SetFinalizers([]string{"machine.cluster.x-k8s.io", "example.com/keep"})
		}, reason: "ForeignFinalizer", says: "example.com/keep"},
		"When an object is deleted with what it owns it should wait":          {change: func(in *Inventory) { in.From[0].SetFinalizers([]string{metav1.FinalizerDeleteDependents}) }, reason: "Deleting"},
		"When a machine is being deleted it should wait":                      {change: deleting(time.Minute), reason: "Deleting", says: "Machine m"},
		"When the deletion of a machine is stuck it should be moved as it is": {change: deleting(31 * time.Minute)},
		"When a provider blocks moves it should wait": {change: func(in *Inventory) {
			in.From[0].SetAnnotations(map[string]string{"clusterctl.cluster.x-k8s.io/block-move": ""})
		}, reason: "Blocked"},
		"When an owner is not moved with it it should be named": {change: func(in *Inventory) {
			in.From[0].SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Fleet", Name: "f", UID: "f"}})
		}, reason: "ForeignOwner", says: "Fleet f of example.com/v1"},
		"When HyperShift owns it it may begin": {change: func(in *Inventory) {
			in.From[0].SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "hypershift.openshift.io/v1beta1", Kind: "HostedControlPlane", Name: "h", UID: "h"}})
		}},
		"When an object of that group is there already it should be named": {change: func(in *Inventory) {
			u := object(translate.Private, "v1beta2", "Machine", "n", "other", nil)
			in.To = []Object{{Unstructured: u}}
		}, reason: "BothGroups", says: "Machine other"},
		"When a move was left behind in the middle its copies should not be in the way": {change: func(in *Inventory) {
			u := object(translate.Private, "v1beta2", "Machine", "n", "m", nil)
			u.SetAnnotations(map[string]string{copyAnnotation: copyWhole})
			in.To = []Object{{Unstructured: u}}
		}},
		"When the operator for standard types is away it should wait":  {change: func(in *Inventory) { in.Operator = errors.New("gone") }, reason: "NoOperator"},
		"When its control-plane-operator is too old it should be told": {change: func(in *Inventory) { in.Speaks = errors.New("image r/cpo:4.13 is too old") }, reason: "OldControlPlaneOperator", says: "r/cpo:4.13"},
		"When a program does not run it should say which": {change: func(in *Inventory) {
			in.Programs = []Program{{Name: "asleep"}, {Name: "one-of-three", Replicas: 3, Runs: true}, {Name: "broken", Replicas: 1}}
		}, reason: "ProgramNotRunning", says: "Deployment broken"},
		"When it goes back neither an old control-plane-operator nor a program that does not run should keep it": {change: func(in *Inventory) {
			in.Direction, in.Speaks, in.Programs = Reverse, errors.New("image r/cpo:4.13 is too old"), []Program{{Name: "broken", Replicas: 1}}
			in.HC.Annotations = map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"}
			in.From = nil
		}},
		"When rights are missing they should be named":         {change: func(in *Inventory) { in.Denied = []string{"patch pods"} }, reason: "NoRights", says: "patch pods"},
		"When a copy would be refused it should say why":       {change: func(in *Inventory) { in.Refused = []error{errors.New("unknown field spec.x")} }, reason: "SchemaLoss", says: "spec.x"},
		"When the API server takes nothing new it should wait": {change: func(in *Inventory) { in.Full = errors.New("database space exceeded") }, reason: "StorageFull"},
		"When a quota leaves no room for copies it should say how much is needed": {change: func(in *Inventory) {
			const name = corev1.ResourceName("count/machines." + translate.Private)
			in.Quotas = []corev1.ResourceQuota{{Status: corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{name: resource.MustParse("3")}, Used: corev1.ResourceList{name: resource.MustParse("3")}}}}
		}, reason: "Quota", says: "0 more of count/machines.cluster.hypershift.openshift.io, and 1 are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := Inventory{Now: now, Direction: Forward, Namespace: &corev1.Namespace{}, From: []Object{machine(func(*unstructured.Unstructured) {})},
				HC:    &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Annotations: map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope}}},
				Kinds: []Kind{{GroupVersionKind: schema.GroupVersionKind{Group: translate.Private, Version: "v1beta2", Kind: "Machine"}, Resource: "machines", Ours: true}}}
			tc.change(&in)
			r := judge(in)
			if tc.reason == "" {
				g.Expect(r.Refusals).To(BeEmpty())
				return
			}
			g.Expect(r.Refusals).To(HaveLen(1))
			g.Expect(r.Refusals[0].Reason).To(Equal(tc.reason))
			g.Expect(r.Refusals[0].String()).To(ContainSubstring(tc.says))
			g.Expect(r.Refusals[0].Remedy).NotTo(BeEmpty())
		})
	}
}

// heard are the reasons of events.
type heard []string

// Eventf implements events.Recorder.
func (h *heard) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	*h = append(*h, reason)
}

// refused checks that a hosted cluster is not moved for reasons, which are told, and that nothing of it is changed.
func (f *fleet) refused(t testing.TB, c client.Client, name string, reasons ...string) Report {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	f.ask(t, name, map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: ptr.To("true")})
	defer f.ask(t, name, map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: nil}) // or others would wait for it
	before := f.stored(t, name)
	hc := &hyperv1.HostedCluster{}
	g.Expect(f.client.Get(ctx, client.ObjectKey{Namespace: f.ns, Name: name}, hc)).To(Succeed())
	report, err := f.controller(t, c, clock.RealClock{}).Preflight(ctx, hc, Forward)
	g.Expect(err).NotTo(HaveOccurred())
	var told []string
	for _, r := range report.Refusals {
		told = append(told, r.Reason)
	}
	slices.Sort(told)
	g.Expect(slices.Compact(told)).To(Equal(reasons), "%v", report.Refusals)
	once, ears := f.controller(t, c, clock.RealClock{}), &heard{}
	once.Events = ears
	for range 2 {
		_, err = once.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: f.ns, Name: name}})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(*ears).To(HaveExactElements(eventHeld), "it is told once")
	g.Expect(f.states(t)[name]).To(HaveExactElements(Equal("Standard"), Equal("Held"), ContainSubstring("can't be moved")))
	g.Expect(f.stored(t, name)).To(Equal(before), "something was written")
	return report
}

// TestRefused is about what only an API server tells.
func TestRefused(t *testing.T) {
	f := newFleet(t, testenv.Start(t))
	g, ctx := NewWithT(t), t.Context()
	twin := func(group string, fields ...string) *apiextensionsv1.CustomResourceDefinition {
		spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for _, field := range fields {
			spec.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}}}},
		}}
	}
	t.Run("When the platform took a definition over and its schema has more fields they should be named", func(t *testing.T) {
		_, err := envtest.InstallCRDs(f.cfg, envtest.CRDInstallOptions{MaxTime: patience2, CRDs: []*apiextensionsv1.CustomResourceDefinition{
			twin("taken."+translate.Standard, "size", "platforms"), twin("taken."+translate.Private, "size")}})
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		f.add(t, "schemas", 1)
		g.Expect(f.client.Create(ctx, object("taken."+translate.Standard, "v1", "Widget", f.ns+"-schemas", "w", map[string]any{"size": "a", "platforms": "b"}))).To(Succeed())
		report := f.refused(t, f.client, "schemas", "SchemaLoss")
		g.Expect(report.Refusals[0].Message).To(ContainSubstring(`unknown field "spec.platforms"`))
	})
	t.Run("When there is a kind that HyperShift does not have it should be named", func(t *testing.T) {
		_, err := envtest.InstallCRDs(f.cfg, envtest.CRDInstallOptions{MaxTime: patience2, CRDs: []*apiextensionsv1.CustomResourceDefinition{twin("alone."+translate.Standard, "size")}})
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		f.add(t, "alone", 0)
		g.Expect(f.client.Create(ctx, object("alone."+translate.Standard, "v1", "Widget", f.ns+"-alone", "w", map[string]any{"size": "a"}))).To(Succeed())
		f.refused(t, f.client, "alone", "NoTwin")
	})
	t.Run("When its control-plane-operator does not know private types it should be told", func(t *testing.T) {
		f.add(t, "old", 1)
		f.mu.Lock()
		f.mute["old"] = errors.New("image r/cpo:4.13 has no label")
		f.mu.Unlock()
		f.refused(t, f.client, "old", "OldControlPlaneOperator")
	})
	t.Run("When one of its programs does not run it should be told, for it would not start after the move either", func(t *testing.T) {
		f.add(t, "idle", 1)
		f.program(t, f.ns+"-idle", names.CAPIProvider, 1, 0)
		f.program(t, f.ns+"-idle", names.ClusterAPI, 0, 0) // nobody wants it to run
		f.program(t, f.ns+"-idle", names.ControlPlaneOperator, 2, 1)
		report := f.refused(t, f.client, "idle", "ProgramNotRunning")
		NewWithT(t).Expect(report.Refusals).To(HaveLen(1))
		NewWithT(t).Expect(report.Refusals[0].Message).To(ContainSubstring("Deployment " + names.CAPIProvider))
	})
	t.Run("When a quota leaves no room for copies it should be told", func(t *testing.T) {
		f.add(t, "quota", 2)
		const name = corev1.ResourceName("count/machines." + translate.Private)
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns + "-quota", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse("1")}}}
		g := NewWithT(t)
		g.Expect(f.client.Create(ctx, q)).To(Succeed())
		q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{name: resource.MustParse("0")}}
		g.Expect(f.client.Status().Update(ctx, q)).To(Succeed())
		f.refused(t, f.client, "quota", "Quota")
	})
	t.Run("When objects have finalizers and owners of others, and one is there in both groups, all should be told", func(t *testing.T) {
		g := NewWithT(t)
		f.add(t, "foreign", 2)
		ns := f.ns + "-foreign"
		for name, body := range map[string]string{"m-0": `{"metadata":{"finalizers":["machine.cluster.x-k8s.io","example.com/keep"]}}`,
			"m-1": fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":%q}]}}`, f.foreignOwner(t, ns))} {
			g.Expect(f.client.Patch(ctx, object(translate.Standard, "v1beta2", "Machine", ns, name, nil), client.RawPatch(types.MergePatchType, []byte(body)))).To(Succeed())
		}
		g.Expect(f.client.Create(ctx, object(translate.Private, "v1beta2", "Machine", ns, "somebody-elses", machineSpec("x")))).To(Succeed())
		f.refused(t, f.client, "foreign", "BothGroups", "ForeignFinalizer", "ForeignOwner")
	})
	t.Run("When the operator may not write what it would have to it should be named", func(t *testing.T) {
		g := NewWithT(t)
		f.add(t, "rights", 1)
		report := f.refused(t, f.limited(t), "rights", "NoRights")
		g.Expect(report.Refusals[0].Message).To(And(ContainSubstring("the operator may not"), ContainSubstring("more")))
	})
	t.Run("When the operator for standard types is away it should wait for it", func(t *testing.T) {
		f.add(t, "alone-again", 0)
		legacy := &appsv1.Deployment{}
		g.Expect(f.client.Get(ctx, client.ObjectKey{Namespace: f.ns, Name: LegacyDeployment}, legacy)).To(Succeed())
		g.Expect(f.client.Delete(ctx, legacy)).To(Succeed())
		f.refused(t, f.client, "alone-again", "NoOperator")
	})
}

// foreignOwner is the UID of an object that no move knows.
func (f *fleet) foreignOwner(t testing.TB, ns string) types.UID {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}}
	NewWithT(t).Expect(f.client.Create(t.Context(), cm)).To(Succeed())
	return cm.UID
}

// limited may read everything and say what it finds, but nothing else.
func (f *fleet) limited(t testing.TB) client.Client {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	name := "limited-" + f.ns
	g.Expect(f.client.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{hyperv1.GroupVersion.Group}, Resources: []string{"hostedclusters/status"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectaccessreviews"}, Verbs: []string{"create"}},
	}})).To(Succeed())
	g.Expect(f.client.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}})).To(Succeed())
	cfg := rest.CopyConfig(f.cfg)
	cfg.Impersonate.UserName = name
	c, err := client.New(cfg, client.Options{Scheme: f.client.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	hc := &hyperv1.HostedClusterList{}
	g.Eventually(func() error { return c.List(ctx, hc) }, patience2, 50*time.Millisecond).Should(Succeed()) // until the API server knows the role
	return c
}

func TestStorageFull(t *testing.T) {
	t.Run("When the management cluster's etcd is full it should be told before anything is begun", func(t *testing.T) {
		const quota = 64 << 20
		env := testenv.StartOwn(t, fmt.Sprint("--quota-backend-bytes=", quota))
		g, ctx := NewWithT(t), t.Context()
		f := newFleet(t, env)
		hc := f.add(t, "a", 1)
		f.ask(t, "a", map[string]*string{hyperv1.PrivateCAPIMigrateAnnotation: ptr.To("true")})
		before := f.stored(t, "a")
		filler := strings.Repeat("x", 900<<10)
		for i := 0; ; i++ {
			err := f.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: fmt.Sprint("filler-", i)}, Data: map[string]string{"x": filler}})
			if err != nil {
				g.Expect(err).To(MatchError(ContainSubstring("database space exceeded")))
				break
			}
			g.Expect(i).To(BeNumerically("<", 2*quota/len(filler)), "it does not get full")
		}
		report, err := f.controller(t, f.client, clock.RealClock{}).Preflight(ctx, hc, Forward)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(report.Refusals).To(ConsistOf(HaveField("Reason", "StorageFull")))
		_, err = f.controller(t, f.client, clock.RealClock{}).Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(hc)})
		g.Expect(err).To(MatchError(And(ContainSubstring("takes no new object"), ContainSubstring("make room"))))
		g.Expect(f.stored(t, "a")).To(Equal(before))
	})
}
