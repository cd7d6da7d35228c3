package packagecontroller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/images"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/manifest"
	"hcp.internal/platform/internal/packages/author/render"
	"hcp.internal/platform/internal/packages/author/violation"
)

// failure is why a package can't be installed as it is.
type failure struct {
	condition string // Unpacked or Invalid
	reason    string
	// final failures stay until the spec changes; others are tried again.
	final bool
	err   error
}

// result is what an image gives for a Package.
type result struct {
	pkg      *load.Package
	digest   string
	template v1alpha1.ObjectSetTemplateSpec
	// environment and metadata are whether the outcome depends on them.
	environment, metadata bool
}

// unpack does everything that needs no write. image is that of the spec, or what is installed of it.
func (r *Reconciler) unpack(ctx context.Context, p *v1alpha1.Package, image string, env manifests.PackageEnvironment) (*result, *failure) {
	pulled, err := r.Puller.Ask(ctx, client.ObjectKeyFromObject(p), image)
	if err != nil {
		if isViolation(err) {
			return nil, &failure{v1alpha1.ConditionInvalid, v1alpha1.ReasonLoadError, true, err}
		}
		if image != r.Rewrite.Prefix(p.Spec.Image) {
			err = fmt.Errorf("%w; the environment, a label or an annotation has changed, and what is installed has to be rendered anew: push that image again, or set spec.image to another", err)
		}
		return nil, &failure{v1alpha1.ConditionUnpacked, v1alpha1.ReasonImagePullBackOff, false, err}
	}
	loaded, err := load.Load(ctx, pulled.Files, p.Spec.Component)
	if err == nil && len(loaded.Warnings) > 0 {
		ctrl.LoggerFrom(ctx).Info("package has what is of no effect", "warnings", loaded.Warnings)
	}
	if err == nil {
		err = errors.Join(manifest.Consistent(loaded.Manifest, loaded.Lock), render.Static(loaded))
	}
	if err != nil {
		return nil, &failure{v1alpha1.ConditionInvalid, v1alpha1.ReasonLoadError, true, err}
	}
	if unmet, err := r.unmet(ctx, p, loaded, env); err != nil || len(unmet) > 0 {
		if err == nil {
			err = errors.New("Constraints not met: " + strings.Join(unmet, ", "))
		}
		return nil, &failure{v1alpha1.ConditionInvalid, v1alpha1.ReasonConstraintsFailed, false, err}
	}
	template, err := r.render(ctx, p, loaded, env)
	if err != nil {
		return nil, &failure{v1alpha1.ConditionInvalid, v1alpha1.ReasonLoadError, false, err}
	}
	return &result{pkg: loaded, digest: pulled.Digest, template: template, environment: usesEnvironment(loaded), metadata: usesMetadata(loaded)}, nil
}

func (r *Reconciler) render(ctx context.Context, p *v1alpha1.Package, loaded *load.Package, env manifests.PackageEnvironment) (v1alpha1.ObjectSetTemplateSpec, error) {
	none := v1alpha1.ObjectSetTemplateSpec{}
	if err := render.Scope(loaded, r.Scope.IsCluster()); err != nil {
		return none, err
	}
	var raw []byte
	if p.Spec.Config != nil {
		raw = p.Spec.Config.Raw
	}
	config, err := render.Admit(ctx, loaded.Manifest, raw)
	if err != nil {
		return none, err
	}
	c := render.Context{
		Package: manifests.TemplateContextPackage{
			TemplateContextObjectMeta: manifests.TemplateContextObjectMeta{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations},
			Image:                     r.Rewrite.Prefix(p.Spec.Image),
		},
		Config: config, Environment: env,
	}
	if c.Images, c.Dependencies, err = Pinned(loaded, r.Rewrite); err != nil {
		return none, err
	}
	tenant := p.Namespace
	if tenant == "" {
		tenant = "/" + p.Name
	}
	var rendered *render.Rendered
	if err := r.Share.Do(ctx, tenant, func() error {
		var err error
		rendered, err = render.Render(ctx, loaded, c)
		return err
	}); err != nil {
		return none, err
	}
	if err := r.within(p, loaded, rendered); err != nil {
		return none, err
	}
	return rendered.Template(loaded, p.Name)
}

// Pinned are the images and dependencies of the lock file by name.
func Pinned(p *load.Package, rewrite images.Rewrite) (imgs, dependencies map[string]string, err error) {
	imgs, dependencies = map[string]string{}, map[string]string{}
	if p.Lock == nil {
		return imgs, dependencies, nil
	}
	for _, image := range p.Lock.Spec.Images {
		if imgs[image.Name], err = rewrite.Pinned(image.Image, image.Digest); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", manifest.LockFile, err)
		}
	}
	for _, d := range p.Lock.Spec.Dependencies {
		if dependencies[d.Name], err = rewrite.Pinned(d.Image, d.Digest); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", manifest.LockFile, err)
		}
	}
	return imgs, dependencies, nil
}

// within refuses what a Package must not have: objects of other namespaces and of the cluster. Phases of other classes may be applied to
// other clusters; whoever does so checks them.
func (r *Reconciler) within(p *v1alpha1.Package, loaded *load.Package, rendered *render.Rendered) error {
	if r.Scope.IsCluster() {
		return nil
	}
	here := map[string]bool{}
	for _, phase := range loaded.Manifest.Spec.Phases {
		here[phase.Name] = phase.Class == "" || phase.Class == v1alpha1.DefaultPhaseClass
	}
	var errs []error
	for _, o := range rendered.Objects {
		if !here[o.GetAnnotations()[v1alpha1.PhaseAnnotation]] {
			continue
		}
		if ns := o.GetNamespace(); ns != "" && ns != p.Namespace {
			errs = append(errs, notAllowed(o, fmt.Sprintf("it is in namespace %q, and the Package in %q: use a ClusterPackage for objects of several namespaces", ns, p.Namespace)))
			continue
		}
		gvk := o.GroupVersionKind()
		mapping, err := r.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			continue // a kind that isn't there yet; the phase says so when it is still missing
		}
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			errs = append(errs, notAllowed(o, fmt.Sprintf("%s is cluster-scoped: use a ClusterPackage", gvk.Kind)))
		}
	}
	return errors.Join(errs...)
}

// usesEnvironment tells whether what a package gives may depend on the environment.
func usesEnvironment(p *load.Package) bool {
	if len(p.Manifest.Spec.Constraints) > 0 {
		return true
	}
	for _, c := range p.Manifest.Spec.Filter.Conditions {
		if strings.Contains(c.Expression, "environment") {
			return true
		}
	}
	for _, c := range p.Manifest.Spec.Filter.Paths {
		if strings.Contains(c.Expression, "environment") {
			return true
		}
	}
	for name, data := range p.Files {
		if (load.IsTemplate(name) || load.IsYAML(name)) && strings.Contains(string(data), "environment") {
			return true
		}
	}
	return false
}

// specHash stands for what a Package is unpacked from. Pausing isn't part of it.
func (r *Reconciler) specHash(spec v1alpha1.PackageSpec) (string, error) {
	spec.Paused = false
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(spec); err != nil {
		return "", fmt.Errorf("encoding the spec: %w", err)
	}
	if r.HashModifier != 0 {
		fmt.Fprintf(h, "modifier %d\n", r.HashModifier)
	}
	for _, o := range r.Rewrite.Prefixes {
		fmt.Fprintf(h, "prefix %s=%s\n", o.Source, o.To)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// environmentHash stands for an environment.
func environmentHash(env manifests.PackageEnvironment) (string, error) {
	raw, err := json.Marshal(env)
	if err != nil {
		return "", fmt.Errorf("encoding the environment: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8]), nil
}

func notAllowed(o render.Object, details string) error {
	return &violation.Error{Reason: violation.InvalidObject, Path: o.Path, Index: &o.Index, Details: details}
}
