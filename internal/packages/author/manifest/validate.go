package manifest

import (
	"context"
	"fmt"
	"regexp"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "hcp.internal/api/packages/manifests/v1alpha1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/violation"
	"hcp.internal/platform/internal/packages/engine/probe"
)

// maxList bounds every list of a manifest. The largest known package has some forty images.
const maxList = 1000

// maxPhaseName bounds names of phases, which are in messages.
const maxPhaseName = 253

// Validate checks a manifest. All of its mistakes are returned.
func Validate(ctx context.Context, m *v1alpha1.PackageManifest) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if m.Name == "" {
		errs = append(errs, field.Required(field.NewPath("metadata", "name"), ""))
	} else {
		for _, problem := range validation.IsValidLabelValue(m.Name) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), m.Name, problem))
		}
	}
	errs = append(errs, validateScopes(m.Spec.Scopes, spec.Child("scopes"))...)
	errs = append(errs, validatePhases(m.Spec.Phases, spec.Child("phases"))...)
	errs = append(errs, validateProbes(m.Spec.AvailabilityProbes, spec.Child("availabilityProbes"))...)
	errs = append(errs, validateImages(m.Spec.Images, spec.Child("images"))...)
	errs = append(errs, validateConstraints(m.Spec.Constraints, spec.Child("constraints"))...)
	errs = append(errs, validateFilter(m.Spec.Filter, spec.Child("filter"))...)
	errs = append(errs, validateDependencies(m.Spec, spec)...)
	schema, schemaErrs := NewSchema(ctx, m.Spec.Config.OpenAPIV3Schema)
	errs = append(errs, schemaErrs...)
	return append(errs, validateTest(ctx, m.Test, schema, field.NewPath("test"))...)
}

func validateScopes(scopes []v1alpha1.PackageManifestScope, path *field.Path) field.ErrorList {
	if len(scopes) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	for i, s := range scopes {
		if s != v1alpha1.PackageManifestScopeCluster && s != v1alpha1.PackageManifestScopeNamespaced {
			errs = append(errs, field.NotSupported(path.Index(i), s, []v1alpha1.PackageManifestScope{v1alpha1.PackageManifestScopeCluster, v1alpha1.PackageManifestScopeNamespaced}))
		}
		if i > maxList {
			return append(errs, field.TooMany(path, len(scopes), maxList))
		}
	}
	return errs
}

func validatePhases(phases []v1alpha1.PackageManifestPhase, path *field.Path) field.ErrorList {
	if len(phases) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(phases) > maxList {
		return field.ErrorList{field.TooMany(path, len(phases), maxList)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, p := range phases {
		name := path.Index(i).Child("name")
		switch {
		case p.Name == "":
			errs = append(errs, field.Required(name, ""))
		case seen[p.Name]:
			errs = append(errs, field.Invalid(name, p.Name, "must be unique"))
		case len(p.Name) > maxPhaseName:
			errs = append(errs, field.TooLong(name, "", maxPhaseName))
		case p.Class != "":
			// It is part of an object's name.
			for _, problem := range validation.IsDNS1123Label(p.Name) {
				errs = append(errs, field.Invalid(name, p.Name, problem+"; without a class any name will do"))
			}
		}
		seen[p.Name] = true
		for _, problem := range validation.IsValidLabelValue(p.Class) {
			errs = append(errs, field.Invalid(path.Index(i).Child("class"), p.Class, problem))
		}
	}
	return errs
}

func validateProbes(probes []packagesv1.ObjectSetProbe, path *field.Path) field.ErrorList {
	if len(probes) > maxList {
		return field.ErrorList{field.TooMany(path, len(probes), maxList)}
	}
	var errs field.ErrorList
	for i, p := range probes {
		if len(p.Probes) == 0 {
			errs = append(errs, field.Required(path.Index(i).Child("probes"), ""))
			continue
		}
		if _, err := probe.Parse([]packagesv1.ObjectSetProbe{p}); err != nil {
			errs = append(errs, field.Invalid(path.Index(i), "", err.Error()))
		}
	}
	return errs
}

func validateImages(images []v1alpha1.PackageManifestImage, path *field.Path) field.ErrorList {
	if len(images) > maxList {
		return field.ErrorList{field.TooMany(path, len(images), maxList)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, image := range images {
		errs = append(errs, uniqueName(image.Name, seen, path.Index(i).Child("name"))...)
		if image.Image == "" {
			errs = append(errs, field.Invalid(path.Index(i).Child("image"), image.Image, "must be non empty"))
		}
	}
	return errs
}

func uniqueName(name string, seen map[string]bool, path *field.Path) field.ErrorList {
	defer func() { seen[name] = true }()
	switch {
	case name == "":
		return field.ErrorList{field.Invalid(path, name, "must be non empty")}
	case seen[name]:
		return field.ErrorList{field.Invalid(path, name, "must be unique")}
	}
	return nil
}

func validateConstraints(constraints []v1alpha1.PackageManifestConstraint, path *field.Path) field.ErrorList {
	if len(constraints) > maxList {
		return field.ErrorList{field.TooMany(path, len(constraints), maxList)}
	}
	var errs field.ErrorList
	platform := func(name v1alpha1.PlatformName, path *field.Path) {
		if name != v1alpha1.Kubernetes && name != v1alpha1.OpenShift {
			errs = append(errs, field.NotSupported(path, name, []v1alpha1.PlatformName{v1alpha1.Kubernetes, v1alpha1.OpenShift}))
		}
	}
	for i, c := range constraints {
		for j, name := range c.Platform {
			platform(name, path.Index(i).Child("platform").Index(j))
		}
		version := c.PlatformVersion
		if version == nil {
			continue
		}
		at := path.Index(i).Child("platformVersion")
		if version.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			platform(version.Name, at.Child("name"))
		}
		if version.Range == "" {
			errs = append(errs, field.Required(at.Child("range"), ""))
		} else if _, err := semver.NewConstraint(version.Range); err != nil {
			errs = append(errs, field.Invalid(at.Child("range"), version.Range, "improper constraint"))
		}
	}
	return errs
}

// conditionName is what names of conditions look like, so that expressions can use them.
var conditionName = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

func validateFilter(f v1alpha1.PackageManifestFilter, path *field.Path) field.ErrorList {
	if len(f.Conditions) > maxList || len(f.Paths) > maxList {
		return field.ErrorList{field.TooMany(path, max(len(f.Conditions), len(f.Paths)), maxList)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, c := range f.Conditions {
		at := path.Child("conditions").Index(i)
		switch {
		case !conditionName.MatchString(c.Name):
			errs = append(errs, field.Invalid(at.Child("name"), c.Name, "must match "+conditionName.String()))
		case seen[c.Name]:
			errs = append(errs, field.Invalid(at.Child("name"), c.Name, "must be unique"))
		}
		seen[c.Name] = true
		if c.Expression == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
		}
	}
	for i, p := range f.Paths {
		at := path.Child("paths").Index(i)
		if !validGlob(p.Glob) {
			errs = append(errs, field.Invalid(at.Child("glob"), p.Glob, "must be a pattern of paths"))
		}
		if p.Expression == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
		}
	}
	return errs
}

func validateDependencies(spec v1alpha1.PackageManifestSpec, path *field.Path) field.ErrorList {
	if n := max(len(spec.Repositories), len(spec.Dependencies)); n > maxList {
		return field.ErrorList{field.TooMany(path.Child("dependencies"), n, maxList)}
	}
	var errs field.ErrorList
	for i, r := range spec.Repositories {
		if (r.File == "") == (r.Image == "") {
			errs = append(errs, field.Invalid(path.Child("repositories").Index(i), "", "must have either file or image"))
		}
	}
	seen := map[string]bool{}
	for i, d := range spec.Dependencies {
		at := path.Child("dependencies").Index(i).Child("image")
		if d.Image == nil {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		errs = append(errs, uniqueName(d.Image.Name, seen, at.Child("name"))...)
		if d.Image.Package == "" {
			errs = append(errs, field.Required(at.Child("package"), ""))
		}
		if _, err := semver.NewConstraint(d.Image.Range); d.Image.Range != "" && err != nil {
			errs = append(errs, field.Invalid(at.Child("range"), d.Image.Range, "improper constraint"))
		}
	}
	return errs
}

func validateTest(ctx context.Context, test v1alpha1.PackageManifestTest, schema *Schema, path *field.Path) field.ErrorList {
	if len(test.Template) > maxList {
		return field.ErrorList{field.TooMany(path.Child("template"), len(test.Template), maxList)}
	}
	var errs field.ErrorList
	for i, c := range test.Template {
		at := path.Child("template").Index(i)
		for _, problem := range validation.IsConfigMapKey(c.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), c.Name, problem))
		}
		if schema != nil && c.Context.Config != nil {
			_, more := schema.Admit(ctx, c.Context.Config.Raw, at.Child("context", "config"))
			errs = append(errs, more...)
		}
	}
	if k := test.Kubeconform; k != nil && k.KubernetesVersion == "" {
		errs = append(errs, field.Required(path.Child("kubeconform", "kubernetesVersion"), ""))
	}
	return errs
}

// digest is what a digest looks like in a lock file.
var digest = regexp.MustCompile(`^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}$`)

// Doubts are what of a valid manifest is seldom meant. Packages with it are around, and install.
func Doubts(path string, m *v1alpha1.PackageManifest) []string {
	var out []string
	for i, p := range m.Spec.Phases {
		if problems := validation.IsDNS1123Label(p.Name); len(problems) > 0 {
			out = append(out, fmt.Sprintf("%s: spec.phases[%d].name: %.64q can't have a class: %s", path, i, p.Name, problems[0]))
		}
	}
	seen := map[string]bool{}
	for i, c := range m.Test.Template {
		if seen[c.Name] {
			out = append(out, fmt.Sprintf("%s: test.template[%d].name: %q is there twice: both test cases use the same fixtures, and --config-testcase means the first", path, i, c.Name))
		}
		seen[c.Name] = true
	}
	return out
}

// LockDoubts is Doubts for a lock file.
func LockDoubts(path string, l *v1alpha1.PackageManifestLock) []string {
	var out []string
	doubt := func(list string, i int, dig string) {
		if dig != "" && !digest.MatchString(dig) {
			out = append(out, fmt.Sprintf("%s: spec.%s[%d].digest: no registry has an image %.80q: it must be a digest such as sha256:…; run kubectl package update", path, list, i, dig))
		}
	}
	for i, image := range l.Spec.Images {
		doubt("images", i, image.Digest)
	}
	for i, d := range l.Spec.Dependencies {
		doubt("dependencies", i, d.Digest)
	}
	return out
}

// ValidateLock checks a lock file.
func ValidateLock(l *v1alpha1.PackageManifestLock) field.ErrorList {
	var errs field.ErrorList
	images := field.NewPath("spec", "images")
	if n := max(len(l.Spec.Images), len(l.Spec.Dependencies)); n > maxList {
		return field.ErrorList{field.TooMany(images, n, maxList)}
	}
	entry := func(name, image, dig string, seen map[string]bool, path *field.Path) {
		errs = append(errs, uniqueName(name, seen, path.Child("name"))...)
		if image == "" {
			errs = append(errs, field.Invalid(path.Child("image"), image, "must be non empty"))
		}
		if dig == "" {
			errs = append(errs, field.Invalid(path.Child("digest"), dig, "must be non empty"))
		}
	}
	seen := map[string]bool{}
	for i, image := range l.Spec.Images {
		entry(image.Name, image.Image, image.Digest, seen, images.Index(i))
	}
	seen = map[string]bool{}
	for i, d := range l.Spec.Dependencies {
		entry(d.Name, d.Image, d.Digest, seen, field.NewPath("spec", "dependencies").Index(i))
	}
	return errs
}

// Consistent checks that manifest and lock file are about the same images. lock may be nil.
func Consistent(m *v1alpha1.PackageManifest, lock *v1alpha1.PackageManifestLock) error {
	if lock == nil {
		if len(m.Spec.Images) > 0 {
			return &violation.Error{Reason: violation.LockMissing, Path: File}
		}
		return nil
	}
	locked := map[string]string{}
	for _, image := range lock.Spec.Images {
		locked[image.Name] = image.Image
	}
	for _, image := range m.Spec.Images {
		switch got, ok := locked[image.Name]; {
		case !ok:
			return &violation.Error{Reason: violation.LockMissing, Path: File, Details: fmt.Sprintf("image %q", image.Name)}
		case got != image.Image:
			return &violation.Error{
				Reason: violation.ImageDiffersFromLock, Path: File,
				Details: fmt.Sprintf("%q: %q in the manifest, %q in %s", image.Name, image.Image, got, LockFile),
			}
		}
		delete(locked, image.Name)
	}
	for _, image := range lock.Spec.Images {
		if _, left := locked[image.Name]; left {
			return &violation.Error{Reason: violation.ImageDiffersFromLock, Path: LockFile, Details: fmt.Sprintf("image %q is not in the manifest", image.Name)}
		}
	}
	return nil
}
