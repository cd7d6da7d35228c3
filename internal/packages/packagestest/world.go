// Package packagestest runs the controllers of packages in tests, against a real API server, and builds objects for them.
package packagestest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/packages/control/manager"
	"hcp.internal/platform/internal/packages/control/program"
	"hcp.internal/platform/internal/testenv"
)

// Timeout of what a test waits for, on a machine that is busy.
const Timeout = time.Minute

// World is an API server with the controllers of packages.
type World struct {
	Env *testenv.Env
	// Client reads and writes without a cache, as somebody else.
	Client client.WithWatch
}

var crds struct {
	once sync.Once
	err  error
}

// Serve starts an API server with the kinds of packages, and garbage collection, but no controllers of ours.
func Serve(t testing.TB) *World {
	t.Helper()
	env := testenv.Start(t)
	crds.once.Do(func() {
		definitions, err := config.PackageOperatorCRDs()
		if err == nil {
			_, err = envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: definitions, MaxTime: 3 * time.Minute})
		}
		crds.err = err
	})
	if crds.err != nil {
		t.Fatalf("installing CustomResourceDefinitions: %v", crds.err)
	}
	env.StartControllers(t)
	return &World{Env: env, Client: env.Client(t, Scheme(t))}
}

// Scheme has the kinds of packages and of Kubernetes.
func Scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme, err := manager.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

var running sync.Once

// Start is Serve with the controllers running until the test binary ends. All tests of it share them.
func Start(t testing.TB, extensions ...manager.Extension) *World {
	t.Helper()
	w := Serve(t)
	running.Do(func() { w.Run(t, context.Background(), extensions...) })
	return w
}

// Run runs the controllers until ctx ends.
func (w *World) Run(t testing.TB, ctx context.Context, extensions ...manager.Extension) { // t goes first in helpers of tests
	t.Helper()
	mgr, err := manager.New(ctx, w.Env.Config, manager.Options{
		Options: program.Options{MetricsAddr: "0", HealthAddr: "0"}, Registry: prometheus.NewRegistry(),
		ObjectTemplateRetryInterval: time.Second, ObjectTemplateOptionalRetryInterval: time.Second,
	}, extensions...)
	if err != nil {
		t.Fatalf("setting up the controllers: %v", err)
	}
	go func() {
		if err := mgr.Start(ctx); err != nil && !errors.Is(err, context.Canceled) {
			panic(fmt.Sprintf("running the controllers: %v", err))
		}
	}()
}

// Namespace makes a namespace for a test.
func (w *World) Namespace(t testing.TB) string { return w.Env.Namespace(t) }

// Eventually waits until check is happy with what obj is, and returns its complaint otherwise.
func (w *World) Eventually(t testing.TB, obj client.Object, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, Timeout, true, func(ctx context.Context) (bool, error) {
		if last = w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); last != nil {
			return false, nil //nolint:nilerr // because it is tried again
		}
		last = check()
		return last == nil, nil
	})
	if err != nil {
		status, _ := json.MarshalIndent(obj, "", " ")
		t.Fatalf("waiting for %T %s: %v\n%s", obj, client.ObjectKeyFromObject(obj), last, status)
	}
}

// Gone waits until an object is not there.
func (w *World) Gone(t testing.TB, obj client.Object) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, Timeout, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(w.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)), nil
	})
	if err != nil {
		status, _ := json.MarshalIndent(obj, "", " ")
		t.Fatalf("%T %s is still there\n%s", obj, client.ObjectKeyFromObject(obj), status)
	}
}

// HasCondition returns a check of a condition of the present generation; message "" allows any.
func HasCondition(obj client.Object, list *[]metav1.Condition, conditionType string, status metav1.ConditionStatus, reason, message string) func() error {
	return func() error {
		c := meta.FindStatusCondition(*list, conditionType)
		switch {
		case c == nil:
			return fmt.Errorf("no condition %s", conditionType)
		case c.Status != status || c.Reason != reason || (message != "" && c.Message != message):
			return fmt.Errorf("condition %s is %s %s %q, want %s %s %q", conditionType, c.Status, c.Reason, c.Message, status, reason, message)
		case c.ObservedGeneration != obj.GetGeneration():
			return fmt.Errorf("condition %s is about generation %d, not %d", conditionType, c.ObservedGeneration, obj.GetGeneration())
		}
		return nil
	}
}

// Object is an object of a phase.
func Object(obj map[string]any) v1alpha1.ObjectSetObject {
	return v1alpha1.ObjectSetObject{Object: unstructured.Unstructured{Object: obj}}
}

// ConfigMap is an object of a phase.
func ConfigMap(name string, data map[string]any, annotations ...string) v1alpha1.ObjectSetObject {
	metadata := map[string]any{"name": name}
	if len(annotations) > 0 {
		m := map[string]any{}
		for i := 0; i+1 < len(annotations); i += 2 {
			m[annotations[i]] = annotations[i+1]
		}
		metadata["annotations"] = m
	}
	obj := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
	if data != nil {
		obj["data"] = data
	}
	return Object(obj)
}

// Phase is a phase of a template.
func Phase(name string, objects ...v1alpha1.ObjectSetObject) v1alpha1.ObjectSetTemplatePhase {
	return v1alpha1.ObjectSetTemplatePhase{Name: name, Objects: objects}
}

// Probe is a probe for a kind of the core group that compares two fields.
func Probe(kind, fieldA, fieldB string) v1alpha1.ObjectSetProbe {
	return v1alpha1.ObjectSetProbe{
		Selector: v1alpha1.ProbeSelector{Kind: &v1alpha1.PackageProbeKindSpec{Kind: kind}},
		Probes:   []v1alpha1.Probe{{FieldsEqual: &v1alpha1.ProbeFieldsEqualSpec{FieldA: fieldA, FieldB: fieldB}}},
	}
}

// ObjectSet is a revision.
func ObjectSet(namespace, name string, revision int64, phases ...v1alpha1.ObjectSetTemplatePhase) *v1alpha1.ObjectSet {
	return &v1alpha1.ObjectSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.ObjectSetSpec{Revision: revision, ObjectSetTemplateSpec: v1alpha1.ObjectSetTemplateSpec{Phases: phases}},
	}
}

// ObjectDeployment is a deployment of phases.
func ObjectDeployment(namespace, name string, phases ...v1alpha1.ObjectSetTemplatePhase) *v1alpha1.ObjectDeployment {
	labels := map[string]string{"test.example/deployment": name}
	return &v1alpha1.ObjectDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ObjectDeploymentSpec{
			Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: v1alpha1.ObjectSetTemplate{
				Metadata: metav1.ObjectMeta{Labels: labels}, Spec: v1alpha1.ObjectSetTemplateSpec{Phases: phases},
			},
		},
	}
}
