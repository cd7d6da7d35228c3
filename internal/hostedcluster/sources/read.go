package sources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/kube/read"
)

// Read reads the objects that the spec mentions. live is uncached: a cache of all Secrets would be large and a risk.
func Read(ctx context.Context, live client.Reader, hc *hyperv1.HostedCluster) (Set, error) {
	set := Set{}
	for _, ref := range References(&hc.Spec) {
		if _, done := set[ref.Key()]; done {
			continue
		}
		source, err := readSource(ctx, live, hc.Namespace, ref.Key())
		if err != nil {
			return nil, err
		}
		set[ref.Key()] = source
	}
	return set, nil
}

func readSource(ctx context.Context, live client.Reader, ns string, key Key) (Object, error) {
	objectKey := client.ObjectKey{Namespace: ns, Name: key.Name}
	if key.Kind == ConfigMap {
		cm, err := read.Optional(ctx, live, objectKey, &corev1.ConfigMap{})
		if err != nil || cm == nil {
			return Object{Missing: true}, err
		}
		data := map[string][]byte{}
		maps.Copy(data, cm.BinaryData)
		for k, v := range cm.Data {
			data[k] = []byte(v)
		}
		return Object{Data: data, labels: cm.Labels, annotations: cm.Annotations}, nil
	}
	secret, err := read.Optional(ctx, live, objectKey, &corev1.Secret{})
	if err != nil || secret == nil {
		return Object{Missing: true}, err
	}
	owners := sets.New[types.UID]()
	for _, owner := range secret.OwnerReferences {
		owners.Insert(owner.UID)
	}
	return Object{Data: secret.Data, labels: secret.Labels, annotations: secret.Annotations, uid: secret.UID, owners: owners}, nil
}

// referencedBy is the annotation on a source object that hcName refers to. An annotation's name may have 63 characters, and the name of a
// HostedCluster that gets a namespace has fewer.
func referencedBy(hcName string) string { return hyperv1.ReferencedResourceAnnotationPrefix + hcName }

// Unmarked are the objects that exist and lack our annotation, which is how people, and we at deletion, see who refers to them.
func (s Set) Unmarked(hcName string) []Key {
	return s.keys(func(_ Key, source Object) bool {
		return !source.Missing && source.annotations[referencedBy(hcName)] != "true"
	})
}

// keys are those of the objects that are wanted, sorted.
func (s Set) keys(wanted func(Key, Object) bool) []Key {
	var keys []Key
	for key, source := range s {
		if wanted(key, source) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return strings.Compare(string(a.Kind)+"/"+a.Name, string(b.Kind)+"/"+b.Name)
	})
	return keys
}

// Mark puts our annotation on an object that the HostedCluster refers to.
func Mark(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, key Key) error {
	return annotate(ctx, c, hc, key, ptr.To("true"))
}

// Unmark takes our annotation off every object in the user's namespace that has it.
func Unmark(ctx context.Context, c client.Client, live client.Reader, hc *hyperv1.HostedCluster) error {
	var errs []error
	for _, k := range []Kind{Secret, ConfigMap} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.GVK())
		if err := live.List(ctx, list, client.InNamespace(hc.Namespace)); err != nil {
			return errors.Join(append(errs, fmt.Errorf("listing %ss in %s: %w", k, hc.Namespace, err))...)
		}
		for _, item := range list.Items {
			if _, ok := item.Annotations[referencedBy(hc.Name)]; ok {
				errs = append(errs, annotate(ctx, c, hc, Key{k, item.Name}, nil))
			}
		}
	}
	return errors.Join(errs...)
}

// annotate sets our reference on a source object. It is a merge patch of this one key, because several HostedClusters annotate the same
// object as the same field owner: with server-side apply, each would take the others' annotation away.
func annotate(ctx context.Context, c client.Client, hc *hyperv1.HostedCluster, key Key, value *string) error {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: hc.Namespace, Name: key.Name}}
	obj.SetGroupVersionKind(key.Kind.GVK())
	err := c.Patch(ctx, obj, patch.Annotation(referencedBy(hc.Name), value))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotating %s %s/%s: %w", key.Kind, hc.Namespace, key.Name, err)
	}
	return nil
}
