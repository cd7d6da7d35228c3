package install

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/hostedcluster/migration"
	pages "hcp.internal/platform/internal/kube/read"
)

// Values of --private-capi-types.
const (
	CAPIAuto     = "auto"
	CAPIPrivate  = "true"
	CAPIStandard = "false"
)

// ConfigMap that remembers where new hosted clusters store their objects of Cluster API, so that the next installation does the same.
const (
	capiStateName  = migration.StateName
	capiStateKey   = "mode"
	capiModeStored = "private"
	capiModeOld    = "standard"
)

// evidencePage is how many objects are read at once.
const evidencePage = 500

// capiEvidence is what the choice between private and standard types depends on.
type capiEvidence struct {
	asked    string // CAPIAuto, CAPIPrivate or CAPIStandard
	recorded string // mode of the last installation; empty: there was none that noted it
	// private and standard are the hosted clusters whose objects are stored in the one or the other; those that no operator has taken on yet
	// are neither.
	private, standard []string
	privateObjects    bool // there are Clusters in the private group
}

// capiChoice says which types are installed, and with what. The zero value is the standard types.
type capiChoice struct {
	Private bool // new hosted clusters are stored privately
	Legacy  bool // besides, hosted clusters that are stored in the standard groups are kept going
	why     string

	// converted are definitions that aren't ours any more and still name our webhook.
	converted []string
}

// standard says whether the standard definitions and the rights to them are installed.
func (c capiChoice) standard() bool { return !c.Private || c.Legacy }

// chooseCAPI never strands a hosted cluster: with private ones there is always an operator for them, and with standard ones, too.
func chooseCAPI(e capiEvidence) (capiChoice, error) {
	if e.recorded != "" && e.recorded != capiModeStored && e.recorded != capiModeOld {
		return capiChoice{}, fmt.Errorf("ConfigMap %s: %s is %q: must be %s or %s; a newer version may have written it, install with that one",
			capiStateName, capiStateKey, e.recorded, capiModeStored, capiModeOld)
	}
	private := func(why string) (capiChoice, error) {
		return capiChoice{Private: true, Legacy: len(e.standard) > 0, why: why}, nil
	}
	stored := len(e.private) > 0 || e.privateObjects
	switch {
	case e.asked == CAPIPrivate:
		return private("as asked for")
	case stored && (e.asked == CAPIStandard || e.recorded == capiModeOld):
		return capiChoice{}, fmt.Errorf("hosted clusters store their machines in private types (%s), which an operator without them would not see: "+
			"install with --private-capi-types=true, or destroy these hosted clusters first", some(e.private))
	case e.asked == CAPIStandard:
		return capiChoice{why: "as asked for"}, nil
	case e.recorded == capiModeStored:
		return private("as it was installed")
	case stored:
		return private("hosted clusters use them")
	case e.recorded == capiModeOld:
		return capiChoice{why: "as it was installed; --private-capi-types=true changes that"}, nil
	case len(e.standard) > 0:
		return capiChoice{why: fmt.Sprintf("there are hosted clusters from before (%s); with --private-capi-types=true new ones would be private", some(e.standard))}, nil
	default:
		return private("there are no hosted clusters yet")
	}
}

// some names the first few.
func some(names []string) string {
	const most = 3
	if len(names) == 0 {
		return "their HostedCluster objects are gone"
	}
	slices.Sort(names)
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// storageOf sorts a hosted cluster into the evidence: operators of either kind say so in the patch with which they take one on. One that is
// being moved, or may be asked back, is both.
func (e *capiEvidence) storageOf(hc *metav1.PartialObjectMetadata, now time.Time) {
	name := hc.Namespace + "/" + hc.Name
	switch {
	case hc.Annotations[hyperv1.PrivateCAPITypesAnnotation] == "true":
		e.private = append(e.private, name)
		if migration.MayReturn(hc.Annotations, now) {
			e.standard = append(e.standard, name)
		}
	case slices.Contains(hc.Finalizers, hyperv1.HostedClusterFinalizer):
		e.standard = append(e.standard, name)
		if hc.Annotations[hyperv1.PrivateCAPIMigrationInProgressAnnotation] == "true" {
			e.private = append(e.private, name) // copies are there already
		}
	}
}

// lookAtCAPI reads the evidence from the management cluster.
func lookAtCAPI(ctx context.Context, c client.Client, o Options) (capiEvidence, error) {
	e := capiEvidence{asked: o.PrivateCAPI}
	state := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: capiStateName}, state)
	if err != nil && !apierrors.IsNotFound(err) {
		return e, fmt.Errorf("reading ConfigMap %s/%s: %w", o.Namespace, capiStateName, err)
	}
	e.recorded = state.Data[capiStateKey]
	for hc, err := range each(ctx, c, schema.GroupKind{Group: hypershiftGroup, Kind: "HostedCluster"}, evidencePage) {
		if err != nil {
			return e, err
		}
		e.storageOf(hc, time.Now())
	}
	for _, err := range each(ctx, c, schema.GroupKind{Group: translate.Private, Kind: "Cluster"}, 2) {
		if err != nil {
			return e, err
		}
		if e.privateObjects {
			break // one is enough
		}
		e.privateObjects = true
	}
	return e, nil
}

// each reads the metadata of all objects of a kind in all namespaces, in pages of a size; none if the kind isn't served. It ends with an error.
func each(ctx context.Context, c client.Client, kind schema.GroupKind, size int64) iter.Seq2[*metav1.PartialObjectMetadata, error] {
	return func(yield func(*metav1.PartialObjectMetadata, error) bool) {
		mapping, err := c.RESTMapper().RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			return
		}
		if err != nil {
			yield(nil, fmt.Errorf("asking the management cluster for its APIs: %w", err))
			return
		}
		objs := &metav1.PartialObjectMetadataList{}
		objs.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
		for err := range pages.Pages(ctx, c, objs, size) {
			if err != nil {
				yield(nil, fmt.Errorf("listing %ss: %w", kind.Kind, err))
				return
			}
			for i := range objs.Items {
				if !yield(&objs.Items[i], nil) {
					return
				}
			}
		}
	}
}

// offlineCAPI is the choice of who can't ask a management cluster: on one without hosted clusters.
func (o Options) offlineCAPI() Options {
	if o.capi == nil {
		choice := capiChoice{Private: o.PrivateCAPI != CAPIStandard}
		o.capi = &choice
	}
	return o
}

// capiCRDs returns the definitions of Cluster API's kinds, private ones, standard ones or both.
func capiCRDs(o Options) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	standard, private := config.CAPICRDs, config.PrivateCAPICRDs
	if o.convertsCAPI() {
		by := config.CAPIConverter(o.Namespace)
		standard = func() ([]*apiextensionsv1.CustomResourceDefinition, error) { return config.ConvertedCAPICRDs(by) }
		private = func() ([]*apiextensionsv1.CustomResourceDefinition, error) {
			return config.ConvertedPrivateCAPICRDs(by)
		}
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, set := range []struct {
		wanted bool
		read   func() ([]*apiextensionsv1.CustomResourceDefinition, error)
	}{{o.capi.standard(), standard}, {o.capi.Private, private}} {
		if !set.wanted {
			continue
		}
		crds, err := set.read()
		if err != nil {
			return nil, fmt.Errorf("reading Cluster API's CustomResourceDefinitions: %w", err)
		}
		all = append(all, crds...)
	}
	return all, nil
}

// providerCRDs returns the definitions of infrastructure providers of the installation's platforms, in the groups that Cluster API has.
func providerCRDs(o Options) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, platform := range limitable {
		if o.WithoutProviders || len(o.Platforms) > 0 && !slices.Contains(o.Platforms, platform) {
			continue
		}
		for _, private := range []bool{false, true} {
			if wanted := !private && o.capi.standard() || private && o.capi.Private; !wanted {
				continue
			}
			crds, err := config.ProviderCRDs(platform, private)
			if err != nil {
				return nil, fmt.Errorf("reading the CustomResourceDefinitions of the provider of %s: %w", platform, err)
			}
			for _, crd := range crds {
				// What has no twin is in both sets.
				if !slices.ContainsFunc(all, func(c *apiextensionsv1.CustomResourceDefinition) bool { return c.Name == crd.Name }) {
					all = append(all, crd)
				}
			}
		}
	}
	return all, nil
}

// convertsCAPI says whether the operator converts between the versions of Cluster API's kinds. Where there is no operator nobody would answer.
func (o Options) convertsCAPI() bool { return !o.StoredCAPIOnly && !o.Development }

// capiConversion is the Service behind which the operator converts, and its right to write the CA of its certificate into the definitions.
func capiConversion(o Options) []client.Object {
	if !o.convertsCAPI() {
		return nil
	}
	return []client.Object{&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: config.ConversionService, Namespace: o.Namespace, Labels: operatorLabels()},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: operatorLabels(),
			Ports: []corev1.ServicePort{{Name: "webhook", Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromString("manager")}},
		},
	}}
}

// conversionRule lets the operator write into the definitions that it converts, and into no others.
func (c capiChoice) conversionRule() rbacv1.PolicyRule {
	r := rule(group("apiextensions.k8s.io"), "customresourcedefinitions", "patch")
	if !c.standard() {
		r.ResourceNames = append(r.ResourceNames, c.converted...)
	}
	for _, private := range []bool{false, true} {
		if wanted := !private && c.standard() || private && c.Private; !wanted {
			continue
		}
		names, err := config.ConvertedNames(private)
		if err != nil {
			panic(err) // a pattern that is a constant
		}
		r.ResourceNames = append(r.ResourceNames, names...)
	}
	return r
}

// withoutStandard drops definitions of ours in standard groups where somebody else may own these groups.
func (c capiChoice) withoutStandard(crds []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	if c.standard() {
		return crds
	}
	return slices.DeleteFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return translate.InDomain(crd.Spec.Group) && !translate.IsPrivate(crd.Spec.Group)
	})
}

// groups are names of API groups as they are stored: private, standard or both. Those that are no groups of Cluster API are once in it.
func (c capiChoice) groups(standard ...string) []string {
	var all []string
	if c.standard() {
		all = append(all, standard...)
	}
	if c.Private {
		for _, g := range standard {
			if stored := translate.Group(g); !slices.Contains(all, stored) {
				all = append(all, stored)
			}
		}
	}
	slices.Sort(all)
	return all
}

func capiState(o Options) *corev1.ConfigMap {
	mode := capiModeOld
	if o.capi.Private {
		mode = capiModeStored
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: capiStateName, Namespace: o.Namespace},
		Data:       map[string]string{capiStateKey: mode},
	}
}

// addPrivateCAPIFlag declares a flag with three values, of which none means true.
func addPrivateCAPIFlag(fs *pflag.FlagSet, o *Options) {
	const name = "private-capi-types"
	fs.StringVar(&o.PrivateCAPI, name, o.PrivateCAPI, "Store the objects of Cluster API of new hosted clusters in HyperShift's own API groups: true, false or auto, "+
		"which does as the last installation did, and true where there are no hosted clusters yet")
	fs.Lookup(name).NoOptDefVal = CAPIPrivate
}

func validatePrivateCAPI(value string) error {
	if slices.Contains([]string{CAPIAuto, CAPIPrivate, CAPIStandard}, value) {
		return nil
	}
	return errors.New("--private-capi-types " + fmt.Sprintf("%q", value) + ": must be auto, true or false, written with = (or nothing, which is true)")
}
