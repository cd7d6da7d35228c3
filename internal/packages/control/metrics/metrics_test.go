package metrics

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
)

type watches struct{}

func (watches) Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}}
}
func (watches) Count(context.Context, schema.GroupVersionKind) int { return 7 }

// series lists what a scrape shows, as name{label=value,…} value.
func series(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			out[strings.TrimPrefix(family.GetName(), "package_operator_")+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue()
		}
	}
	return out
}

var noon = time.Unix(1700000000, 0)

func TestSeries(t *testing.T) {
	cache := map[string]float64{
		"managed_cache_informers_total{owner=123-456}": 1, "managed_cache_objects_total{gvk=/v1, Kind=ConfigMap,owner=123-456}": 7,
	}
	with := func(more map[string]float64) map[string]float64 {
		out := map[string]float64{}
		for _, m := range []map[string]float64{cache, more} {
			for name, value := range m {
				out[name] = value
			}
		}
		return out
	}
	set := func(change func(*v1alpha1.ObjectSet)) *v1alpha1.ObjectSet {
		os := &v1alpha1.ObjectSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web-1", CreationTimestamp: metav1.NewTime(noon),
			Labels: map[string]string{v1alpha1.InstanceLabel: "web"}, Annotations: map[string]string{v1alpha1.PackageSourceImageAnnotation: "img"},
		}}
		os.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(time.Minute))}}
		if change != nil {
			change(os)
		}
		return os
	}
	pkg := func(image string, status metav1.ConditionStatus, observed int64) *v1alpha1.Package {
		p := &v1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 2, CreationTimestamp: metav1.NewTime(noon)}}
		p.Spec.Image, p.Status.Revision = image, 3
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: status, ObservedGeneration: observed}}
		return p
	}
	of := func(image string, availability float64) map[string]float64 {
		return map[string]float64{
			"package_availability{image=" + image + ",pko_name=web,pko_namespace=ns}": availability,
			"package_created_timestamp_seconds{pko_name=web,pko_namespace=ns}":        1700000000, "package_revision{pko_name=web,pko_namespace=ns}": 3,
		}
	}
	created := map[string]float64{"object_set_created_timestamp_seconds{pko_name=web-1,pko_namespace=ns,pko_package_instance=web}": 1700000000}
	for name, tc := range map[string]struct {
		record func(*Recorder)
		want   map[string]float64
	}{
		"When nothing is installed it should count watches": {func(*Recorder) {}, nil},
		"When a revision succeeded it should say when": {func(r *Recorder) { r.ObjectSet(set(nil)) }, map[string]float64{
			"object_set_created_timestamp_seconds{pko_name=web-1,pko_namespace=ns,pko_package_instance=web}":             1700000000,
			"object_set_succeeded_timestamp_seconds{image=img,pko_name=web-1,pko_namespace=ns,pko_package_instance=web}": 1700000060,
		}},
		"When a revision is archived it should not say any more that it succeeded": {func(r *Recorder) {
			r.ObjectSet(set(nil))
			r.ObjectSet(set(func(os *v1alpha1.ObjectSet) { os.Spec.LifecycleState = v1alpha1.LifecycleStateArchived }))
		}, created},
		"When a revision has not succeeded it should not say so": {func(r *Recorder) {
			r.ObjectSet(set(func(os *v1alpha1.ObjectSet) { os.Status.Conditions = nil }))
		}, created},
		"When a revision is gone it should forget it": {func(r *Recorder) {
			r.ObjectSet(set(nil))
			r.ForgetObjectSet(client.ObjectKey{Namespace: "ns", Name: "web-1"})
		}, nil},
		"When a package is available it should be 1":      {func(r *Recorder) { r.Package(pkg("a", metav1.ConditionTrue, 2)) }, of("a", 1)},
		"When a package is unavailable it should be 0":    {func(r *Recorder) { r.Package(pkg("a", metav1.ConditionFalse, 2)) }, of("a", 0)},
		"When that was another generation it should be 2": {func(r *Recorder) { r.Package(pkg("a", metav1.ConditionTrue, 1)) }, of("a", 2)},
		"When the image changes it should have one series": {func(r *Recorder) {
			r.Package(pkg("a", metav1.ConditionTrue, 2))
			r.Package(pkg("b", metav1.ConditionFalse, 2))
		}, of("b", 0)},
		"When a package is gone it should forget it": {func(r *Recorder) {
			r.Package(pkg("a", metav1.ConditionTrue, 2))
			r.PackageLoaded(client.ObjectKey{Namespace: "ns", Name: "web"}, 1.23456)
			r.ForgetPackage(client.ObjectKey{Namespace: "ns", Name: "web"})
		}, nil},
		"When a rollout goes on it should count, and say which state it is in": {func(r *Recorder) {
			r.Rollout("addon", Rollout{State: RolloutPaused, Total: 4, Budget: 1, Now: time.Unix(10, 0)})
			moved := Rollout{State: RolloutProgressing, Total: 4, Available: 3, Progressed: 2, Updated: 1, Unavailable: 1, Budget: 1, Used: 1, Groups: 2, GroupsDone: 1, Now: time.Unix(20, 0)}
			r.Rollout("addon", moved)
			moved.Now, moved.Available = time.Unix(30, 0), 2 // one goes down: that is no progress
			r.Rollout("addon", moved)
			moved.Available = 3
			r.Rollout("addon", moved)
		}, map[string]float64{
			"hosted_cluster_package_packages{pko_name=addon,state=total}": 4, "hosted_cluster_package_packages{pko_name=addon,state=available}": 3,
			"hosted_cluster_package_packages{pko_name=addon,state=progressed}": 2, "hosted_cluster_package_packages{pko_name=addon,state=updated}": 1,
			"hosted_cluster_package_packages{pko_name=addon,state=unavailable}": 1,
			"hosted_cluster_package_groups{pko_name=addon,state=total}":         2, "hosted_cluster_package_groups{pko_name=addon,state=done}": 1,
			"hosted_cluster_package_budget{pko_name=addon}": 1, "hosted_cluster_package_budget_used{pko_name=addon}": 1,
			"hosted_cluster_package_last_progress_timestamp_seconds{pko_name=addon}": 20,
			"hosted_cluster_package_rollout{pko_name=addon,state=progressing}":       1, "hosted_cluster_package_rollout{pko_name=addon,state=paused}": 0,
			"hosted_cluster_package_rollout{pko_name=addon,state=soaking}": 0, "hosted_cluster_package_rollout{pko_name=addon,state=complete}": 0,
		}},
		"When a HostedClusterPackage is gone it should forget it": {func(r *Recorder) {
			r.Rollout("addon", Rollout{State: RolloutComplete, Total: 4, Budget: 2, Groups: 1})
			r.ForgetRollout("addon")
		}, nil},
		"When a package was loaded it should say how long it took, in milliseconds": {func(r *Recorder) {
			r.PackageLoaded(client.ObjectKey{Namespace: "ns", Name: "web"}, 1.23456)
		}, map[string]float64{"package_load_duration_seconds{pko_name=web,pko_namespace=ns}": 1.234}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			registry := prometheus.NewRegistry()
			r, err := New(registry, watches{})
			g.Expect(err).NotTo(HaveOccurred())
			tc.record(r)
			g.Expect(series(t, registry)).To(Equal(with(tc.want)))
		})
	}
}
