package render

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/violation"
)

// Rendered is what a package gives in a context.
type Rendered struct {
	// Objects that no condition leaves out, in order, with the annotations of package files.
	Objects []Object
	// Files that no path filter leaves out, with what templates gave in their place.
	Files load.Files
	// dropped are the documents that a condition leaves out, by path and index.
	dropped map[string]map[int]bool
}

// Render executes a package in a context, within five seconds.
func Render(ctx context.Context, p *load.Package, c Context) (*Rendered, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, errTime)
	defer cancel()
	generic, err := c.generic()
	if err != nil {
		return nil, err
	}
	e, err := newExpressions(ctx, generic, p.Manifest.Spec.Filter.Conditions)
	if err != nil {
		return nil, err
	}
	files, err := templates(ctx, p, generic, e)
	if err != nil {
		return nil, err
	}
	objects, err := objectsOf(p, files)
	if err != nil {
		return nil, err
	}
	if err := checkObjects(p, objects); err != nil {
		return nil, err
	}
	out := &Rendered{dropped: map[string]map[int]bool{}}
	if out.Files, err = keptPaths(ctx, p, files, e); err != nil {
		return nil, err
	}
	for _, o := range objects {
		if _, kept := out.Files[o.Path]; !kept {
			continue
		}
		keep, err := o.kept(ctx, p, e)
		if err != nil {
			return nil, err
		}
		if !keep {
			if out.dropped[o.Path] == nil {
				out.dropped[o.Path] = map[int]bool{}
			}
			out.dropped[o.Path][o.Index] = true
			continue
		}
		out.Objects = append(out.Objects, o)
	}
	return out, nil
}

// Static checks the objects of a package that has no tests to check them: those of files that are no templates.
func Static(p *load.Package) error {
	if len(p.Manifest.Test.Template) > 0 {
		return nil
	}
	objects, err := objectsOf(p, p.Files)
	if err != nil {
		return err
	}
	return checkObjects(p, objects)
}

func (o Object) kept(ctx context.Context, p *load.Package, e *expressions) (bool, error) {
	expression, ok := o.GetAnnotations()[packagesv1.ConditionAnnotation]
	if !ok || strings.TrimSpace(expression) == "" {
		return true, nil
	}
	keep, err := e.eval(ctx, expression)
	if err != nil {
		return false, &violation.Error{Reason: violation.InvalidCondition, Path: o.Path, Index: &o.Index, Component: p.Component, Details: err.Error()}
	}
	return keep, nil
}

// Template assigns objects to phases. instance is the name of the Package; labels with it and the package's name are added to all objects.
func (r *Rendered) Template(p *load.Package, instance string) (packagesv1.ObjectSetTemplateSpec, error) {
	out := packagesv1.ObjectSetTemplateSpec{AvailabilityProbes: p.Manifest.Spec.AvailabilityProbes}
	byPhase := map[string][]packagesv1.ObjectSetObject{}
	for _, o := range r.Objects {
		phase, object, err := o.forPhase(Labels(p, instance))
		if err != nil {
			return out, fmt.Errorf("%s: %w", o.Path, err)
		}
		byPhase[phase] = append(byPhase[phase], object)
	}
	for _, phase := range p.Manifest.Spec.Phases {
		if objects := byPhase[phase.Name]; len(objects) > 0 {
			out.Phases = append(out.Phases, packagesv1.ObjectSetTemplatePhase{Name: phase.Name, Class: phase.Class, Objects: objects})
		}
	}
	return out, nil
}

// Labels are on everything that comes from a package.
func Labels(p *load.Package, instance string) map[string]string {
	return map[string]string{packagesv1.PackageLabel: p.Manifest.Name, packagesv1.InstanceLabel: instance}
}

// ownAnnotations are for the package alone.
var ownAnnotations = []string{packagesv1.PhaseAnnotation, packagesv1.ConditionMapAnnotation, packagesv1.ConditionAnnotation, packagesv1.CollisionProtectionAnnotation}

func (o Object) forPhase(extra map[string]string) (phase string, out packagesv1.ObjectSetObject, err error) {
	obj := &unstructured.Unstructured{Object: o.DeepCopy().Object}
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for k, v := range extra {
		labels[k] = v
	}
	obj.SetLabels(labels)
	annotations := obj.GetAnnotations()
	if out.ConditionMappings, err = conditionMappings(annotations[packagesv1.ConditionMapAnnotation]); err != nil {
		return "", out, err
	}
	phase = annotations[packagesv1.PhaseAnnotation]
	out.CollisionProtection = packagesv1.CollisionProtection(annotations[packagesv1.CollisionProtectionAnnotation])
	for _, name := range ownAnnotations {
		delete(annotations, name)
	}
	if len(annotations) == 0 {
		annotations = nil // the map goes, too
	}
	obj.SetAnnotations(annotations)
	out.Object = *obj
	return phase, out, nil
}

// FixtureFiles are the files as tests compare them: rendered, without documents that a condition leaves out, and without empty files.
func (r *Rendered) FixtureFiles() load.Files {
	out := load.Files{}
	for name, data := range r.Files {
		if !load.IsYAML(name) {
			continue
		}
		if dropped := r.dropped[name]; len(dropped) > 0 {
			var kept []string
			for i, doc := range documents(data) {
				if !dropped[i] {
					kept = append(kept, string(doc.text))
				}
			}
			text := strings.Join(kept, "\n---\n")
			if text != "" && strings.HasSuffix(string(data), "\n") && !strings.HasSuffix(text, "\n") {
				text += "\n" // it was the last document's
			}
			data = []byte(text)
		}
		if len(strings.TrimSpace(string(data))) > 0 {
			out[name] = data
		}
	}
	return out
}
