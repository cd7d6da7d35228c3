package kubeapiserver

import (
	"slices"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
)

// plugins are the admission plugins of every hosted cluster.
var plugins = []string{
	"CertificateApproval",
	"CertificateSigning",
	"CertificateSubjectRestriction",
	"DefaultIngressClass",
	"DefaultStorageClass",
	"DefaultTolerationSeconds",
	"LimitRanger",
	"MutatingAdmissionWebhook",
	"NamespaceLifecycle",
	"NodeRestriction",
	"OwnerReferencesPermissionEnforcement",
	"PersistentVolumeClaimResize",
	"PodNodeSelector",
	"PodTolerationRestriction",
	"Priority",
	"ResourceQuota",
	"RuntimeClass",
	"ServiceAccount",
	"StorageObjectInUseProtection",
	"TaintNodesByCondition",
	"ValidatingAdmissionPolicy",
	"ValidatingAdmissionWebhook",
	"config.openshift.io/DenyDeleteClusterConfiguration",
	"config.openshift.io/ValidateAPIServer",
	"config.openshift.io/ValidateAuthentication",
	"config.openshift.io/ValidateConsole",
	"config.openshift.io/ValidateFeatureGate",
	"config.openshift.io/ValidateImage",
	"config.openshift.io/ValidateOAuth",
	"config.openshift.io/ValidateProject",
	"config.openshift.io/ValidateScheduler",
	"image.openshift.io/ImagePolicy",
	"network.openshift.io/ExternalIPRanger",
	"network.openshift.io/RestrictedEndpointsAdmission",
	"quota.openshift.io/ClusterResourceQuota",
	"quota.openshift.io/ValidateClusterResourceQuota",
	"route.openshift.io/IngressAdmission",
	"scheduling.openshift.io/OriginPodNodeEnvironment",
	"security.openshift.io/DefaultSecurityContextConstraints",
	"security.openshift.io/SCCExecRestrictions",
	"security.openshift.io/SecurityContextConstraint",
	"security.openshift.io/ValidateSecurityContextConstraints",
	"storage.openshift.io/CSIInlineVolumeSecurity",
}

// oauthPlugins need OpenShift's own users and groups, which a hosted cluster with users of an OIDC provider doesn't have.
var oauthPlugins = []string{"authorization.openshift.io/RestrictSubjectBindings", "authorization.openshift.io/ValidateRoleBindingRestriction"}

func admissionPlugins(hcp *hyperv1.HostedControlPlane, set func(name string, values ...string)) {
	if !kit.OAuthEnabled(hcp) {
		set("enable-admission-plugins", plugins...)
		set("disable-admission-plugins", oauthPlugins...)
		return
	}
	set("enable-admission-plugins", slices.Concat(plugins, oauthPlugins)...)
}

// pluginConfig configures those of the plugins that depend on the control plane.
func pluginConfig(hcp *hyperv1.HostedControlPlane, gates []string) map[string]any {
	enforce := "privileged"
	if slices.Contains(gates, "OpenShiftPodSecurityAdmission=true") {
		enforce = "restricted"
	}
	external := map[string]any{"apiVersion": "network.openshift.io/v1", "kind": "ExternalIPRangerAdmissionConfig", "allowIngressIP": false}
	if c := hcp.Spec.Configuration; c != nil && c.Network != nil && c.Network.ExternalIP != nil {
		var cidrs []string
		if p := c.Network.ExternalIP.Policy; p != nil {
			for _, rejected := range p.RejectedCIDRs {
				cidrs = append(cidrs, "!"+rejected)
			}
			cidrs = append(cidrs, p.AllowedCIDRs...)
		}
		kit.SetUnlessEmpty(external, "externalIPNetworkCIDRs", cidrs)
		external["allowIngressIP"] = len(c.Network.ExternalIP.AutoAssignCIDRs) > 0
	}
	configured := func(config map[string]any) map[string]any {
		return map[string]any{"location": "", "configuration": config}
	}
	return map[string]any{
		"network.openshift.io/ExternalIPRanger": configured(external),
		"network.openshift.io/RestrictedEndpointsAdmission": configured(map[string]any{
			"apiVersion": "network.openshift.io/v1", "kind": "RestrictedEndpointsAdmissionConfig",
			"restrictedCIDRs": slices.Concat(settings.ClusterCIDRs(hcp), settings.ServiceCIDRs(hcp)),
		}),
		"PodSecurity": configured(map[string]any{
			"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
			"defaults": map[string]any{
				"enforce": enforce, "enforce-version": "latest", "audit": "restricted", "audit-version": "latest", "warn": "restricted", "warn-version": "latest",
			},
			"exemptions": map[string]any{"usernames": []string{"system:serviceaccount:openshift-infra:build-controller"}},
		}),
	}
}
