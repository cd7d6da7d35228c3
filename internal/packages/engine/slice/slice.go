// Package slice cuts phases that are too large for one object into ObjectSlices, and removes slices that nobody needs.
package slice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/revision"
	"hcp.internal/platform/internal/packages/engine/scope"
)

// Strategy says how phases are cut; it is the value of the annotation packages.package-operator.run/chunking-strategy.
type Strategy string

const (
	// NoOp cuts nothing.
	NoOp Strategy = "NoOp"
	// EachObject makes a slice of every object.
	EachObject Strategy = "EachObject"
	// BinpackNextFit fills slices up to chunkSize, in order. It is the default.
	BinpackNextFit Strategy = "BinpackNextFit"
)

// chunkSize is how much JSON a slice holds at most; one object that is larger has a slice of its own. API servers take 1.5 MiB.
const chunkSize = 1 << 20

// ErrStrategy is what Chunks returns, wrapped, for a strategy that there is not.
var ErrStrategy = errors.New("unknown strategy")

// Chunks cuts the objects of a phase. nil means that the phase stays as it is.
func Chunks(strategy Strategy, objects []v1alpha1.ObjectSetObject) ([][]v1alpha1.ObjectSetObject, error) {
	switch strategy {
	case NoOp:
		return nil, nil
	case EachObject:
		var out [][]v1alpha1.ObjectSetObject
		for i := range objects {
			out = append(out, objects[i:i+1:i+1])
		}
		return out, nil
	case BinpackNextFit, "":
		return binpack(objects)
	}
	return nil, fmt.Errorf("annotation %s: %w %.100q, must be %s, %s or %s", v1alpha1.ChunkingStrategyAnnotation, ErrStrategy, strategy, NoOp, EachObject, BinpackNextFit)
}

// maxTogether is how much JSON phases may hold that no slice takes. Each may be small enough and all together too much for one object.
const maxTogether = 5 << 18

// Plan cuts phases: for each, what Chunks gives, and one slice for the largest of the others until what is left fits into one object.
func Plan(strategy Strategy, phases []v1alpha1.ObjectSetTemplatePhase) ([][][]v1alpha1.ObjectSetObject, error) {
	out, sizes, total := make([][][]v1alpha1.ObjectSetObject, len(phases)), make([]int, len(phases)), 0
	for i := range phases {
		chunks, err := Chunks(strategy, phases[i].Objects)
		if err != nil {
			return nil, err
		}
		if out[i] = chunks; chunks != nil || strategy == NoOp {
			continue
		}
		data, err := json.Marshal(phases[i].Objects)
		if err != nil {
			return nil, fmt.Errorf("encoding phase %s: %w", phases[i].Name, err)
		}
		sizes[i] = len(data)
		total += len(data)
	}
	for total > maxTogether {
		largest := 0
		for i := range sizes {
			if sizes[i] > sizes[largest] {
				largest = i
			}
		}
		out[largest] = [][]v1alpha1.ObjectSetObject{phases[largest].Objects}
		total -= sizes[largest]
		sizes[largest] = 0
	}
	return out, nil
}

func binpack(objects []v1alpha1.ObjectSetObject) ([][]v1alpha1.ObjectSetObject, error) {
	var out [][]v1alpha1.ObjectSetObject
	first, size := 0, 0
	for i := range objects {
		data, err := json.Marshal(objects[i])
		if err != nil {
			return nil, fmt.Errorf("encoding object %d: %w", i, err)
		}
		if i > first && size+len(data) > chunkSize {
			out = append(out, objects[first:i:i])
			first, size = i, 0
		}
		size += len(data)
	}
	if len(out) == 0 {
		return nil, nil // it fits
	}
	return append(out, objects[first:]), nil
}

// Slicer keeps the slices of ObjectDeployments of one scope.
type Slicer struct {
	Scope scope.Scope
	// Client is of that scope, and reads slices without a cache.
	Client client.Client
}

// Cut moves objects of the template's phases into slices, which it creates, and returns the template that refers to them. The deployment
// must exist, as it owns the slices.
func (s Slicer) Cut(ctx context.Context, od *v1alpha1.ObjectDeployment, strategy Strategy, template v1alpha1.ObjectSetTemplateSpec) (v1alpha1.ObjectSetTemplateSpec, error) {
	out := *template.DeepCopy()
	plan, err := Plan(strategy, out.Phases)
	if err != nil {
		return out, err
	}
	for i := range out.Phases {
		p, chunks := &out.Phases[i], plan[i]
		if chunks == nil {
			continue
		}
		p.Slices = nil
		for _, chunk := range chunks {
			name, err := s.ensure(ctx, od, chunk)
			if err != nil {
				return out, fmt.Errorf("phase %s: %w", p.Name, err)
			}
			p.Slices = append(p.Slices, name)
		}
		p.Objects = nil
	}
	return out, nil
}

// maxCollisions bounds how many names are tried. A second one is already unlikely.
const maxCollisions = 100

// ensure returns the name of a slice with these objects.
func (s Slicer) ensure(ctx context.Context, od *v1alpha1.ObjectDeployment, objects []v1alpha1.ObjectSetObject) (string, error) {
	for collisions := range int32(maxCollisions) {
		slice := &v1alpha1.ObjectSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: od.Namespace, Name: revision.SliceName(od.Name, revision.Hash(objects, &collisions)),
				Labels: map[string]string{v1alpha1.SliceOwnerLabel: od.Name},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: v1alpha1.GroupVersion.String(), Kind: s.Scope.Kind("ObjectDeployment"), Name: od.Name, UID: od.UID,
					Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
				}},
			},
			Objects: objects,
		}
		err := s.Client.Create(ctx, slice.DeepCopy(), client.FieldOwner(v1alpha1.FieldOwner))
		if err == nil {
			return slice.Name, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("creating slice %s: %w", slice.Name, err)
		}
		there := &v1alpha1.ObjectSlice{}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(slice), there); err != nil {
			return "", fmt.Errorf("reading slice %s: %w", slice.Name, err)
		}
		if metav1.IsControlledBy(there, od) && equality.Semantic.DeepEqual(defaulted(there.Objects), defaulted(objects)) {
			return slice.Name, nil
		}
	}
	return "", fmt.Errorf("slices of %s: %d names are taken", od.Name, maxCollisions)
}

// defaulted fills in what the API server would.
func defaulted(objects []v1alpha1.ObjectSetObject) []v1alpha1.ObjectSetObject {
	out := make([]v1alpha1.ObjectSetObject, len(objects))
	for i := range objects {
		out[i] = objects[i]
		if out[i].CollisionProtection == "" {
			out[i].CollisionProtection = v1alpha1.CollisionProtectionPrevent
		}
	}
	return out
}

// Collect deletes the slices of a deployment that neither its template nor any of its revisions refers to.
func (s Slicer) Collect(ctx context.Context, od *v1alpha1.ObjectDeployment) error {
	used := map[string]struct{}{}
	note := func(phases []v1alpha1.ObjectSetTemplatePhase) {
		for _, p := range phases {
			for _, name := range p.Slices {
				used[name] = struct{}{}
			}
		}
	}
	note(od.Spec.Template.Spec.Phases)
	selector, err := metav1.LabelSelectorAsSelector(&od.Spec.Selector)
	if err != nil {
		return fmt.Errorf("spec.selector of %s: %w", od.Name, err)
	}
	sets := &v1alpha1.ObjectSetList{}
	if err := s.Client.List(ctx, sets, client.InNamespace(od.Namespace)); err != nil {
		return fmt.Errorf("listing revisions of %s: %w", od.Name, err)
	}
	for i := range sets.Items {
		os := &sets.Items[i]
		if metav1.IsControlledBy(os, od) || selector.Matches(labels.Set(os.Labels)) { // its own may have lost their labels
			note(os.Spec.Phases)
		}
	}
	// Metadata is enough, and slices are large.
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(s.Scope.GroupVersionKind("ObjectSliceList"))
	if err := s.Client.List(ctx, list, client.InNamespace(od.Namespace), client.MatchingLabels{v1alpha1.SliceOwnerLabel: od.Name}); err != nil {
		return fmt.Errorf("listing slices of %s: %w", od.Name, err)
	}
	var errs []error
	for i := range list.Items {
		slice := &list.Items[i]
		if _, needed := used[slice.Name]; needed || !metav1.IsControlledBy(slice, od) {
			continue
		}
		slice.SetGroupVersionKind(s.Scope.GroupVersionKind("ObjectSlice"))
		if err := s.Client.Delete(ctx, slice, client.Preconditions{UID: &slice.UID}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting slice %s: %w", slice.Name, err))
		}
	}
	return errors.Join(errs...)
}
