package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/why"
)

// Bounds of what is read.
const (
	// pageSize is how many objects a request asks for, maxObjects how many of a kind are read in all.
	pageSize   = 500
	maxObjects = 2000
	// requestTime bounds each request, hostedTime all to a hosted cluster, which may be dead or mean.
	requestTime = 20 * time.Second
	hostedTime  = 2 * time.Second
	// maxFleet is how many Packages of a rollout are looked at.
	maxFleet = 10
)

// Observer reads.
type Observer struct {
	// Client reaches the management cluster, uncached, with core types, those of HyperShift and those of packages in its scheme.
	Client client.Reader
	// Hosted gives a reader of a hosted cluster; nil: nobody looks there. An error says why it can't be reached.
	Hosted func(ctx context.Context, hc *hyperv1.HostedCluster) (client.Reader, error)
	// OperatorNamespace is that of the hypershift-operator, and PackageOperatorNamespace that of the package operator; empty: "hypershift" and
	// "package-operator-system".
	OperatorNamespace, PackageOperatorNamespace string
	// Now is the time; nil: time.Now.
	Now func() time.Time
}

// run is a snapshot in the making.
type run struct {
	Observer
	mu   sync.Mutex
	wait sync.WaitGroup
	snap *why.Snapshot
}

// Snapshot reads what explains an object. An error means that the object itself is not there or can't be read, or that there is no way to explain its
// kind.
func (o Observer) Snapshot(ctx context.Context, of why.Object) (*why.Snapshot, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OperatorNamespace == "" {
		o.OperatorNamespace = "hypershift"
	}
	if o.PackageOperatorNamespace == "" {
		o.PackageOperatorNamespace = "package-operator-system"
	}
	r := &run{Observer: o, snap: &why.Snapshot{Now: o.Now(), Unread: map[string]string{}}}
	read, ok := map[string]func(context.Context, why.Object) error{
		"HostedCluster": r.cluster, "NodePool": r.pool, "Machine": r.inControlPlane, "ControlPlaneComponent": r.inControlPlane, "HostedControlPlane": r.inControlPlane,
		"Package": r.pkg, "ObjectDeployment": r.objectDeployment, "ObjectSet": r.inPackage, "HostedClusterPackage": r.fleet,
		"ClusterPackage": r.clusterPackage, "ClusterObjectDeployment": r.clusterObjectDeployment,
	}[of.Kind]
	if !ok {
		return nil, fmt.Errorf("nobody can explain a %s: use one of %s", of.Kind, strings.Join(Kinds(), ", "))
	}
	err := read(ctx, of)
	r.wait.Wait()
	if err != nil {
		return nil, err
	}
	return r.snap, nil
}

// Kinds are those that Snapshot takes.
func Kinds() []string {
	return []string{"HostedCluster", "NodePool", "Machine", "ControlPlaneComponent", "HostedControlPlane", "Package", "ObjectDeployment", "ObjectSet", "ClusterPackage", "ClusterObjectDeployment", "HostedClusterPackage"}
}

// cluster reads a HostedCluster and all that belongs to it.
func (r *run) cluster(ctx context.Context, of why.Object) error {
	hc := &hyperv1.HostedCluster{}
	if err := r.get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, hc); err != nil {
		return err
	}
	r.around(ctx, hc)
	return nil
}

// around reads what belongs to a HostedCluster.
func (r *run) around(ctx context.Context, hc *hyperv1.HostedCluster) {
	r.snap.HostedClusters = append(r.snap.HostedClusters, *hc)
	ns := names.NamespaceOf(hc)
	r.go1(func() { r.pools(ctx, hc) })
	r.controlPlane(ctx, ns, hc.Name)
	r.machines(ctx, ns, hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true")
	r.operators(ctx, r.OperatorNamespace)
	r.warnings(ctx, hc.Namespace, "HostedCluster", hc.Name)
	r.go1(func() { r.hosted(ctx, hc) })
}

// pool reads a NodePool with its hosted cluster.
func (r *run) pool(ctx context.Context, of why.Object) error {
	pool := &hyperv1.NodePool{}
	if err := r.get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, pool); err != nil {
		return err
	}
	err := r.cluster(ctx, why.Object{Kind: "HostedCluster", Namespace: of.Namespace, Name: pool.Spec.ClusterName})
	switch {
	case apierrors.IsNotFound(err):
		r.add(func(s *why.Snapshot) { s.NodePools = append(s.NodePools, *pool) })
	case err != nil:
		r.unread("HostedCluster", err)
		r.add(func(s *why.Snapshot) { s.NodePools = append(s.NodePools, *pool) })
	}
	return nil
}

// inControlPlane reads the hosted cluster whose control plane is in the namespace of an object.
func (r *run) inControlPlane(ctx context.Context, of why.Object) error {
	list := &hyperv1.HostedControlPlaneList{}
	if err := r.page(ctx, list, client.InNamespace(of.Namespace)); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("namespace %s holds no control plane: name the hosted cluster with --cluster, or that namespace with -n, such as clusters-demo", of.Namespace)
	}
	owner, ok := names.ParseBackReference(list.Items[0].Annotations[hyperv1.HostedClusterAnnotation])
	if !ok {
		return fmt.Errorf("HostedControlPlane %s/%s does not say whose it is: annotation %s is missing", of.Namespace, list.Items[0].Name, hyperv1.HostedClusterAnnotation)
	}
	return r.cluster(ctx, why.Object{Kind: "HostedCluster", Namespace: owner.Namespace, Name: owner.Name})
}

// pools reads the NodePools of a HostedCluster. Others in the namespace are read with them: no field selects them.
func (r *run) pools(ctx context.Context, hc *hyperv1.HostedCluster) {
	list := &hyperv1.NodePoolList{}
	for err := range read.Pages(ctx, bounded{r.Client}, list, pageSize, client.InNamespace(hc.Namespace)) {
		if err != nil {
			r.unread("NodePool", err)
			return
		}
		mine := slices.DeleteFunc(list.Items, func(p hyperv1.NodePool) bool { return p.Spec.ClusterName != hc.Name })
		r.add(func(s *why.Snapshot) { s.NodePools = append(s.NodePools, mine...) })
	}
}

// go1 does something beside the rest. Snapshot waits for it.
func (r *run) go1(do func()) {
	r.wait.Add(1)
	go func() {
		defer r.wait.Done()
		do()
	}()
}

func (r *run) add(to func(*why.Snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to(r.snap)
}

// unread notes that a kind could not be read. A kind that isn't served has no objects.
func (r *run) unread(kind string, err error) {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return
	}
	r.add(func(s *why.Snapshot) { s.Unread[kind] = err.Error() })
}

func (r *run) get(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if err := r.Client.Get(ctx, key, obj); err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	return nil
}

// bounded is a reader whose lists take requestTime at most, each page of them.
type bounded struct{ client.Reader }

// List implements client.Reader.
func (b bounded) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	if err := b.Reader.List(ctx, list, opts...); err != nil {
		return fmt.Errorf("listing %T: %w", list, err)
	}
	return nil
}

// page reads all pages of a list, up to maxObjects.
func (r *run) page(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.pagesOf(ctx, r.Client, list, opts...)
}

func (r *run) pagesOf(ctx context.Context, from client.Reader, list client.ObjectList, opts ...client.ListOption) error {
	var all []runtime.Object
	for err := range read.Pages(ctx, bounded{from}, list, pageSize, opts...) {
		if err != nil {
			return err // because bounded has
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return fmt.Errorf("reading %T: %w", list, err)
		}
		if all = append(all, items...); len(all) >= maxObjects {
			break
		}
	}
	if err := meta.SetList(list, all); err != nil {
		return fmt.Errorf("joining pages of %T: %w", list, err)
	}
	return nil
}
