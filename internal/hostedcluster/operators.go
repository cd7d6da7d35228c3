package hostedcluster

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	semver "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/images"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	payloadprovider "hcp.internal/platform/internal/controlplane/openshift/capiprovider"
	payloadclusterapi "hcp.internal/platform/internal/controlplane/openshift/clusterapi"
	"hcp.internal/platform/internal/controlplane/openshift/controlplaneoperator"
	"hcp.internal/platform/internal/controlplane/trouble"
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/hostedcluster/state"
)

// deployment says which components a step brings to what. Each is planned when its turn comes, because it goes by what the steps and the
// components before it have written.
type deployment struct {
	// context is what they are planned from, without Context, Reader and Trouble, which come with the pass.
	context component.WorkloadContext
	// troubles are why pods do not run.
	troubles []trouble.Trouble

	controlPlaneOperator *cpo.Options // nil: not in this step
	clusterAPI           *clusterAPI  // nil: not in this step
}

// payload says whether the components are those of an OpenShift payload, whose forms are as published.
func (d deployment) payload() bool { return d.context.Release != nil && !d.context.Release.Kubernetes }

// clusterAPI is Cluster API's manager and the infrastructure provider of the platform.
type clusterAPI struct {
	manager  clusterapi.Options
	provider capiprovider.Options
	// pools: there are machines to manage, or will be. Without a pool there are none. No manager of Cluster API has added a finalizer to such a Cluster,
	// so its deletion waits for none.
	pools bool
}

// components in their order. One that fails ends the step.
func (d deployment) components() (list []component.Component) {
	switch o := d.controlPlaneOperator; {
	case o == nil:
	case d.payload():
		list = append(list, controlplaneoperator.NewComponent(payloadOptions(*o)))
	default:
		list = append(list, cpo.NewComponent(*o))
	}
	switch c := d.clusterAPI; {
	case c == nil:
	case d.payload():
		list = append(list, c.payloadComponents(d.context.HCP)...)
	default:
		pools := func(component.WorkloadContext) (bool, error) { return c.pools, nil }
		list = append(list, clusterapi.NewComponent(c.manager).SleepUntil(pools), capiprovider.NewComponent(c.provider).SleepUntil(pools))
	}
	return list
}

// payloadComponents are Cluster API's manager, and the provider of a platform that the payload has an image for, or else the platform's own.
func (c clusterAPI) payloadComponents(hcp *hyperv1.HostedControlPlane) []component.Component {
	pools := func(component.WorkloadContext) (bool, error) { return c.pools, nil }
	if !c.manager.Enabled { // what there is of the component is removed
		return []component.Component{clusterapi.NewComponent(c.manager), capiprovider.NewComponent(c.provider)}
	}
	list := []component.Component{payloadclusterapi.NewComponent().SleepUntil(pools)}
	if payloadprovider.Offered(hcp) {
		return append(list, payloadprovider.NewComponent(hcp.Spec.Platform.Type).SleepUntil(pools))
	}
	return append(list, capiprovider.NewComponent(c.provider).SleepUntil(pools))
}

// payloadOptions are those of the control-plane-operator in the form of OpenShift payloads.
func payloadOptions(o cpo.Options) controlplaneoperator.Options {
	return controlplaneoperator.Options{
		CertRotationScale: o.CertRotationScale, FeatureSet: o.FeatureSet, DefaultIngressDomain: o.DefaultIngressDomain, Management: true, Version: o.Version,
	}
}

// trouble is that of a component, for its report. What nobody asked about stays without an answer.
func (d deployment) trouble(name string) (reason, message string) {
	if t := trouble.Of(d.troubles, name); t != nil {
		return t.Reason, t.Message
	}
	return "", ""
}

// servingCertificate is a Secret with a self-signed certificate that is made once.
type servingCertificate struct {
	secret client.ObjectKey
	host   string
	kind   corev1.SecretType
}

// operatorSettings are what the process hands on to the operators of control planes.
type operatorSettings struct {
	// controlPlaneOperator is without ImageOverrides.
	controlPlaneOperator cpo.Options
	// capabilities are asked while components are planned.
	capabilities component.Capabilities
	// capiProxyImage is the image of the proxies beside programs that speak Cluster API.
	capiProxyImage      string
	environment         component.Environment
	enableCIDebugOutput bool
	metricsSet          string
	registryOverrides   string
}

// observeOperators reads what the operators of a control plane are told of the management cluster. An error concerns their steps alone.
func (r *Reconciler) observeOperators(ctx context.Context, obs *state.Observed) {
	if obs.Nodes, obs.OperatorsErr = r.Management.Describe(ctx); obs.OperatorsErr != nil {
		return
	}
	obs.Nodes.SetDefaultSecurityContext = !r.Capabilities.SecurityContextConstraints
	obs.Nodes.DefaultSecurityContextUID = obs.UID
	mirrors, err := r.Mirrors.Get(ctx)
	obs.Mirrors, obs.OperatorsErr = management.FormatMirrors(mirrors), err
}

func (r *Reconciler) operatorSettings() operatorSettings {
	return operatorSettings{
		controlPlaneOperator: r.ControlPlaneOperator,
		capabilities:         r.Management,
		capiProxyImage:       cmp.Or(r.CAPIProxyImage, r.OperatorImage),
		environment:          r.Environment,
		enableCIDebugOutput:  r.EnableCIDebugOutput,
		metricsSet:           r.MetricsSet,
		registryOverrides:    r.RegistryOverrides,
	}
}

// operatorStep deploys the control-plane-operator.
func operatorStep(obs *state.Observed, o operatorSettings) step {
	s := step{name: stepOperators, class: blockable, err: obs.OperatorsErr}
	if s.err != nil {
		return s
	}
	options := o.controlPlaneOperator
	options.ImageOverrides = obs.HC.Annotations[hyperv1.ImageOverridesAnnotation]
	options.Version = operatorVersion(obs.OperatorLabels)
	s.deploy = deployment{context: operatorContext(obs, o), troubles: obs.Troubles, controlPlaneOperator: &options}
	return s
}

// operatorVersion is what the labels of a control-plane-operator's image say of its version; empty when that is none, as in images of before.
func operatorVersion(labels map[string]string) string {
	v, err := semver.ParseSemantic(labels[images.LabelVersion])
	if err != nil {
		return ""
	}
	return v.String()
}

// capiOperatorsStep deploys Cluster API and the platform's provider, with what they need, or takes them away.
func capiOperatorsStep(obs *state.Observed, o operatorSettings) step {
	s := step{name: stepCAPIOperators, class: blockable, err: obs.OperatorsErr}
	if s.err != nil {
		return s
	}
	infra, err := capi.Infrastructure(obs.Platform, obs.HC, obs.HCP)
	if err != nil {
		s.err = err
		return s
	}
	enabled := infra != nil && obs.Capabilities.ClusterAPI
	provider := capiprovider.Options{}
	if enabled {
		if provider.Spec, err = obs.Platform.CAPIProvider(obs.HC, obs.HCP); err != nil {
			s.err = fmt.Errorf("finding out how the infrastructure provider runs: %w", err)
			return s
		}
		provider.Rules = obs.Platform.CAPIProviderPolicyRules()
		ns := names.NamespaceOf(obs.HC)
		s.shared, s.apply = []client.Object{capiRole()}, []client.Object{capiRoleBinding(obs.HC)}
		s.certificate = &servingCertificate{secret: client.ObjectKey{Namespace: ns, Name: clusterapi.WebhookSecret}, host: "capi-webhook-service." + ns + ".svc", kind: corev1.SecretTypeTLS}
		if !obs.Target.Kubernetes {
			s.certificate.kind = corev1.SecretTypeOpaque // as published
		}
	}
	s.deploy = deployment{context: operatorContext(obs, o), troubles: obs.Troubles, clusterAPI: &clusterAPI{
		manager:  clusterapi.Options{Enabled: enabled, Image: obs.HC.Annotations[hyperv1.ClusterAPIManagerImage]},
		provider: provider, pools: len(obs.Pools) > 0,
	}}
	return s
}

// operatorContext is what the components of this operator are planned from.
func operatorContext(obs *state.Observed, o operatorSettings) component.WorkloadContext {
	hcp := hostedControlPlane(obs)
	if obs.HCP != nil {
		hcp.Generation, hcp.Status.Conditions = obs.HCP.Generation, obs.HCP.Status.Conditions
	}
	return component.WorkloadContext{
		HCP:                 hcp,
		Release:             obs.Target,
		UserRelease:         obs.UserRelease,
		Capabilities:        o.capabilities,
		Management:          obs.Nodes,
		OperatorImage:       obs.OperatorImage,
		OmitOwnerReference:  true,
		EnableCIDebugOutput: o.enableCIDebugOutput,
		MetricsSet:          o.metricsSet,
		RegistryOverrides:   o.registryOverrides,
		RegistryMirrors:     obs.Mirrors,
		CAPIProxyImage:      o.capiProxyImage,
		Environment:         o.environment,
	}
}

// capiRole is of all hosted clusters together.
func capiRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: capiClusterRole, Labels: map[string]string{names.OwnedByLabel: names.HypershiftOperator}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"},
		}},
	}
}

func capiRoleBinding(hc *hyperv1.HostedCluster) *rbacv1.ClusterRoleBinding {
	ns := names.NamespaceOf(hc)
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: capiClusterRoleBinding(ns), Labels: map[string]string{names.OwnerNamespaceLabel: hc.Namespace, names.OwnerNameLabel: hc.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: capiClusterRole},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: clusterapi.Name},
			{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: capiprovider.Name},
		},
	}
}

// Cluster-scoped rights of the Cluster API programs: to find out which version of a kind follows which version of the contract.
const capiClusterRole = "hypershift-cluster-api"

func capiClusterRoleBinding(hcpNamespace string) string {
	return "hypershift-cluster-api-" + hcpNamespace
}
