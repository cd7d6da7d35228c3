package bootstrap

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	manifests "hcp.internal/api/packages/manifests/v1alpha1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/packages/author/load"
	"hcp.internal/platform/internal/packages/author/render"
	"hcp.internal/platform/internal/packages/control/packagecontroller"
)

// definitions are the CustomResourceDefinitions of the package, as it would be installed.
func (b *bootstrap) definitions(ctx context.Context, want *v1alpha1.ClusterPackage) ([]unstructured.Unstructured, error) {
	puller, rewrite, err := b.puller()
	if err != nil {
		return nil, err
	}
	image := rewrite.Prefix(want.Spec.Image)
	got, err := puller.Pull(ctx, image)
	if err != nil {
		return nil, err
	}
	loaded, err := load.Load(ctx, got.Files, "")
	if err != nil {
		return nil, err
	}
	if err := render.Scope(loaded, true); err != nil {
		return nil, err
	}
	var raw []byte
	if want.Spec.Config != nil {
		raw = want.Spec.Config.Raw
	}
	c := render.Context{
		Package:     manifests.TemplateContextPackage{TemplateContextObjectMeta: manifests.TemplateContextObjectMeta{Name: packageName}, Image: image},
		Environment: b.environment,
	}
	if c.Config, err = render.Admit(ctx, loaded.Manifest, raw); err != nil {
		return nil, err
	}
	if c.Images, c.Dependencies, err = packagecontroller.Pinned(loaded, rewrite); err != nil {
		return nil, err
	}
	rendered, err := render.Render(ctx, loaded, c)
	if err != nil {
		return nil, err
	}
	template, err := rendered.Template(loaded, packageName)
	if err != nil {
		return nil, err
	}
	var out []unstructured.Unstructured
	for _, phase := range template.Phases {
		for _, o := range phase.Objects {
			if gvk := o.Object.GroupVersionKind(); gvk.Group == "apiextensions.k8s.io" && gvk.Kind == "CustomResourceDefinition" {
				out = append(out, o.Object)
			}
		}
	}
	return out, nil
}

// create makes the definitions that are not there, and waits until the kinds of packages are served. Those that are there are the package's to
// change, later, with a dry run and in order.
func (b *bootstrap) create(ctx context.Context, definitions []unstructured.Unstructured) error {
	for i := range definitions {
		crd := definitions[i].DeepCopy()
		labels := crd.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[v1alpha1.CacheLabel] = v1alpha1.CacheLabelValue
		crd.SetLabels(labels)
		err := b.client.Create(ctx, crd, client.FieldOwner(v1alpha1.FieldOwner))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating CustomResourceDefinition %s: %w", crd.GetName(), err)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, pollEvery/10, kindsTime, true, func(ctx context.Context) (bool, error) {
		for _, list := range []client.ObjectList{&v1alpha1.ClusterPackageList{}, &v1alpha1.ClusterObjectDeploymentList{}, &v1alpha1.ClusterObjectSetList{}} {
			if err := b.client.List(ctx, list, client.Limit(1)); err != nil {
				if served(err) {
					return false, err
				}
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the kinds of packages: %w", err)
	}
	return nil
}
