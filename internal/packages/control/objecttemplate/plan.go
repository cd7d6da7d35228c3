package objecttemplate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/gotemplate"
)

func (r *Reconciler) render(ctx context.Context, ot *v1alpha1.ObjectTemplate, config map[string]any) (*unstructured.Unstructured, error) {
	bad := func(err error) error {
		out := &invalid{reason: v1alpha1.ReasonTemplateError, err: errors.New(strings.Replace(err.Error(), `executing "" `, "", 1))}
		if errors.Is(err, gotemplate.ErrTime) {
			out.after = slowRetry
		}
		return out
	}
	environment, err := r.Environment.Get(ctx, ot.Namespace)
	if err != nil {
		return nil, fmt.Errorf("asking for the environment: %w", err)
	}
	data, err := json.Marshal(map[string]any{"config": config, "environment": environment})
	if err != nil {
		return nil, bad(err)
	}
	input := sha256.Sum256(append([]byte(ot.Spec.Template+"\x00"), data...))
	if known, ok := r.failures.Load(ot.UID); ok {
		last := known.(failed)
		if last.input == input && (last.until.IsZero() || r.Clock.Now().Before(last.until)) {
			return nil, bad(last.err)
		}
	}
	var obj *unstructured.Unstructured
	err = r.Share.Do(ctx, tenantOf(ot), func() error {
		var err error
		obj, err = manifest(ctx, ot.Spec.Template, data)
		return err
	})
	var busy *gotemplate.BusyError
	switch {
	case errors.As(err, &busy) || ctx.Err() != nil:
		return nil, err
	case err != nil:
		last := failed{input: input, err: err}
		if errors.Is(err, gotemplate.ErrTime) {
			last.until = r.Clock.Now().Add(slowRetry - time.Second)
		}
		r.failures.Store(ot.UID, last)
		return nil, bad(err)
	}
	r.failures.Delete(ot.UID)
	found, err := r.placed(ot, obj)
	if err != nil {
		return nil, err
	}
	if found.problem != "" {
		out := &invalid{reason: v1alpha1.ReasonSourceError, err: fmt.Errorf("%s %s: %s", obj.GetKind(), client.ObjectKeyFromObject(obj), found.problem)}
		if found.noKind {
			out.after = retryRefused
		}
		return nil, out
	}
	return obj, nil
}

// manifest renders a template that gives the YAML of one object. data is JSON.
func manifest(ctx context.Context, text string, data []byte) (*unstructured.Unstructured, error) {
	plain := map[string]any{}
	if err := json.Unmarshal(data, &plain); err != nil {
		return nil, err
	}
	rendered, err := gotemplate.Execute(ctx, text, plain)
	if err != nil {
		return nil, err
	}
	asJSON, err := gotemplate.YAMLToJSON(rendered)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(asJSON); err != nil {
		return nil, gotemplate.Short(err)
	}
	return obj, nil
}

// place is what is found out about where an object is.
type place struct {
	// problem says what is wrong with it; empty when nothing is.
	problem string
	// noKind says that the API server doesn't have the kind yet. No event tells when it does.
	noKind bool
}

// placed fills in the namespace of an object and says what is wrong with where it is.
func (r *Reconciler) placed(ot *v1alpha1.ObjectTemplate, obj *unstructured.Unstructured) (place, error) {
	kind := obj.GroupVersionKind()
	mapping, err := r.Engine.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return place{problem: fmt.Sprintf("%s not registered on the api server.", kind), noKind: true}, nil
	}
	if err != nil {
		return place{}, fmt.Errorf("finding kind %s: %w", kind, err)
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	switch {
	case len(obj.GetOwnerReferences()) > 0:
		return place{problem: "Object must not have a owner reference."}, nil
	case ot.Namespace != "" && !namespaced:
		return place{problem: "Must be namespaced scoped when part of an non-cluster-scoped API."}, nil
	case ot.Namespace != "" && obj.GetNamespace() != "" && obj.GetNamespace() != ot.Namespace:
		return place{problem: "Must stay within the same namespace."}, nil
	case ot.Namespace == "" && namespaced && obj.GetNamespace() == "":
		return place{problem: "Object doesn't have a namespace and no default is provided."}, nil
	}
	if ot.Namespace != "" {
		obj.SetNamespace(ot.Namespace)
	}
	return place{}, nil
}
