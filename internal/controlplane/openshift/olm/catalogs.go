package olm

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
	"hcp.internal/platform/internal/controlplane/component"
)

// triggersAnnotation has OpenShift write the image of an ImageStream into the pods.
const triggersAnnotation = "image.openshift.io/triggers"

// catalogContainers run the image of the catalog.
var catalogContainers = []string{"registry", "extract-content"}

// catalog is one of the catalogs that run beside the control plane.
type catalog struct {
	name       string // redhat-operators
	memory     string
	annotation string // on the HostedControlPlane, for an image by digest
}

var (
	redhat    = catalog{"redhat-operators", "420Mi", hyperv1.RedHatOperatorsCatalogImageAnnotation}
	community = catalog{"community-operators", "160Mi", hyperv1.CommunityOperatorsCatalogImageAnnotation}
	certified = catalog{"certified-operators", "160Mi", hyperv1.CertifiedOperatorsCatalogImageAnnotation}

	catalogs = []catalog{certified, community, redhat}
)

// NewRedHatCatalog makes redhat-operators-catalog, which owns the ImageStream of all three.
func NewRedHatCatalog() *component.WorkloadComponent {
	return redhat.builder().
		WithManifestAdapter("imagestream.yaml", component.When(streamWanted), component.AdaptManifest(adaptStream)).
		Build()
}

// NewCommunityCatalog makes community-operators-catalog.
func NewCommunityCatalog() *component.WorkloadComponent {
	return community.builder().WithManifestAdapter("imagestream.yaml", component.SkipManifest()).Build()
}

// NewCertifiedCatalog makes certified-operators-catalog.
func NewCertifiedCatalog() *component.WorkloadComponent {
	return certified.builder().WithManifestAdapter("imagestream.yaml", component.SkipManifest()).Build()
}

func (c catalog) builder() *component.Builder[*appsv1.Deployment] {
	return component.NewDeploymentComponent(c.name+"-catalog", assets, component.Options{}).
		WithAssetDir("assets/catalogs").
		WithTemplateData(map[string]string{"name": c.name, "memory": c.memory}).
		WithPredicate(catalogsWanted).
		WithDependencies("openshift-apiserver").
		WithAdaptFunction(c.adapt)
}

func catalogsWanted(ctx component.WorkloadContext) (bool, error) {
	if c := ctx.HCP.Spec.Configuration; c != nil && c.OperatorHub != nil && c.OperatorHub.DisableAllDefaultSources {
		return false, nil
	}
	return ctx.HCP.Spec.OLMCatalogPlacement == hyperv1.ManagementOLMCatalogPlacement, nil
}

// adapt gives the pods their image: the user's, or that of the ImageStream, which OpenShift fills in and which is kept then, or the index itself.
func (c catalog) adapt(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	image, err := c.override(ctx.HCP)
	if err != nil {
		return err
	}
	streams, err := hasStreams(ctx)
	if err != nil {
		return err
	}
	switch {
	case image != "":
	case streams:
		live, err := liveImage(ctx, d.Name)
		if live != "" {
			setCatalogImage(&d.Spec.Template.Spec, live)
		}
		return err
	default:
		if image, err = c.pinned(ctx, d.Name); err != nil {
			return err
		}
	}
	delete(d.Annotations, triggersAnnotation)
	if len(d.Annotations) == 0 {
		d.Annotations = nil
	}
	setCatalogImage(&d.Spec.Template.Spec, image)
	return nil
}

func setCatalogImage(pod *corev1.PodSpec, image string) {
	for _, name := range catalogContainers {
		if container := component.Container(pod, name); container != nil {
			container.Image = image
		}
	}
}

// override is the image that the user names, empty when he names none. The three catalogs are named together, each by digest.
func (c catalog) override(hcp *hyperv1.HostedControlPlane) (string, error) {
	var missing []string
	for _, of := range catalogs {
		image := hcp.Annotations[of.annotation]
		if image == "" {
			missing = append(missing, of.annotation)
		} else if !strings.Contains(image, "@sha256:") {
			return "", fmt.Errorf("annotation %s is %q: name the image by digest, as in registry.example.com/catalog@sha256:…", of.annotation, image)
		}
	}
	if len(missing) > 0 && len(missing) < len(catalogs) {
		return "", fmt.Errorf("images of catalogs are given for all or for none: add annotation %s", strings.Join(missing, " and "))
	}
	return hcp.Annotations[c.annotation], nil
}

// hasStreams says whether the management cluster has ImageStreams.
func hasStreams(ctx component.WorkloadContext) (bool, error) {
	if ctx.Capabilities == nil {
		return false, nil
	}
	return ctx.Capabilities.Accessible(ctx.Context, schema.GroupVersionKind{Group: "image.openshift.io", Version: "v1", Kind: "ImageStream"})
}

func streamWanted(ctx component.WorkloadContext) (bool, error) {
	return ctx.HCP.Annotations[redhat.annotation] == "", nil
}

// adaptStream has OpenShift follow the indexes.
func adaptStream(ctx component.WorkloadContext, stream *unstructured.Unstructured) error {
	var tags []any
	for _, c := range catalogs {
		image, err := c.index(ctx)
		if err != nil {
			return err
		}
		tags = append(tags, map[string]any{
			"name": c.name, "from": map[string]any{"kind": "DockerImage", "name": image},
			"importPolicy": map[string]any{"scheduled": true, "importMode": "PreserveOriginal"}, "referencePolicy": map[string]any{"type": "Local"},
		})
	}
	return unstructured.SetNestedSlice(stream.Object, tags, "spec", "tags")
}

// index is the image of the catalog for the release of the hosted cluster: one that is known to be there, else the one that should be.
func (c catalog) index(ctx component.WorkloadContext) (string, error) {
	if found := ctx.Catalogs[c.name]; found.Image != "" {
		return found.Image, nil
	}
	images, err := c.images(ctx)
	if err != nil {
		return "", err
	}
	return images[0], nil
}

// images are those that the catalog may be had from, the best first.
func (c catalog) images(ctx component.WorkloadContext) ([]string, error) {
	return payload.CatalogImages(c.name, ctx.UserRelease.Version, ctx.HCP.Annotations[hyperv1.OLMCatalogsISRegistryOverridesAnnotation], hyperv1.OLMCatalogsISRegistryOverridesAnnotation)
}

// Wanted are the images that the catalogs of a control plane may be had from, by the name of the catalog; none when there are none beside it, or when the user names
// them. What is found of them goes into WorkloadContext.Catalogs.
func Wanted(ctx component.WorkloadContext) (map[string][]string, error) {
	if wanted, err := catalogsWanted(ctx); !wanted || err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, c := range catalogs {
		if image, err := c.override(ctx.HCP); image != "" || err != nil {
			return nil, err
		}
		images, err := c.images(ctx)
		if err != nil {
			return nil, err
		}
		out[c.name] = images
	}
	return out, nil
}

// pinned is the catalog's image by digest. While the registry does not say what that is, the pods keep what they have.
func (c catalog) pinned(ctx component.WorkloadContext, name string) (string, error) {
	if ctx.Catalogs == nil { // nobody has looked
		return c.index(ctx)
	}
	found := ctx.Catalogs[c.name]
	if found.Digest != "" {
		return strings.TrimSuffix(found.Image, found.Image[strings.LastIndex(found.Image, ":"):]) + "@" + found.Digest, nil
	}
	live, err := liveImage(ctx, name)
	if err != nil || strings.Contains(live, "@sha256:") {
		return live, err
	}
	if found.Problem != nil {
		return "", fmt.Errorf("looking for the image of catalog %s: %w", c.name, found.Problem)
	}
	return "", fmt.Errorf("waiting for the registry to say which image catalog %s is", c.name)
}

// liveImage is what the pods of a catalog run, empty when there are none yet.
func liveImage(ctx component.WorkloadContext, name string) (string, error) {
	live := &appsv1.Deployment{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: name}, live)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the live Deployment %s: %w", name, err)
	}
	if registry := component.Container(&live.Spec.Template.Spec, catalogContainers[0]); registry != nil {
		return registry.Image, nil
	}
	return "", nil
}
