package component

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
)

func kindsAndNames(objs []client.Object) []string {
	var all []string
	for _, obj := range objs {
		all = append(all, obj.GetObjectKind().GroupVersionKind().Kind+" "+obj.GetName())
	}
	return all
}

func TestPlan(t *testing.T) {
	files := map[string]string{"serviceaccount.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n"}
	never := func(WorkloadContext) (bool, error) { return false, nil }
	broken := func(WorkloadContext) (bool, error) { return false, errors.New("the cache is not there") }
	ready := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: names.KubeAPIServer}}
	ready.Status.Version = "1.36.3"
	for _, kind := range []string{Available, RolloutComplete} {
		ready.Status.Conditions = append(ready.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
	}

	for name, tc := range map[string]struct {
		build    func(*Builder[*appsv1.Deployment])
		objs     []client.Object
		all      bool
		objects  []string
		unwanted []string
		waits    []string
		left     string
		err      string
		report   string // the reason of RolloutComplete
	}{
		"When others are ready it should want everything, the workload last": {
			objs: []client.Object{ready}, objects: []string{"ServiceAccount web", "Deployment web"}, report: WaitingForRolloutCompleteReason,
		},
		"When it waits it should want nothing and say for what": {
			waits: []string{names.KubeAPIServer}, left: "waits for kube-apiserver", report: WaitingForDependenciesReason,
		},
		"When it waits and may start it should want everything and wait all the same": {
			build: func(b *Builder[*appsv1.Deployment]) { b.StartBeforeDependencies() }, waits: []string{names.KubeAPIServer},
			objects: []string{"ServiceAccount web", "Deployment web"}, report: WaitingForDependenciesReason,
		},
		"When it waits and is asked for all the same it should want everything, and report as if nothing were missing": {
			all: true, waits: []string{names.KubeAPIServer}, objects: []string{"ServiceAccount web", "Deployment web"}, report: WaitingForRolloutCompleteReason,
		},
		"When it is not wanted it should want none of it to be there": {
			build: func(b *Builder[*appsv1.Deployment]) { b.WithPredicate(never) }, objs: []client.Object{ready},
			left: "not wanted for this control plane", unwanted: []string{"Deployment web", "ServiceAccount web", " web"},
		},
		"When one file is not wanted it should want that not to be there": {
			build: func(b *Builder[*appsv1.Deployment]) { b.WithManifestAdapter("serviceaccount.yaml", When(never)) }, objs: []client.Object{ready},
			objects: []string{"Deployment web"}, unwanted: []string{"ServiceAccount web"}, report: WaitingForRolloutCompleteReason,
		},
		"When it can't be made it should want nothing and report why": {
			build: func(b *Builder[*appsv1.Deployment]) { b.SleepUntil(broken) }, objs: []client.Object{ready},
			err: "deciding whether web has work to do: the cache is not there", report: ReconciliationErrorReason,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := NewDeploymentComponent("web", folder(files), Options{})
			if tc.build != nil {
				tc.build(b)
			}
			ctx := contextOf(t, nil, tc.objs...)
			ctx.Unconditional = tc.all
			p, err := b.Build().Plan(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(kindsAndNames(p.Objects)).To(Equal(tc.objects))
			g.Expect(kindsAndNames(p.Unwanted)).To(Equal(tc.unwanted))
			g.Expect(p.WaitsFor).To(Equal(tc.waits))
			g.Expect(p.Left).To(Equal(tc.left))
			if tc.err == "" {
				g.Expect(p.Err).NotTo(HaveOccurred())
			} else {
				g.Expect(p.Err).To(MatchError(tc.err))
			}
			report := p.Preview()
			if tc.report == "" {
				g.Expect(report).To(BeNil())
				return
			}
			g.Expect(report.Status.Conditions[1].Reason).To(Equal(tc.report))
		})
	}

	t.Run("When a file has a name of its own for each control plane it should be applied, reported and removed by that", func(t *testing.T) {
		g := NewWithT(t)
		named := func(b *Builder[*appsv1.Deployment]) *WorkloadComponent {
			return b.WithManifestAdapter("serviceaccount.yaml", Named(func(hcp *hyperv1.HostedControlPlane) string { return hcp.Name + "-web" })).Build()
		}
		p, err := named(NewDeploymentComponent("web", folder(files), Options{})).Plan(contextOf(t, nil, ready))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kindsAndNames(p.Objects)).To(Equal([]string{"ServiceAccount demo-web", "Deployment web"}))
		g.Expect(p.Preview().Status.Resources).To(ConsistOf(HaveField("Name", "demo-web")))
		p, err = named(NewDeploymentComponent("web", folder(files), Options{}).WithPredicate(never)).Plan(contextOf(t, nil, ready))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kindsAndNames(p.Unwanted)).To(ContainElement("ServiceAccount demo-web"))
	})

	t.Run("When it can't be told whether it is wanted it should touch nothing", func(t *testing.T) {
		g := NewWithT(t)
		p, err := NewDeploymentComponent("web", folder(files), Options{}).WithPredicate(broken).Build().Plan(contextOf(t, nil))
		g.Expect(err).To(MatchError(ContainSubstring("deciding whether component web is wanted: the cache is not there")))
		g.Expect(p.Objects).To(BeEmpty())
		g.Expect(p.Unwanted).To(BeEmpty())
	})
}
