//go:build e2e && migration

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
)

// observer watches machines in both groups, and their pods, on the management API server while a move goes on. It knows nothing of the move.
type observer struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu     sync.Mutex
	seen   map[string]int // events by kind
	broken []string
}

// observed are the kinds that it watches. A pod of the control plane is none of a machine, and is left out by its labels.
var observed = []struct {
	schema.GroupVersionResource
	labels string
}{
	{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "cluster.x-k8s.io/cluster-name"},
	{schema.GroupVersionResource{Group: "hypershift.openshift.io", Version: "v1beta1", Resource: "hostedcontrolplanes"}, ""},
	{schema.GroupVersionResource{Group: standardGroup, Version: "v1beta2", Resource: "machines"}, ""},
	{schema.GroupVersionResource{Group: privateGroup, Version: "v1beta2", Resource: "machines"}, ""},
	{schema.GroupVersionResource{Group: "infrastructure." + standardGroup, Version: "v1beta1", Resource: "localmachines"}, ""},
	{schema.GroupVersionResource{Group: "infrastructure." + privateGroup, Version: "v1beta1", Resource: "localmachines"}, ""},
}

func (m *moving) observe(t *testing.T) *observer {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", management().kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	api, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := &observer{cancel: cancel, seen: map[string]int{}}
	t.Cleanup(o.stop)
	for _, kind := range observed {
		in := api.Resource(kind.GroupVersionResource).Namespace("clusters-" + oldCluster)
		o.ended.Go(func() {
			for ctx.Err() == nil {
				o.watch(ctx, in, kind.GroupResource(), metav1.ListOptions{LabelSelector: kind.labels})
			}
		})
	}
	return o
}

// watch looks at what there is and what becomes of it, until the API server ends that: it does when somebody writes the definition of the kind.
func (o *observer) watch(ctx context.Context, in metadata.ResourceInterface, kind schema.GroupResource, opts metav1.ListOptions) {
	list, err := in.List(ctx, opts)
	if err != nil {
		return // asked again at once
	}
	for i := range list.Items {
		o.judge(kind, watch.Added, &list.Items[i])
	}
	opts.ResourceVersion = list.ResourceVersion
	events, err := in.Watch(ctx, opts)
	if err != nil {
		return
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if obj, ok := e.Object.(*metav1.PartialObjectMetadata); ok {
			o.judge(kind, e.Type, obj)
		}
	}
}

func (o *observer) say(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = append(o.broken, what)
}

// judge looks at one moment of one object: it has one controller, not two and not none; no machine ends; and no object that a provider would heed
// is being deleted.
func (o *observer) judge(kind schema.GroupResource, event watch.EventType, obj *metav1.PartialObjectMetadata) {
	o.mu.Lock()
	o.seen[kind.String()]++
	o.mu.Unlock()
	controllers := 0
	for _, r := range obj.OwnerReferences {
		if r.Controller != nil && *r.Controller {
			controllers++
		}
	}
	what := ""
	switch {
	case controllers > 1 || len(obj.OwnerReferences) == 0:
		what = fmt.Sprintf("has %d controllers: %v", controllers, obj.OwnerReferences)
	case controllers != 1 && kind.Resource != "hostedcontrolplanes": // which its Cluster owns, and does not control
		what = "has no controller"
	case obj.DeletionTimestamp != nil && len(obj.Finalizers) > 0:
		what = "is being deleted and has finalizers"
	case event == watch.Deleted && kind.Resource == "pods":
		what = "is gone"
	default:
		return
	}
	o.say(fmt.Sprintf("%s %s %s", kind, obj.Name, what))
}

func (o *observer) stop() {
	o.cancel()
	o.ended.Wait()
}

func (o *observer) expectFine(t *testing.T) {
	t.Helper()
	o.stop()
	t.Logf("moments seen: %v", o.seen)
	for _, b := range o.broken[:min(len(o.broken), 10)] {
		t.Error(b)
	}
	for _, kind := range observed {
		if o.seen[kind.GroupResource().String()] == 0 {
			t.Errorf("nothing was seen of %s", kind.GroupResource())
		}
	}
}
