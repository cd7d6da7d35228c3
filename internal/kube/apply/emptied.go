package apply

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// send applies desired, and again in two parts where it has to. Should we die in between, the hash is missing, so that the next pass goes on.
func (a *Applier) send(ctx context.Context, desired *unstructured.Unstructured) error {
	write := func(u *unstructured.Unstructured) error {
		writes.WithLabelValues(desired.GetKind(), "apply", a.owner).Inc()
		return a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(a.owner), client.ForceOwnership)
	}
	return InTwoParts(desired.DeepCopy(), write, func(without *unstructured.Unstructured) { // an answer is read into what was sent
		annotations := without.GetAnnotations()
		delete(annotations, HashAnnotation)
		without.SetAnnotations(annotations)
	})
}

// InTwoParts applies desired by write, which reads the answer into what it is given, and in two parts where it has to.
//
// When an apply takes the last of our fields away from an object within a custom resource, and still asks for that object, empty, the API server makes null
// of it and then refuses the null (structured-merge-diff, as of Kubernetes 1.36). What is refused for that reason is applied without such objects first, and
// then whole. unfinished marks the first part as such, for whoever finds it when we died in between; nil where whoever comes next compares all fields.
func InTwoParts(desired *unstructured.Unstructured, write func(*unstructured.Unstructured) error, unfinished func(*unstructured.Unstructured)) error {
	whole := desired.DeepCopy()
	refused := write(desired)
	without := WithoutEmptied(whole, refused)
	if without == nil {
		return refused
	}
	if unfinished != nil {
		unfinished(without)
	}
	if err := write(without); err != nil {
		return refused // which says what is asked for
	}
	if whole.GetResourceVersion() != "" {
		whole.SetResourceVersion(without.GetResourceVersion())
	}
	err := write(whole)
	desired.Object = whole.Object
	return err
}

// WithoutEmptied is desired without the empty objects that an API server refused as null; nil when that isn't what it refused.
func WithoutEmptied(desired *unstructured.Unstructured, refused error) *unstructured.Unstructured {
	var status *apierrors.StatusError
	if !apierrors.IsInvalid(refused) || !errors.As(refused, &status) || status.ErrStatus.Details == nil {
		return nil
	}
	without, dropped := desired.DeepCopy(), false
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type == metav1.CauseTypeTypeInvalid {
			dropped = dropEmpty(without.Object, strings.Split(cause.Field, ".")) || dropped
		}
	}
	if !dropped {
		return nil
	}
	return without
}

// dropEmpty removes the empty object at a path, and those around it that have nothing else. It says whether there was one.
func dropEmpty(in map[string]any, path []string) bool {
	inner, ok := in[path[0]].(map[string]any)
	switch {
	case !ok:
		return false // not an object, or in a list
	case len(path) > 1 && !dropEmpty(inner, path[1:]), len(path) == 1 && len(inner) > 0:
		return false
	case len(inner) == 0:
		delete(in, path[0])
	}
	return true
}
