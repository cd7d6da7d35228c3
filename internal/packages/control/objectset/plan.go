package objectset

import (
	"fmt"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/engine/phase"
)

func unclassed(phases []v1alpha1.ObjectSetTemplatePhase) []v1alpha1.ObjectSetObject {
	var out []v1alpha1.ObjectSetObject
	for i := range phases {
		if phases[i].Class == "" {
			out = append(out, phases[i].Objects...)
		}
	}
	return out
}

// asked lists the objects of all phases.
func asked(phases []v1alpha1.ObjectSetTemplatePhase, namespace string) []v1alpha1.ControlledObjectReference {
	var out []v1alpha1.ControlledObjectReference
	for i := range phases {
		for j := range phases[i].Objects {
			out = append(out, reference(&phases[i].Objects[j], namespace))
		}
	}
	return out
}

func reference(obj *v1alpha1.ObjectSetObject, namespace string) v1alpha1.ControlledObjectReference {
	kind := obj.Object.GroupVersionKind()
	ref := v1alpha1.ControlledObjectReference{Kind: kind.Kind, Group: kind.Group, Name: obj.Object.GetName(), Namespace: obj.Object.GetNamespace()}
	if ref.Namespace == "" {
		ref.Namespace = namespace
	}
	return ref
}

// duplicates finds objects that are there more than once: the first one wins, the others are violations.
func duplicates(phases []v1alpha1.ObjectSetTemplatePhase) []phase.Violation {
	seen := map[string]struct{}{}
	var out []phase.Violation
	for i := range phases {
		for j := range phases[i].Objects {
			obj := &phases[i].Objects[j].Object
			key := fmt.Sprintf("%s %s/%s", obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName())
			if _, again := seen[key]; again {
				out = append(out, phase.Violation{Position: fmt.Sprintf("Phase %q, %s", phases[i].Name, key), Errors: []string{"Duplicate Object"}})
			}
			seen[key] = struct{}{}
		}
	}
	return out
}

// repeatedNames finds phases with a class whose name another one has, which would share one ObjectSetPhase.
func repeatedNames(phases []v1alpha1.ObjectSetTemplatePhase) []phase.Violation {
	seen := map[string]struct{}{}
	var out []phase.Violation
	for i := range phases {
		if _, again := seen[phases[i].Name]; again {
			out = append(out, phase.Violation{Position: fmt.Sprintf("Phase %q", phases[i].Name), Errors: []string{"Duplicate phase name"}})
		}
		seen[phases[i].Name] = struct{}{}
	}
	return out
}
