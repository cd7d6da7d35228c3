package dump

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/kube/redact"
)

const (
	// pageSize and maxObjects bound what one kind of one namespace costs in memory: a runaway controller may have left
	// hundreds of thousands of events.
	pageSize   = 250
	maxObjects = 5000

	problemsFile = "problems.txt"
)

// kind is a kind of the API server that can be listed.
type kind struct {
	schema.GroupVersionKind
	resource   string
	namespaced bool
}

// connect makes the clients and asks the API server what it has.
func (d *dumper) connect(config *rest.Config) error {
	var err error
	if d.client, err = client.New(config, client.Options{Scheme: connect.Scheme()}); err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	if d.clientset, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	lists, err := discovery.ServerPreferredResources(d.clientset.Discovery())
	// One aggregated API that is down must not hide the others.
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return fmt.Errorf("asking %s for its APIs: %w", config.Host, err)
	}
	if partial != nil {
		d.problem("discovery: %v", err)
	}
	d.kinds = listable(lists)
	return nil
}

// listable is every kind that can be listed, sorted, once.
func listable(lists []*metav1.APIResourceList) []kind {
	var kinds []kind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			// Events are in two groups; the core one is what people know.
			if !slices.Contains(r.Verbs, "list") || strings.Contains(r.Name, "/") || r.Name == "events" && gv.Group != "" {
				continue
			}
			kinds = append(kinds, kind{GroupVersionKind: gv.WithKind(r.Kind), resource: r.Name, namespaced: r.Namespaced})
		}
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return strings.Compare(a.Group+"/"+a.resource, b.Group+"/"+b.resource)
	})
	return kinds
}

// management dumps what the management cluster knows about a hosted cluster.
func (d *dumper) management(ctx context.Context, o Options) error {
	hc := &hyperv1.HostedCluster{}
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, hc); err != nil {
		switch {
		case apierrors.IsNotFound(err):
			// What a deletion left behind is worth a dump, too.
			d.missing = true
			d.problem("HostedCluster %s/%s doesn't exist", o.Namespace, o.Name)
		case ctx.Err() != nil: // what was asked for so far is worth an archive
			d.problem("reading HostedCluster %s/%s: %v", o.Namespace, o.Name, err)
		default:
			return fmt.Errorf("reading HostedCluster %s/%s: %w", o.Namespace, o.Name, err)
		}
	}
	namespaces := []string{o.Namespace, names.ControlPlaneNamespace(o.Namespace, o.Name), o.OperatorNamespace, install.PackageOperatorNamespace}
	if o.AgentNamespace != "" {
		namespaces = append(namespaces, o.AgentNamespace)
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		d.namespace(ctx, namespace)
	}
	for _, k := range d.kinds {
		if !k.namespaced && (clusterScoped[k.resource] || k.Group == packagesv1.GroupVersion.Group) {
			d.list(ctx, k, "")
		}
	}
	return nil
}

// clusterScoped are the kinds without namespace, those of packages aside, that tell something about a control plane.
var clusterScoped = map[string]bool{
	"nodes": true, "persistentvolumes": true, "storageclasses": true, "priorityclasses": true, "namespaces": true,
	"apiservices": true, "mutatingwebhookconfigurations": true, "validatingwebhookconfigurations": true,
	"clustersizingconfigurations": true, "auditlogpersistenceconfigs": true,
	"customresourcedefinitions": false, // large, and known from the version
}

// namespace dumps all objects of a namespace and the logs of its Pods.
func (d *dumper) namespace(ctx context.Context, namespace string) {
	d.progress.Printf("reading namespace %s", namespace)
	for _, k := range d.kinds {
		if k.namespaced {
			d.list(ctx, k, namespace)
		}
	}
	d.logs(ctx, namespace)
}

// list writes all objects of a kind in a namespace to one file; none when there are none.
func (d *dumper) list(ctx context.Context, k kind, namespace string) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	var items []any
	for err := range read.Pages(ctx, d.client, list, pageSize, client.InNamespace(namespace)) {
		if err != nil {
			// Kinds that can't be listed by namespace, or are answered by nobody, are no news.
			if !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
				d.problem("listing %s of namespace %q: %v", k.resource, namespace, err)
			}
			break
		}
		for i := range list.Items {
			redact.Object(&list.Items[i])
			items = append(items, list.Items[i].Object)
		}
		if list.GetContinue() != "" && len(items) >= maxObjects {
			d.problem("listing %s of namespace %q: stopped after %d", k.resource, namespace, len(items))
			break
		}
	}
	if len(items) == 0 {
		return
	}
	raw, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		d.problem("encoding %s of namespace %q: %v", k.resource, namespace, err)
		return
	}
	dir := "cluster-scoped"
	if namespace != "" {
		dir = filepath.Join("namespaces", namespace)
	}
	group := k.Group
	if group == "" {
		group = "core"
	}
	d.write(raw, dir, group, k.resource+".yaml")
}

// write writes a file below the dump's directory. Parts of the path may come from a hosted cluster, which isn't trusted.
func (d *dumper) write(raw []byte, path ...string) {
	for i, part := range path {
		if i == 0 {
			continue // ours
		}
		path[i] = safeName(part)
	}
	name := filepath.Join(d.dir, filepath.Join(path...))
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, raw, 0o600)
	}
	if err != nil {
		d.problem("writing %s: %v", name, err)
		return
	}
	d.written = append(d.written, name)
}

// safeName is text as one component of a path.
func safeName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, text)
	if name == "" || strings.Trim(name, ".") == "" {
		return "_"
	}
	return name[:min(len(name), 200)]
}

// writeProblems writes what could not be read; nothing when all could.
func (d *dumper) writeProblems() error {
	if len(d.problems) == 0 {
		return nil
	}
	name := filepath.Join(d.dir, problemsFile)
	if err := os.WriteFile(name, []byte(strings.Join(d.problems, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	d.written = append(d.written, name)
	return nil
}
