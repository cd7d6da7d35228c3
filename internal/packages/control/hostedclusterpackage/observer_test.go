package hostedclusterpackage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/process"
)

// onlooker watches the Packages of a fleet as anybody may, and judges each change of an image by what is available at that moment. It knows nothing of
// the rollout but what was asked for.
type onlooker struct {
	name   string
	budget int
	order  []string // groups
	group  map[string]string

	mu       sync.Mutex
	seen     map[string]glance // by namespace
	wrong    []string
	rollouts int
}

// glance is what is to be seen of a Package.
type glance struct {
	image string
	// up is its condition Available, and resting whether all is said about its present generation and nothing goes on.
	up, resting bool
	// changed tells that its image was changed and that nothing was reported since.
	changed bool
}

func (o *onlooker) sees(p *packagesv1.Package) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.seen[p.Namespace]
	now := glance{image: p.Spec.Image, up: conditions.IsTrue(p.Status.Conditions, packagesv1.ConditionAvailable)}
	now.resting = now.up
	reported := false
	for _, c := range p.Status.Conditions {
		reported = reported || c.ObservedGeneration == p.Generation
		now.resting = now.resting && c.ObservedGeneration == p.Generation && (c.Type != packagesv1.ConditionProgressing || c.Status == metav1.ConditionFalse)
	}
	now.changed = !reported && (before.changed || known && before.image != now.image)
	if known && before.image != now.image {
		o.rollouts++
		o.judge(p.Namespace, before, now)
	}
	o.seen[p.Namespace] = now
}

func (o *onlooker) judge(ns string, before, now glance) {
	down := 0
	for other, g := range o.seen {
		if other != ns && (!g.up || g.changed) {
			down++
		}
	}
	if before.up && down+1 > o.budget {
		o.wrong = append(o.wrong, fmt.Sprintf("%s was up and got %s while %d were down: %+v", ns, now.image, down, o.seen))
	}
	if !before.up {
		return // what the rollout broke can only get better
	}
	for other, g := range o.seen {
		if slices.Index(o.order, o.group[other]) < slices.Index(o.order, o.group[ns]) && (g.image != now.image || !g.resting) {
			o.wrong = append(o.wrong, fmt.Sprintf("%s got %s, which %s of group %s has not proven: %+v", ns, now.image, other, o.group[other], o.seen))
		}
	}
}

func (o *onlooker) verdict() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.wrong)
}

// counted is how many updates it has seen.
func (o *onlooker) counted() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rollouts
}

// look starts to watch.
func (o *onlooker) look(ctx context.Context, g Gomega, c client.WithWatch, world *world) {
	o.seen = map[string]glance{}
	stream, err := c.Watch(ctx, &packagesv1.PackageList{}, client.MatchingFields{"metadata.name": o.name})
	g.Expect(err).NotTo(HaveOccurred())
	world.Cleanup(stream.Stop)
	go func() {
		for e := range stream.ResultChan() {
			if p, ok := e.Object.(*packagesv1.Package); ok && e.Type != watch.Deleted {
				o.sees(p)
			}
		}
	}()
}

// TestOnlooker runs the controller with caches and watches, beside somebody who only looks.
func TestOnlooker(t *testing.T) {
	w := newWorld(t, func(p *packagesv1.HostedClusterPackage) {
		p.Spec.Partition = &packagesv1.HostedClusterPackagePartitionSpec{LabelKey: "risk",
			Order: &packagesv1.HostedClusterPackagePartitionOrderSpec{Static: []string{"first", "last"}}}
		p.Spec.Strategy.RollingUpgrade.MaxUnavailable = 2
	}, "a=first", "b=first", "x=last", "y=last")
	all := []string{"a", "b", "x", "y"}
	o := &onlooker{name: w.owner.Name, budget: 2, order: []string{"first", "last"}, group: map[string]string{}}
	for name, group := range map[string]string{"a": "first", "b": "first", "x": "last", "y": "last"} {
		o.group[names.ControlPlaneNamespace(w.ns, name)] = group
	}
	mgr, err := ctrl.NewManager(w.env.Config, ctrl.Options{Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: process.Queue()})
	w.g.Expect(err).NotTo(HaveOccurred())
	r := &Reconciler{Client: mgr.GetClient(), Live: w.c, Namespace: w.ns, Clock: clock.RealClock{}, Events: events.NewFakeRecorder(1000)}
	w.g.Expect(r.SetupWithManager(mgr)).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		stop()
		w.g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	}()
	eventually := func(what string, is func() bool) {
		t.Helper()
		w.g.Eventually(is).WithTimeout(time.Minute).WithPolling(20*time.Millisecond).Should(BeTrue(), what)
		w.g.Expect(o.verdict()).To(BeEmpty())
	}
	has := func(name, version string) func() bool {
		return func() bool { return w.image(name) == "registry.example/addon:"+version }
	}
	for _, name := range all {
		eventually(name, func() bool { return w.pkg(name) != nil })
		w.settle(name, true)
	}
	eventually("the first version", func() bool {
		return w.condition("Progressing") == "False AllPackagesProgressed 4/4 packages progressed."
	})
	o.look(ctx, w.g, w.c, w)

	for _, step := range []struct {
		name string
		run  func()
	}{
		{"When a version hangs in the last group behind the one before it, a fix should go to the first group first", func() {
			w.template("v2")
			eventually("the first group", func() bool { return has("a", "v2")() && has("b", "v2")() })
			w.settle("a", true)
			w.settle("b", true)
			eventually("the last group", func() bool { return has("x", "v2")() && has("y", "v2")() })
			w.settle("y", true)
			w.hide("x")
			w.template("v3")
			eventually("a to get the fix in the slot that is left", has("a", "v3"))
			w.g.Consistently(has("x", "v2")).WithTimeout(time.Second).Should(BeTrue())
		}},
		{"When another one breaks by itself, what is up and in flight should stay as it is", func() {
			w.settle("y", false)
			w.settle("a", false)
			w.template("v4")
			eventually("a, which the rollout broke, to get the fix", has("a", "v4"))
			w.g.Consistently(func() bool { return has("x", "v2")() && has("b", "v2")() }).WithTimeout(time.Second).Should(BeTrue())
		}},
		{"When things heal the rollout should go on to its end, in order", func() {
			w.settle("y", true)
			eventually("b, when those before it are up", func() bool {
				for _, name := range all {
					if p := w.pkg(name); p.Spec.Image == "registry.example/addon:v4" && p.Status.Conditions[0].ObservedGeneration != p.Generation && name != "b" {
						w.settle(name, true)
					}
				}
				return has("b", "v4")()
			})
			w.settle("b", true)
			eventually("x, whose update hung", has("x", "v4"))
			w.settle("x", true)
			eventually("y", has("y", "v4"))
			w.settle("y", true)
			eventually("the end", func() bool {
				return w.condition("Progressing") == "False AllPackagesProgressed 4/4 packages progressed."
			})
			w.g.Eventually(o.counted).Should(BeNumerically(">=", 9)) // its watch may be behind
		}},
	} {
		if !t.Run(step.name, func(*testing.T) { step.run() }) {
			return
		}
	}
}

// hide plays the package operator while a new version can't come up and the one before serves on.
func (w *world) hide(cluster string) {
	w.Helper()
	p := w.pkg(cluster)
	before := p.DeepCopy()
	conditions.Set(&p.Status.Conditions, time.Now(),
		metav1.Condition{Type: packagesv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: p.Generation},
		metav1.Condition{Type: packagesv1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: p.Generation},
		metav1.Condition{Type: packagesv1.ConditionUnpacked, Status: metav1.ConditionFalse, Reason: "Test", ObservedGeneration: p.Generation})
	w.g.Expect(w.c.Status().Patch(w.Context(), p, client.MergeFrom(before))).To(Succeed())
}
