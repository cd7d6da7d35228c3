package capiadmission_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/capiadmission"
)

func newScheme(t testing.TB) *runtime.Scheme {
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(capiadmission.AddToScheme(scheme)).To(Succeed())
	return scheme
}

// deployment is one that the webhook has nothing to add to.
func deployment(change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	labels := func() map[string]string { return map[string]string{"pool": "a", clusterv1.ClusterNameLabel: "demo"} }
	md := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "workers", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"}},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "demo", Replicas: ptr.To[int32](2), Selector: metav1.LabelSelector{MatchLabels: labels()},
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: labels()},
				Spec:       clusterv1.MachineSpec{ClusterName: "demo", Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("user-data")}},
			},
		},
	}
	for _, c := range change {
		c(md)
	}
	return md
}

func TestDefault(t *testing.T) {
	scheme := newScheme(t)
	for name, tc := range map[string]struct {
		change func(*clusterv1.MachineDeployment)
		want   func(*clusterv1.MachineDeployment)
	}{
		"When a MachineDeployment has everything it should stay as it is": {
			change: func(*clusterv1.MachineDeployment) {}, want: func(*clusterv1.MachineDeployment) {},
		},
		"When its selector lacks the cluster it should be added, or two controllers would fight over each MachineSet": {
			change: func(md *clusterv1.MachineDeployment) { md.Spec.Selector.MatchLabels = map[string]string{"pool": "a"} },
			want:   func(*clusterv1.MachineDeployment) {},
		},
		"When its version is spelled without v it should stay so, or every machine would be replaced": {
			change: func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.Version = "1.36.3" },
			want:   func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.Version = "1.36.3" },
		},
		"When the webhook refuses it should stay as it is": {
			change: func(md *clusterv1.MachineDeployment) {
				md.Spec.Replicas, md.Annotations = nil, map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "many", clusterv1.AutoscalerMaxSizeAnnotation: "5"}
			},
			want: func(md *clusterv1.MachineDeployment) {
				md.Spec.Replicas, md.Annotations = nil, map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "many", clusterv1.AutoscalerMaxSizeAnnotation: "5"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			md := deployment(tc.change)
			scheme.Default(md)
			NewWithT(t).Expect(md).To(BeComparableTo(deployment(tc.want)))
		})
	}
}

func TestValidate(t *testing.T) {
	scheme := newScheme(t)
	check := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "workers"}, Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: "demo", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}}, Checks: clusterv1.MachineHealthCheckChecks{NodeStartupTimeoutSeconds: ptr.To[int32](10)}}}
	cluster := func(infra string) *clusterv1.Cluster {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}, Spec: clusterv1.ClusterSpec{ControlPlaneRef: clusterv1.ContractVersionedObjectReference{APIGroup: "a.b", Kind: "C", Name: "c"}}}
		if infra != "" {
			c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infra.b", Kind: "I", Name: infra}
		}
		return c
	}
	for name, tc := range map[string]struct {
		obj, old client.Object
		want     []string
	}{
		"When an object is valid it should be taken":                          {obj: deployment()},
		"When only the version's v is missing it should be taken":             {obj: deployment(func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.Version = "1.36.3" })},
		"When a selector doesn't match the template it should name the field": {obj: deployment(func(md *clusterv1.MachineDeployment) { md.Spec.Selector.MatchLabels["pool"] = "b" }), want: []string{`spec.template.metadata.labels: Forbidden: must match spec.selector "cluster.x-k8s.io/cluster-name=demo,pool=b"`}},
		"When the version is none it should name the field and the value":     {obj: deployment(func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.Version = "new" }), want: []string{`spec.template.spec.version: Invalid value: "vnew": must be a valid semantic version`}},
		"When the cluster of a live one changes it should be refused": {
			obj: deployment(), old: deployment(func(md *clusterv1.MachineDeployment) { md.Spec.ClusterName = "other" }), want: []string{`spec.clusterName: Forbidden: field is immutable`},
		},
		"When a health check gives nodes no time it should say how much they need": {obj: check, want: []string{`spec.checks.nodeStartupTimeoutSeconds: Invalid value: 10: must be at least 30s`}},
		"When a live Cluster would lose its infrastructure it should be refused":   {obj: cluster(""), old: cluster("demo"), want: []string{"spec.infrastructureRef: Forbidden: cannot be removed"}},
		"When a Cluster gets its infrastructure it should be taken":                {obj: cluster("demo"), old: cluster("")},
	} {
		t.Run(name, func(t *testing.T) {
			errs := scheme.Validate(t.Context(), nil, tc.obj)
			if tc.old != nil {
				errs = scheme.ValidateUpdate(t.Context(), nil, tc.obj, tc.old)
			}
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func TestKinds(t *testing.T) {
	for _, obj := range capiadmission.Kinds() {
		t.Run(fmt.Sprintf("When an empty %T comes it should be refused, as its webhooks are known", obj), func(t *testing.T) {
			_, errs := capiadmission.Admit(t.Context(), obj)
			NewWithT(t).Expect(errs).NotTo(BeEmpty())
			NewWithT(t).Expect(errs.ToAggregate().Error()).NotTo(ContainSubstring("Internal error"))
		})
	}
}
