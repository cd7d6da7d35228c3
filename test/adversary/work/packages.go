package work

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/test/adversary/fault"
	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/world"
)

const (
	// Fleet is the name of the HostedClusterPackage and of its Packages, Budget its maxUnavailable.
	Fleet   = "adversary-fleet"
	Budget  = 1
	tenants = "shop"
	// standing is the ClusterPackage.
	standing = "adversary-standing"
)

// standingFiles are a small package with cluster scope: it makes a ConfigMap.
func standingFiles(version string) load.Files {
	return load.Files{
		"manifest.yaml": []byte("apiVersion: manifests.package-operator.run/v1alpha1\nkind: PackageManifest\nmetadata: {name: standing}\nspec:\n  scopes: [Cluster]\n  phases: [{name: all}]\n" +
			"  availabilityProbes:\n  - selector: {kind: {kind: ConfigMap}}\n    probes: [{fieldsEqual: {fieldA: .metadata.name, fieldB: .metadata.name}}]\n"),
		"all.yaml": fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: standing\n  namespace: %s\n  annotations: {package-operator.run/phase: all}\ndata: {version: %q}\n", world.Tenant, version),
	}
}

// push puts images of packages into the registry. Those of the add-on and of the web server are from the examples, as make up has them.
func (w *Work) push(ctx context.Context) error {
	root := filepath.Dir(w.World.Bin)
	for _, example := range []string{"hello", "web"} {
		files, err := load.Folder(filepath.Join(root, "config/examples/packages", example))
		if err != nil {
			return fmt.Errorf("reading the example package %s: %w", example, err)
		}
		if err := fault.Push(ctx, world.Registry()+"/adversary/"+example+":v1", files); err != nil {
			return err
		}
	}
	for _, version := range []string{plan.First, plan.Second} {
		if err := fault.Push(ctx, world.Registry()+"/adversary/standing:"+version, standingFiles(version)); err != nil {
			return err
		}
	}
	return nil
}

func object(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// manifest is a package at the version of a step.
func manifest(s plan.Step) *unstructured.Unstructured {
	app := map[string]any{"image": world.Registry() + "/hypershift/webapp"}
	switch s.Kind {
	case plan.Fleet:
		app["tag"] = s.Version
		return object("HostedClusterPackage", "", Fleet, map[string]any{
			// All hosted clusters. A label would change what packages of the demo cluster are rendered from, and nobody changes that cluster.
			"hostedClusterSelector": map[string]any{},
			"strategy":              map[string]any{"rollingUpgrade": map[string]any{"maxUnavailable": int64(Budget)}},
			"template":              map[string]any{"spec": map[string]any{"image": world.Registry() + "/adversary/hello:v1", "config": app}},
		})
	case plan.Package:
		app["version"], app["replicas"] = s.Version, int64(1)
		return object("Package", world.Tenant, tenants, map[string]any{"image": world.Registry() + "/adversary/web:v1", "config": app})
	default:
		return object("ClusterPackage", "", standing, map[string]any{"image": world.Registry() + "/adversary/standing:" + s.Version})
	}
}

const (
	// packageBound is how long a package may take to go, poolBound a NodePool, whose machine is drained, namespaceBound a namespace.
	packageBound, poolBound, namespaceBound = time.Minute, 3 * time.Minute, 2 * time.Minute
)

// Clean deletes everything that the adversary has made, with the hosted clusters that are named, and waits until it is gone.
func (w *Work) Clean(ctx context.Context, clusters []int) error {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	// What is in hosted clusters goes first: with the cluster, nobody could tell whether it does.
	w.all(
		func() {
			_ = w.gone(ctx, "HostedClusterPackage", packageBound, &v1alpha1.HostedClusterPackage{ObjectMeta: meta("", Fleet)})
		},
		func() {
			_ = w.gone(ctx, "ClusterPackage", packageBound, &v1alpha1.ClusterPackage{ObjectMeta: meta("", standing)})
		},
		func() {
			_ = w.gone(ctx, "Package", packageBound, &v1alpha1.Package{ObjectMeta: meta(world.Tenant, tenants)})
		},
	)
	ends := []func(){func() {
		_ = w.gone(ctx, "NodePool", poolBound, &hyperv1.NodePool{ObjectMeta: meta(world.Key(plan.Demo).Namespace, pool)})
		_ = w.gone(ctx, "ConfigMap", packageBound, &corev1.ConfigMap{ObjectMeta: meta(world.Key(plan.Demo).Namespace, pool)})
	}}
	for _, c := range clusters {
		ends = append(ends, func() { _ = w.Destroy(ctx, c) })
	}
	w.all(ends...)
	ends = nil
	for _, ns := range []string{world.Clusters, world.Tenant, world.Victim} {
		ends = append(ends, func() {
			_ = w.gone(ctx, "Namespace "+ns, namespaceBound, &corev1.Namespace{ObjectMeta: meta("", ns)})
		})
	}
	w.all(ends...)
	return w.cleanDemo(ctx)
}

// cleanDemo takes away what is in the demo cluster.
func (w *Work) cleanDemo(ctx context.Context) error {
	begin, bound := time.Now(), w.Deadline(namespaceBound)
	err := world.Until(ctx, bound, func(ctx context.Context) error {
		cfg, err := w.World.Hosted(ctx, plan.Demo)
		if err != nil {
			return err
		}
		c, err := world.NewClient(cfg)
		if err != nil {
			return err
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: world.Tenant}}
		if err := ignoreMissing(c.Delete(ctx, ns)); err != nil {
			return err
		}
		err = c.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		if err == nil {
			return fmt.Errorf("namespace %s of the demo cluster is there: %v", ns.Name, ns.Status.Conditions)
		}
		return client.IgnoreNotFound(err)
	})
	if err != nil && ctx.Err() == nil {
		w.Late(fmt.Sprintf("deleting the tenant's namespace in the demo cluster, after %s: %v", time.Since(begin).Round(time.Second), err))
	}
	return ctx.Err()
}

func (w *Work) all(what ...func()) {
	var group sync.WaitGroup
	for _, f := range what {
		group.Go(f)
	}
	group.Wait()
}
