package capiadmission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// AddToScheme makes the Scheme, which knows the kinds of Cluster API already, do what their webhooks do.
//
// Default changes an object as the defaulting webhook would when it is created, except for one thing: it leaves the version of machines as it
// is spelled, see Admit. An object that the webhook refuses stays as it is, and Validate says why.
func AddToScheme(scheme *runtime.Scheme) error {
	loaded, err := load()
	if err != nil {
		return err
	}
	for _, obj := range Kinds() {
		h := loaded[reflect.TypeOf(obj)]
		scheme.AddTypeDefaultingFunc(obj, func(obj any) { h.setDefaults(obj.(client.Object)) })
		scheme.AddValidationFunc(obj, func(ctx context.Context, _ operation.Operation, obj, old any) field.ErrorList {
			before, _ := old.(client.Object)
			return h.problems(ctx, obj.(client.Object), before)
		})
	}
	return nil
}

// Admit gives what the webhooks make of an object that is created, and the reasons why they refuse it. Tests of what renders such objects, as
// the goldens of NodePools, ask it whether a stock Cluster API would take them.
//
// They write a release's version with a v before it. On objects that are in use nothing may do that: Cluster API replaces every machine whose
// template has another version, however little it differs. So the renderer decides how to spell it.
func Admit(ctx context.Context, obj client.Object) (client.Object, field.ErrorList) {
	loaded, err := load()
	if err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	h, ok := loaded[reflect.TypeOf(obj)]
	if !ok {
		return obj, nil
	}
	return h.admit(ctx, obj, nil)
}

func (h hooks) setDefaults(obj client.Object) {
	after, err := h.mutated(context.Background(), obj, nil) // the context carries the request only
	if err != nil {
		return
	}
	keepSpelling(obj, after)
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(after).Elem())
}

func (h hooks) problems(ctx context.Context, obj, old client.Object) field.ErrorList {
	_, problems := h.admit(ctx, obj, old)
	return problems
}

func (h hooks) admit(ctx context.Context, obj, old client.Object) (client.Object, field.ErrorList) {
	after, err := h.mutated(ctx, obj, old)
	if err == nil {
		err = h.ask(ctx, h.validate, after, old, nil)
	}
	return after, reasons(err)
}

// mutated is a copy of obj as the mutating webhook leaves it.
func (h hooks) mutated(ctx context.Context, obj, old client.Object) (client.Object, error) {
	after := obj.DeepCopyObject().(client.Object)
	err := h.ask(ctx, h.mutate, obj, old, func(raw, patch []byte) error {
		p, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return err
		}
		if raw, err = p.Apply(raw); err != nil {
			return err
		}
		after = reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
		return json.Unmarshal(raw, after)
	})
	return after, err
}

// refusal is a webhook's.
type refusal struct{ status metav1.Status }

func (r *refusal) Error() string { return r.status.Message }

// ask sends an object to a webhook as the API server would. The error is a *refusal when it is not allowed; patched gets what it wants to change.
func (h hooks) ask(ctx context.Context, hook *admission.Webhook, obj, old client.Object, patched func(raw, patch []byte) error) error {
	raw, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encoding %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "none", Operation: admissionv1.Create, Namespace: obj.GetNamespace(), Name: obj.GetName(), Object: runtime.RawExtension{Raw: raw},
	}}
	if old != nil {
		req.Operation = admissionv1.Update
		if req.OldObject.Raw, err = json.Marshal(old); err != nil {
			return fmt.Errorf("encoding %T %s: %w", old, client.ObjectKeyFromObject(old), err)
		}
	}
	answer := hook.Handle(ctx, req)
	switch {
	case !answer.Allowed && answer.Result != nil:
		return &refusal{*answer.Result}
	case !answer.Allowed:
		return errors.New("refused without a reason")
	case patched != nil && len(answer.Patch) > 0:
		return patched(raw, answer.Patch)
	}
	return nil
}

// reasons are those of a refusal, as the API server words them.
func reasons(err error) field.ErrorList {
	var r *refusal
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &r) || r.status.Details == nil || len(r.status.Details.Causes) == 0:
		return field.ErrorList{field.InternalError(nil, err)}
	}
	list := make(field.ErrorList, 0, len(r.status.Details.Causes))
	for _, c := range r.status.Details.Causes {
		// The value is a part of the message.
		reason := &field.Error{Type: field.ErrorType(c.Type), Field: c.Field, BadValue: field.OmitValueType{}}
		if reason.Type != field.ErrorTypeRequired && reason.Type != field.ErrorTypeForbidden {
			reason.Type = field.ErrorTypeInvalid
		}
		reason.Detail = strings.TrimPrefix(c.Message, reason.Type.String()+": ")
		list = append(list, reason)
	}
	return list
}

// keepSpelling takes the version of machines from before when after has it only with a v.
func keepSpelling(before, after client.Object) {
	b, a := version(before), version(after)
	if b != nil && a != nil && *a == "v"+*b {
		*a = *b
	}
}

// version is where an object has the version of its machines, nil when nowhere.
func version(obj client.Object) *string {
	switch o := obj.(type) {
	case *clusterv1.MachineDeployment:
		return &o.Spec.Template.Spec.Version
	case *clusterv1.MachineSet:
		return &o.Spec.Template.Spec.Version
	case *clusterv1.MachinePool:
		return &o.Spec.Template.Spec.Version
	case *clusterv1.Machine:
		return &o.Spec.Version
	}
	return nil
}
