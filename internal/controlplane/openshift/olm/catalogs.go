package olm

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
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
		live := &appsv1.Deployment{}
		err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: d.Name}, live)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading the live Deployment %s: %w", d.Name, err)
		}
		if registry := component.Container(&live.Spec.Template.Spec, catalogContainers[0]); !apierrors.IsNotFound(err) && registry != nil && registry.Image != "" {
			setCatalogImage(&d.Spec.Template.Spec, registry.Image)
		}
		return nil
	default:
		if image, err = c.index(ctx); err != nil {
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

const (
	// newestIndex is the newest minor that there are indexes for.
	newestIndexMajor, newestIndexMinor = 4, 22

	redHatRegistry   = "registry.redhat.io"
	redHatRepository = redHatRegistry + "/redhat"
)

// index is the image of the catalog for the release of the hosted cluster.
func (c catalog) index(ctx component.WorkloadContext) (string, error) {
	var major, minor int
	if _, err := fmt.Sscanf(ctx.UserRelease.Version, "%d.%d", &major, &minor); err != nil {
		return "", fmt.Errorf("release %s of the hosted cluster has version %q, and catalogs go by major.minor", ctx.UserRelease.Image, ctx.UserRelease.Version)
	}
	if slices.Compare([]int{major, minor}, []int{newestIndexMajor, newestIndexMinor}) > 0 {
		major, minor = newestIndexMajor, newestIndexMinor
	}
	repository, err := indexRepository(ctx.HCP.Annotations[hyperv1.OLMCatalogsISRegistryOverridesAnnotation])
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s/%s-index:v%d.%d", repository, strings.TrimSuffix(c.name, "s"), major, minor), nil
}

// indexRepository is where the indexes are, given what the user says of registries: src=dst,…
func indexRepository(overrides string) (string, error) {
	repository := redHatRepository
	for entry := range strings.SplitSeq(overrides, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		from, to, ok := strings.Cut(entry, "=")
		if !ok || from == "" || to == "" {
			return "", fmt.Errorf("annotation %s: %q is no registry and its replacement, as in %s=registry.example.com", hyperv1.OLMCatalogsISRegistryOverridesAnnotation, entry, redHatRegistry)
		}
		switch to = strings.TrimSuffix(to, "/"); from {
		case redHatRepository:
			return to, nil
		case redHatRegistry:
			repository = to + "/redhat"
		}
	}
	return repository, nil
}
