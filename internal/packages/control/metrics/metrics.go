// Package metrics says how packages and revisions are, as gauges under the names that dashboards know.
package metrics

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
)

// cacheOwner is the one owner of the shared cache; dashboards select by it.
const cacheOwner = "123-456"

// Recorder records packages and revisions. It is safe for concurrent use.
type Recorder struct {
	availability *prometheus.GaugeVec
	created      *prometheus.GaugeVec
	loading      *prometheus.GaugeVec
	revision     *prometheus.GaugeVec
	setCreated   *prometheus.GaugeVec
	setSucceeded *prometheus.GaugeVec
	rollouts     *rollouts
	informers    *prometheus.Desc
	objects      *prometheus.Desc
	watches      Watches

	mu sync.Mutex
	// sets and packages remember what was written last, so that nothing is when nothing changed.
	sets     map[client.ObjectKey]setState
	packages map[client.ObjectKey]packageState
}

type setState struct {
	created, succeeded float64
	instance, image    string
}

type packageState struct {
	created, availability, revision float64
	image                           string
}

// Watches is what there is to say about watch.Cache.
type Watches interface {
	Kinds() []schema.GroupVersionKind
	Count(ctx context.Context, kind schema.GroupVersionKind) int
}

// New returns a Recorder whose metrics are added to registry.
func New(registry prometheus.Registerer, watches Watches) (*Recorder, error) {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "package_operator_" + name, Help: help}, labels)
	}
	r := &Recorder{
		availability: gauge("package_availability", "Whether a package is unavailable (0), available (1) or unknown (2).", "pko_name", "pko_namespace", "image"),
		created:      gauge("package_created_timestamp_seconds", "When a package was created.", "pko_name", "pko_namespace"),
		loading:      gauge("package_load_duration_seconds", "How long it took to load a package.", "pko_name", "pko_namespace"),
		revision:     gauge("package_revision", "Revision of a package.", "pko_name", "pko_namespace"),
		setCreated:   gauge("object_set_created_timestamp_seconds", "When a revision was created.", "pko_name", "pko_namespace", "pko_package_instance"),
		setSucceeded: gauge("object_set_succeeded_timestamp_seconds", "When a revision succeeded.", "pko_name", "pko_namespace", "pko_package_instance", "image"),
		informers:    prometheus.NewDesc("package_operator_managed_cache_informers_total", "Kinds that are watched.", []string{"owner"}, nil),
		objects:      prometheus.NewDesc("package_operator_managed_cache_objects_total", "Objects that are watched, by kind.", []string{"owner", "gvk"}, nil),
		watches:      watches,
		sets:         map[client.ObjectKey]setState{}, packages: map[client.ObjectKey]packageState{},
	}
	r.rollouts = newRollouts(gauge)
	for _, c := range r.rollouts.all() {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, c := range []prometheus.Collector{r.availability, r.created, r.loading, r.revision, r.setCreated, r.setSucceeded, cacheCollector{r}} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// cacheCollector counts when it is asked.
type cacheCollector struct{ r *Recorder }

func (c cacheCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.r.informers
	out <- c.r.objects
}

func (c cacheCollector) Collect(out chan<- prometheus.Metric) {
	kinds := c.r.watches.Kinds()
	out <- prometheus.MustNewConstMetric(c.r.informers, prometheus.GaugeValue, float64(len(kinds)), cacheOwner)
	for _, kind := range kinds {
		count := c.r.watches.Count(context.Background(), kind) // a look into memory; the scrape has no context
		out <- prometheus.MustNewConstMetric(c.r.objects, prometheus.GaugeValue, float64(count), cacheOwner, kind.String())
	}
}

// ObjectSet records a revision.
func (r *Recorder) ObjectSet(os *v1alpha1.ObjectSet) {
	state := setState{
		created:  float64(os.CreationTimestamp.Unix()),
		instance: os.Labels[v1alpha1.InstanceLabel], image: os.Annotations[v1alpha1.PackageSourceImageAnnotation],
	}
	succeeded := conditions.Get(os.Status.Conditions, v1alpha1.ConditionSucceeded)
	if succeeded != nil && succeeded.Status == metav1.ConditionTrue && os.Spec.LifecycleState != v1alpha1.LifecycleStateArchived {
		state.succeeded = float64(succeeded.LastTransitionTime.Unix())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(os)
	if r.sets[key] == state {
		return
	}
	r.forgetSet(key)
	r.sets[key] = state
	r.setCreated.WithLabelValues(key.Name, key.Namespace, state.instance).Set(state.created)
	if state.succeeded != 0 {
		r.setSucceeded.WithLabelValues(key.Name, key.Namespace, state.instance, state.image).Set(state.succeeded)
	}
}

// ForgetObjectSet removes a revision.
func (r *Recorder) ForgetObjectSet(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetSet(key)
}

func (r *Recorder) forgetSet(key client.ObjectKey) {
	if old, ok := r.sets[key]; ok {
		r.setCreated.DeleteLabelValues(key.Name, key.Namespace, old.instance)
		r.setSucceeded.DeleteLabelValues(key.Name, key.Namespace, old.instance, old.image)
		delete(r.sets, key)
	}
}

// Package records a package.
func (r *Recorder) Package(p *v1alpha1.Package) {
	state := packageState{created: float64(p.CreationTimestamp.Unix()), availability: 2, revision: float64(p.Status.Revision), image: p.Spec.Image}
	if c := conditions.Current(p.Status.Conditions, v1alpha1.ConditionAvailable, p.Generation); c != nil {
		switch c.Status {
		case metav1.ConditionTrue:
			state.availability = 1
		case metav1.ConditionFalse:
			state.availability = 0
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(p)
	old, known := r.packages[key]
	if known && old == state {
		return
	}
	if known && old.image != state.image {
		r.availability.DeleteLabelValues(key.Name, key.Namespace, old.image)
	}
	r.packages[key] = state
	r.availability.WithLabelValues(key.Name, key.Namespace, state.image).Set(state.availability)
	r.created.WithLabelValues(key.Name, key.Namespace).Set(state.created)
	r.revision.WithLabelValues(key.Name, key.Namespace).Set(state.revision)
}

// PackageLoaded records how long a package took to load, in seconds.
func (r *Recorder) PackageLoaded(key client.ObjectKey, seconds float64) {
	r.loading.WithLabelValues(key.Name, key.Namespace).Set(float64(int64(seconds*1000)) / 1000)
}

// ForgetPackage removes a package.
func (r *Recorder) ForgetPackage(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.packages, key)
	labels := prometheus.Labels{"pko_name": key.Name, "pko_namespace": key.Namespace}
	for _, vec := range []*prometheus.GaugeVec{r.availability, r.created, r.loading, r.revision} {
		vec.DeletePartialMatch(labels)
	}
}
