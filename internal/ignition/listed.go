package ignition

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hcp.internal/platform/internal/contract/names"
)

// listed are the Secrets that this process may use: its own Role names them, and it can't list others. The control-plane-operator keeps the Role. Each
// Secret has a watch of its own, as a right to names allows no other.
type listed struct {
	role      client.ObjectKey
	reader    client.Reader // cached
	metadata  metadata.Interface
	gone      func(string)            // a token is not listed any more
	began     func(names []string)    // called once, with the first list
	changed   chan event.GenericEvent // a Secret to look at
	next      chan sets.Set[string]   // what to watch
	namesOnce sync.Once

	mu    sync.Mutex
	names sets.Set[string] // of tokens
}

func newListed(reader client.Reader, metadata metadata.Interface, namespace string, began func([]string), gone func(string)) *listed {
	return &listed{
		role: client.ObjectKey{Namespace: namespace, Name: names.IgnitionServer}, reader: reader, metadata: metadata, began: began, gone: gone,
		changed: make(chan event.GenericEvent), next: make(chan sets.Set[string]), names: sets.New[string](),
	}
}

// Has says whether a token is listed.
func (l *listed) Has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names.Has(name)
}

// tokens are the names of all, sorted.
func (l *listed) tokens() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return sets.List(l.names)
}

// namesIn are the Secrets that a Role names.
func namesIn(role *rbacv1.Role) sets.Set[string] {
	names := sets.New[string]()
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "secrets") {
			names.Insert(rule.ResourceNames...)
		}
	}
	return names
}

// Reconcile follows the Role.
func (l *listed) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	role := &rbacv1.Role{}
	if err := l.reader.Get(ctx, l.role, role); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading Role %s, which lists the tokens: %w", l.role, err)
	}
	all := namesIn(role)
	tokens := all.Clone()
	for name := range inputSecrets {
		tokens.Delete(name)
	}
	l.mu.Lock()
	before := l.names
	l.names = tokens
	l.mu.Unlock()
	l.namesOnce.Do(func() { l.began(sets.List(tokens)) })
	select {
	case l.next <- all:
	case <-ctx.Done():
		return reconcile.Result{}, ctx.Err()
	}
	for name := range before.Difference(tokens) {
		l.gone(name)
		l.tell(ctx, name)
	}
	for name := range tokens.Difference(before) { // also one that is gone has to have its pass
		l.tell(ctx, name)
	}
	return reconcile.Result{}, nil
}

// tell asks for a pass.
func (l *listed) tell(ctx context.Context, name string) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: l.role.Namespace, Name: name}}
	select {
	case l.changed <- event.GenericEvent{Object: object}:
	case <-ctx.Done():
	}
}

// Start implements manager.Runnable: it begins and ends watches. It ends with ctx.
func (l *listed) Start(ctx context.Context) error {
	watches := map[string]context.CancelFunc{}
	var running sync.WaitGroup
	defer running.Wait()
	for {
		var want sets.Set[string]
		select {
		case <-ctx.Done():
			return nil // that is how it is told to end
		case want = <-l.next:
		}
		for name, stop := range watches {
			if !want.Has(name) {
				stop()
				delete(watches, name)
			}
		}
		for name := range want {
			if watches[name] == nil {
				one, stop := context.WithCancel(ctx)
				watches[name] = stop
				running.Go(func() { l.watch(one, name) })
			}
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves.
func (l *listed) NeedLeaderElection() bool { return false }

// watch tells of changes to one Secret until ctx ends.
func (l *listed) watch(ctx context.Context, name string) {
	informer := metadatainformer.NewFilteredMetadataInformer(l.metadata, corev1.SchemeGroupVersion.WithResource("secrets"), l.role.Namespace, 0, toolscache.Indexers{},
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}).Informer()
	tell := func(any) { l.tell(ctx, name) }
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell, DeleteFunc: tell,
		UpdateFunc: func(before, after any) {
			if version(before) != version(after) {
				l.tell(ctx, name)
			}
		},
	}); err != nil {
		return // only of an informer that has ended
	}
	informer.RunWithContext(ctx)
}

func version(obj any) string {
	if o, ok := obj.(metav1.Object); ok {
		return o.GetResourceVersion()
	}
	return ""
}
