package hostedcluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
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
	"hcp.internal/platform/internal/hostedcluster/capi"
	"hcp.internal/platform/internal/hostedcluster/desired"
	"hcp.internal/platform/internal/hostedcluster/management"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/step"
	"hcp.internal/platform/internal/platform"
)

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
	// images are those of the installation, as platform.ImagesFrom gives them.
	images map[string]string
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
		images:               r.Images,
	}
}

// withImages are annotations with the images of the installation; those that a hosted cluster has of its own stay.
func (o operatorSettings) withImages(own map[string]string) map[string]string {
	if len(o.images) == 0 {
		return own
	}
	out := maps.Clone(o.images)
	maps.Copy(out, own)
	return out
}

// operatorStep deploys the control-plane-operator.
func operatorStep(obs *state.Observed, o operatorSettings) step.Step {
	s := step.Step{Name: step.Operators, Class: step.Blockable, Err: obs.OperatorsErr}
	if s.Err != nil {
		return s
	}
	options := o.controlPlaneOperator
	options.ImageOverrides = obs.HC.Annotations[hyperv1.ImageOverridesAnnotation]
	options.Version = operatorVersion(obs.OperatorLabels)
	s.Deploy = step.Deployment{Context: operatorContext(obs, o), Troubles: obs.Troubles, ControlPlaneOperator: &options}
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
func capiOperatorsStep(obs *state.Observed, o operatorSettings) step.Step {
	s := step.Step{Name: step.CAPIOperators, Class: step.Blockable, Err: obs.OperatorsErr}
	if s.Err != nil {
		return s
	}
	infra, err := capi.Infrastructure(obs.Platform, obs.HC, obs.HCP)
	if err != nil {
		s.Err = err
		return s
	}
	enabled := infra != nil && obs.Capabilities.ClusterAPI
	hc := obs.HC
	if len(o.images) > 0 {
		hc = hc.DeepCopy()
		hc.Annotations = o.withImages(hc.Annotations)
	}
	provider := capiprovider.Options{}
	if enabled {
		if provider.Spec, err = obs.Platform.CAPIProvider(hc, obs.HCP); err != nil {
			s.Err = fmt.Errorf("finding out how the infrastructure provider runs: %w", err)
			return s
		}
		provider.Rules = obs.Platform.CAPIProviderPolicyRules()
		ns := names.NamespaceOf(obs.HC)
		s.Shared, s.Apply = []client.Object{desired.CAPIRole()}, []client.Object{desired.CAPIRoleBinding(obs.HC)}
		s.Certificate = &step.ServingCertificate{Secret: client.ObjectKey{Namespace: ns, Name: clusterapi.WebhookSecret}, Host: "capi-webhook-service." + ns + ".svc", Kind: corev1.SecretTypeTLS}
		if !obs.Target.Kubernetes {
			s.Certificate.Kind = corev1.SecretTypeOpaque // as published
		}
	}
	in := operatorContext(obs, o)
	for _, p := range platform.ProgramImages() { // the components of payloads look there
		if image := hc.Annotations[p.Annotation]; image != "" {
			metav1.SetMetaDataAnnotation(&in.HCP.ObjectMeta, p.Annotation, image)
		}
	}
	s.Deploy = step.Deployment{Context: in, Troubles: obs.Troubles, ClusterAPI: &step.ClusterAPI{
		Manager:  clusterapi.Options{Enabled: enabled, Image: hc.Annotations[hyperv1.ClusterAPIManagerImage]},
		Provider: provider, Pools: len(obs.Pools) > 0,
	}}
	return s
}

// operatorContext is what the components of this operator are planned from.
func operatorContext(obs *state.Observed, o operatorSettings) component.WorkloadContext {
	hcp := desired.HostedControlPlane(obs)
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
