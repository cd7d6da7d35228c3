package quiet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"hcp.internal/platform/internal/kube/fieldpath"
)

// userAgent is by whom requests of this package are known, so that they aren't counted.
const userAgent = "hypershift-local-quiet"

// Server is an API server that is looked at.
type Server struct {
	// Name is "management", or namespace/name of the HostedCluster whose it is.
	Name   string
	Config *rest.Config

	resources []schema.GroupVersionResource
	metadata  metadata.Interface
	dynamic   dynamic.Interface
}

// object is what a server holds at a moment. Its content is read once, before the observation, and for what was written, after it.
type object struct {
	server, kind, namespace, name string
	resourceVersion               string
	managed                       []metav1.ManagedFieldsEntry
	fields                        fieldpath.Fields // nil: not read
}

func (o object) String() string {
	name := o.name
	if o.namespace != "" {
		name = o.namespace + "/" + name
	}
	return o.server + ": " + o.kind + " " + name
}

// objectKey is the same for an object that several groups or versions serve, as Events are.
type objectKey struct {
	server string
	uid    types.UID
}

// connect finds every resource of a server that can be listed. Groups whose own server doesn't answer are an error: they could hide writers.
func (s *Server) connect() error {
	cfg := rest.CopyConfig(s.Config)
	cfg.UserAgent, cfg.QPS = userAgent, -1
	cfg.WarningHandlerWithContext = rest.NoWarnings{} // kinds that are deprecated are looked at, too
	found, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return err
	}
	lists, err := found.ServerPreferredResources()
	if err != nil {
		return fmt.Errorf("asking %s for its resources: %w", s.Name, err)
	}
	s.resources = nil
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") {
				s.resources = append(s.resources, gv.WithResource(r.Name))
			}
		}
	}
	if s.metadata, err = metadata.NewForConfig(cfg); err != nil {
		return err
	}
	s.dynamic, err = dynamic.NewForConfig(cfg)
	return err
}

// Kinds that are left out, with what is said about them: a lease is renewed to show that somebody lives, which is its whole purpose.
const leaseKind = "Lease"

// known are the versions of all objects, by metadata only, which costs a server little.
func (s *Server) known(ctx context.Context) (map[objectKey]object, error) {
	found := map[objectKey]object{}
	for _, gvr := range s.resources {
		list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return s.metadata.Resource(gvr).List(ctx, o)
		}
		err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			m := item.(*metav1.PartialObjectMetadata)
			// What has no version isn't stored: it is computed when it is asked for.
			if m.ResourceVersion != "" && m.UID != "" {
				found[objectKey{s.Name, m.UID}] = object{server: s.Name, kind: gvr.Resource, namespace: m.Namespace, name: m.Name, resourceVersion: m.ResourceVersion}
			}
			return nil
		})
		if err := passable(err); err != nil {
			return nil, fmt.Errorf("listing %s of %s: %w", gvr.GroupResource(), s.Name, err)
		}
	}
	return found, nil
}

// contents are all objects with their fields, but for leases and events about them.
func (s *Server) contents(ctx context.Context) (map[objectKey]object, error) {
	found := map[objectKey]object{}
	for _, gvr := range s.resources {
		list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return s.dynamic.Resource(gvr).List(ctx, o)
		}
		err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			u := item.(*unstructured.Unstructured)
			if u.GetResourceVersion() == "" || u.GetUID() == "" || aboutLease(u) {
				return nil
			}
			found[objectKey{s.Name, u.GetUID()}] = object{
				server: s.Name, kind: u.GetKind(), namespace: u.GetNamespace(), name: u.GetName(), resourceVersion: u.GetResourceVersion(),
				managed: u.GetManagedFields(), fields: fieldpath.Flatten(u.Object),
			}
			return nil
		})
		if err := passable(err); err != nil {
			return nil, fmt.Errorf("listing %s of %s: %w", gvr.GroupResource(), s.Name, err)
		}
	}
	return found, nil
}

// aboutLease says that an object is a lease or an event about one.
func aboutLease(u *unstructured.Unstructured) bool {
	if u.GetKind() == leaseKind {
		return true
	}
	for _, field := range []string{"involvedObject", "regarding"} {
		if kind, _, _ := unstructured.NestedString(u.Object, field, "kind"); u.GetKind() == "Event" && kind == leaseKind {
			return true
		}
	}
	return false
}

// passable lets go what says that a resource can't be listed after all: one that discovery shows and nobody serves has no objects.
func passable(err error) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// moved counts what was written between two looks at versions.
func moved(before, after map[objectKey]object) []string {
	var names []string
	for key, o := range after {
		if before[key].resourceVersion != o.resourceVersion && o.kind != "leases" && o.kind != "events" {
			names = append(names, o.String())
		}
	}
	for key, o := range before {
		if _, ok := after[key]; !ok && o.kind != "leases" && o.kind != "events" { // events end by themselves
			names = append(names, o.String()+" (gone)")
		}
	}
	slices.Sort(names)
	return names
}
