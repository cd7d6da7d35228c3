package upgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/exit"
	cliversion "hcp.internal/platform/internal/cli/version"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/nodepool"
	"hcp.internal/platform/internal/operator"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/version"
)

const (
	// pageSize bounds one answer of the API server, and maxObjects what is read of one kind in a namespace.
	pageSize   = 500
	maxObjects = 5000
)

// preview is one run.
type preview struct {
	*options
	clients  *clients
	releases nodepool.Lookup
	bench    *workbench
}

func (p *preview) run(ctx context.Context) (Report, error) {
	report := Report{Image: p.image, Release: p.release, Clusters: []Cluster{}}
	c := p.clients.standard
	if p.image != "" {
		if err := p.product(ctx, &report); err != nil {
			return report, err
		}
	}
	clusters, err := p.list(ctx)
	if err != nil {
		return report, err
	}
	if p.bench, err = newWorkbench(capabilities(c.RESTMapper())); err != nil {
		return report, err
	}
	defer p.bench.close()
	for i := range clusters {
		one := p.one(ctx, &clusters[i])
		if err := ctx.Err(); err != nil {
			return report, err
		}
		report.Clusters = append(report.Clusters, one)
	}
	return report, nil
}

// product looks at what the new version means for the installation as a whole.
func (p *preview) product(ctx context.Context, report *Report) error {
	server, err := cliversion.OfServer(ctx, p.clients.standard, p.operators)
	if err != nil {
		report.Notes = append(report.Notes, "the installed version is not known: "+clip.Line(err.Error()))
	} else {
		installed := version.Build{Version: server.Version, Commit: server.Commit}
		skew := version.Compare(version.This(), installed)
		report.Skew = &skew
		if p.program == "" && (server.Version != version.This().Version || server.Commit != version.This().Commit) {
			report.Notes = append(report.Notes, "control planes as they are were rendered by this program, not by one of the installed version ("+server.String()+
				"): changes of the program don't show; name one by --installed-program")
		}
	}
	report.Definitions, err = p.definitions(ctx)
	return err
}

// definitions are versions in which objects are stored and that the new version does not define any more.
func (p *preview) definitions(ctx context.Context) ([]string, error) {
	next := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, of := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){
		func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return config.CRDs(config.TechPreviewSet) },
		config.PackageOperatorCRDs, config.CAPICRDs, config.PrivateCAPICRDs,
	} {
		list, err := of()
		if err != nil {
			return nil, err
		}
		for _, crd := range list {
			next[crd.Name] = crd
		}
	}
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	var gone []string
	for err := range read.Pages(ctx, p.clients.standard, list, pageSize) {
		if err != nil {
			return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
		}
		for i := range list.Items {
			gone = append(gone, missingVersions(&list.Items[i], next[list.Items[i].Name])...)
		}
	}
	return gone, nil
}

// missingVersions says which versions are stored and not defined by next; nil: not ours.
func missingVersions(live, next *apiextensionsv1.CustomResourceDefinition) []string {
	if next == nil {
		return nil
	}
	var out []string
	for _, stored := range live.Status.StoredVersions {
		if !slices.ContainsFunc(next.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			out = append(out, fmt.Sprintf("version %s of %s, in which objects are stored", stored, live.Name))
		}
	}
	return out
}

// list are the hosted clusters that are looked at, by namespace and name.
func (p *preview) list(ctx context.Context) ([]hyperv1.HostedCluster, error) {
	var out []hyperv1.HostedCluster
	list := &hyperv1.HostedClusterList{}
	for err := range read.Pages(ctx, p.clients.standard, list, pageSize, client.InNamespace(p.namespace)) {
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("listing HostedClusters: %w; run `hypershift install` first", err)
		}
		if err != nil {
			return nil, fmt.Errorf("listing HostedClusters: %w", err)
		}
		for _, hc := range list.Items {
			if (p.cluster == "" || hc.Name == p.cluster) && hc.DeletionTimestamp.IsZero() {
				out = append(out, hc)
			}
		}
	}
	if len(out) == 0 && p.cluster != "" {
		return nil, exit.With(exit.NotFound, fmt.Errorf("HostedCluster %s not found: check its name and --namespace", p.cluster))
	}
	return out, nil
}

// optional are kinds that a management cluster may lack and that components ask for.
var optional = []schema.GroupKind{
	{Group: "route.openshift.io", Kind: "Route"}, {Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}, {Group: "monitoring.coreos.com", Kind: "PodMonitor"},
	{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}, {Group: "security.openshift.io", Kind: "SecurityContextConstraints"},
}

func capabilities(mapper meta.RESTMapper) []string {
	var out []string
	for _, kind := range optional {
		if _, err := mapper.RESTMapping(kind); err == nil {
			out = append(out, kind.Kind)
		}
	}
	return out
}

// one looks at a hosted cluster. What fails stands in its problems, so that the others are looked at all the same.
func (p *preview) one(ctx context.Context, hc *hyperv1.HostedCluster) Cluster {
	out := Cluster{Namespace: hc.Namespace, Name: hc.Name}
	problem := func(err error) {
		if err != nil {
			out.Problems = append(out.Problems, clip.Line(err.Error()))
		}
	}
	problem(p.controlPlane(ctx, hc, &out))
	problem(p.pools(ctx, hc, &out))
	if p.release != "" && out.To != "" {
		removed, err := requested(ctx, p.clients.standard, hc, out.To)
		out.Removed = removed
		problem(err)
	}
	return out
}

// controlPlane renders both sides and compares them.
func (p *preview) controlPlane(ctx context.Context, hc *hyperv1.HostedCluster, out *Cluster) error {
	c := p.clients.standard
	hcp := &hyperv1.HostedControlPlane{}
	key := client.ObjectKey{Namespace: names.NamespaceOf(hc), Name: hc.Name}
	if err := c.Get(ctx, key, hcp); apierrors.IsNotFound(err) {
		out.Problems = append(out.Problems, "it has no control plane yet")
		return nil
	} else if err != nil {
		return fmt.Errorf("reading HostedControlPlane %s: %w", key, err)
	}
	pull := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: hc.Namespace, Name: hc.Spec.PullSecret.Name}, pull); err != nil {
		return fmt.Errorf("reading the pull secret: %w", err)
	}
	lookup := func(image string) (*release.Release, error) {
		return operator.WithMirrorsOf(p.releases, hc).Lookup(ctx, image, pull.Data[names.DockerConfigKey])
	}
	current := hcp.Spec.ReleaseImage
	if own := hcp.Spec.ControlPlaneReleaseImage; own != nil && *own != "" {
		current = *own
	}
	was, err := lookup(current)
	if err != nil {
		return fmt.Errorf("reading release %s: %w", current, err)
	}
	operators := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: names.ControlPlaneOperator}, operators); err != nil || len(operators.Spec.Template.Spec.Containers) == 0 {
		return fmt.Errorf("reading Deployment %s/%s: %w", key.Namespace, names.ControlPlaneOperator, cmp.Or(err, errors.New("it has no container")))
	}
	image := operators.Spec.Template.Spec.Containers[0].Image
	before := side{hcp: hcp, release: was, image: image, program: p.program}
	after := side{hcp: hcp.DeepCopy(), release: was, image: cmp.Or(p.image, image)}
	out.From, out.To = was.Version, was.Version
	if p.release != "" {
		is, err := lookup(p.release)
		if err != nil {
			return fmt.Errorf("reading release %s: %w", p.release, err)
		}
		after.release, after.hcp.Spec.ReleaseImage, after.hcp.Spec.ControlPlaneReleaseImage = is, p.release, nil
		out.To = is.Version
		out.Refused = refusedRelease(hc, was.Version, is.Version)
	}
	existing, err := p.existing(ctx, key.Namespace)
	if err != nil {
		return err
	}
	return p.compare(ctx, before, after, existing, out)
}

func (p *preview) compare(ctx context.Context, before, after side, existing []client.Object, out *Cluster) error {
	objects, err := p.bench.objects(existing)
	if err != nil {
		return err
	}
	a, problems, err := p.bench.render(ctx, "before", before, objects)
	if err != nil {
		return err
	}
	b, more, err := p.bench.render(ctx, "after", after, objects)
	if err != nil {
		return err
	}
	out.Problems = append(out.Problems, problems...)
	for _, m := range more {
		if !slices.Contains(problems, m) {
			out.Problems = append(out.Problems, m)
		}
	}
	out.Changes, out.Restarts = compare(a, b)
	return nil
}

// refusedRelease is why the operator would refuse a release; empty: it would not.
func refusedRelease(hc *hyperv1.HostedCluster, from, to string) string {
	_, skip := hc.Annotations[hyperv1.SkipReleaseImageValidation]
	if from == to {
		from = ""
	}
	if err := release.CheckVersion(release.VersionCheck{Target: to, Current: from, NetworkType: string(hc.Spec.Networking.NetworkType), Platform: string(hc.Spec.Platform.Type), Skip: skip}); err != nil {
		return err.Error()
	}
	return ""
}

// existing are the objects of a control plane that components read.
func (p *preview) existing(ctx context.Context, namespace string) ([]client.Object, error) {
	var out []client.Object
	for kind, list := range map[string]client.ObjectList{"Secret": &corev1.SecretList{}, "ConfigMap": &corev1.ConfigMapList{}, "ControlPlaneComponent": &hyperv1.ControlPlaneComponentList{}} {
		for err := range read.Pages(ctx, p.clients.standard, list, pageSize, client.InNamespace(namespace)) {
			if err != nil {
				return nil, fmt.Errorf("listing %ss of namespace %s: %w", kind, namespace, err)
			}
			items, err := meta.ExtractList(list)
			if err != nil {
				return nil, err
			}
			for _, item := range items {
				obj := item.(client.Object)
				obj.SetManagedFields(nil)
				gvk, err := p.clients.standard.GroupVersionKindFor(obj)
				if err != nil {
					return nil, err
				}
				obj.GetObjectKind().SetGroupVersionKind(gvk)
				out = append(out, obj)
			}
			if list.GetContinue() != "" && len(out) > maxObjects {
				return nil, fmt.Errorf("namespace %s has more than %d objects", namespace, maxObjects)
			}
		}
	}
	return out, nil
}

// pools asks this version what it would do with the machines of each NodePool.
func (p *preview) pools(ctx context.Context, hc *hyperv1.HostedCluster, out *Cluster) error {
	c := p.clients.standard
	if hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true" {
		if p.clients.privateErr != nil {
			return fmt.Errorf("looking at machines: %w", p.clients.privateErr)
		}
		c = p.clients.private
	}
	list := &hyperv1.NodePoolList{}
	for err := range read.Pages(ctx, c, list, pageSize, client.InNamespace(hc.Namespace)) {
		if err != nil {
			return fmt.Errorf("listing NodePools: %w", err)
		}
		for i := range list.Items {
			np := &list.Items[i]
			if np.Spec.ClusterName != hc.Name {
				continue
			}
			pool := Pool{Name: np.Name}
			f, err := nodepool.Preview(ctx, c, p.releases, np, hc, time.Now())
			pool.Machines, pool.Rolls, pool.Held, pool.Changes, pool.Unknown = f.Machines, f.Rolls, f.Held, f.Changes, f.Waits
			if err != nil {
				pool.Unknown = err.Error()
			}
			out.Pools = append(out.Pools, pool)
		}
	}
	return nil
}
