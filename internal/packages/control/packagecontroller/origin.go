package packagecontroller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/engine/scope"
)

// origin is what a Package was, or is to be, unpacked from: hashes of its spec and, where what it gives depends on them, of its labels and annotations and of
// the environment. status.unpackedHash has it as spec[.metadata][-environment].
type origin struct{ spec, metadata, environment string }

func parseOrigin(text string) origin {
	var o origin
	text, o.environment, _ = strings.Cut(text, "-")
	o.spec, o.metadata, _ = strings.Cut(text, ".")
	return o
}

func (o origin) String() string {
	out := o.spec
	if o.metadata != "" {
		out += "." + o.metadata
	}
	if o.environment != "" {
		out += "-" + o.environment
	}
	return out
}

// satisfies tells whether what was unpacked from o is what want gives, too. What it does not depend on may differ.
func (o origin) satisfies(want origin) bool {
	return o.spec == want.spec && (o.metadata == "" || o.metadata == want.metadata) && (o.environment == "" || o.environment == want.environment)
}

// outdated tells that what is installed is what the same spec gave with other labels and annotations, or in another environment.
func (o origin) outdated(want origin) bool { return o.spec == want.spec && !o.satisfies(want) }

// rerendered says why what is installed is rendered anew.
func (o origin) rerendered(want origin) string {
	if o.environment == "" || o.environment == want.environment {
		return relabelled
	}
	return rerendered
}

// target is what an attempt to get from o to want is known by: labels and annotations that nothing depends on, as far as is known, make no new one.
func (o origin) target(want origin) origin {
	if o.metadata == "" {
		want.metadata = ""
	}
	return want
}

// installedFrom is what a Package was unpacked from. Packages of a rollout have their turns: what the rollout labels it labels in all groups at once, and that
// must not render the whole fleet anew. They keep what their labels gave until something else changes.
func installedFrom(p *v1alpha1.Package) origin {
	out := parseOrigin(p.Status.UnpackedHash)
	if inTurn(p) {
		out.metadata = ""
	}
	return out
}

// originOf is what a Package is to be unpacked from in an environment.
func (r *Reconciler) originOf(p *v1alpha1.Package, environment string) (out origin, err error) {
	out.environment = environment
	if out.spec, err = r.specHash(p.Spec); err != nil {
		return origin{}, err
	}
	out.metadata, err = metadataHash(p)
	return out, err
}

// metadataHash is of the labels and annotations that templates see, without kubectl's and our own.
func metadataHash(p client.Object) (string, error) {
	raw, err := json.Marshal([]map[string]string{foreign(p.GetLabels()), foreign(p.GetAnnotations())})
	if err != nil {
		return "", fmt.Errorf("encoding labels and annotations: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8]), nil
}

func foreign(all map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range all {
		domain, _, _ := strings.Cut(name, "/")
		if name != corev1.LastAppliedConfigAnnotation && domain != v1alpha1.GroupVersion.Group && !strings.HasSuffix(domain, "."+v1alpha1.GroupVersion.Group) {
			out[name] = value
		}
	}
	return out
}

// metadataUse finds the word package in templates and expressions, with what is before it and what is read of it.
var metadataUse = regexp.MustCompile("([.\"'`]|\\b)package(\\.metadata(?:\\.[A-Za-z]+)?|[-.\\w]+|\\[)?")

// usesMetadata tells whether what a package gives may depend on the Package's labels and annotations. In doubt it does.
func usesMetadata(p *load.Package) bool {
	for _, c := range p.Manifest.Spec.Filter.Conditions {
		if mentionsMetadata(c.Expression) {
			return true
		}
	}
	for _, c := range p.Manifest.Spec.Filter.Paths {
		if mentionsMetadata(c.Expression) {
			return true
		}
	}
	for name, data := range p.Files {
		if (load.IsTemplate(name) || load.IsYAML(name)) && mentionsMetadata(string(data)) {
			return true
		}
	}
	return false
}

func mentionsMetadata(text string) bool {
	for _, m := range metadataUse.FindAllStringSubmatch(text, -1) {
		before, after := m[1], m[2]
		switch {
		case after == ".metadata.name", after == ".metadata.namespace":
		case strings.HasPrefix(after, ".metadata"), after == "[":
			return true
		case after == "" && before != "": // all of it; without a dot or a quote it is a word of some text
			return true
		}
	}
	return false
}

// metadataChanged passes Packages whose labels or annotations changed, if what they give depends on them.
func metadataChanged(s scope.Scope) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		p, ok := s.Namespaced(e.ObjectNew).(*v1alpha1.Package)
		return ok && installedFrom(p).metadata != "" && !(maps.Equal(foreign(e.ObjectOld.GetLabels()), foreign(p.Labels)) &&
			maps.Equal(foreign(e.ObjectOld.GetAnnotations()), foreign(p.Annotations)))
	}}
}
