package hostedcluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

// setStatus brings the status up to what was observed, and returns the gates that it reports. The order matters: conditions compare with
// status.version.
func setStatus(obs *observed, now time.Time) gates {
	status := &obs.hc.Status
	status.KubeConfig = obs.publishedRef(adminKubeconfigName(obs.hc.Name))
	status.CustomKubeconfig = obs.publishedRef(customKubeconfigName(obs.hc.Name))
	status.KubeadminPassword = obs.publishedRef(kubeadminPasswordName(obs.hc.Name))
	status.Version = versionStatus(obs, now)
	if obs.hcp != nil {
		status.ControlPlaneVersion = *obs.hcp.Status.ControlPlaneVersion.DeepCopy()
		status.ControlPlaneEndpoint = controlPlaneEndpoint(obs)
		status.OAuthCallbackURLTemplate = obs.hcp.Status.OAuthCallbackURLTemplate
		status.Configuration = *obs.hcp.Status.Configuration.DeepCopy()
		status.Platform = obs.hcp.Status.Platform.DeepCopy()
		status.AutoNode = *obs.hcp.Status.AutoNode.DeepCopy()
		status.SecretEncryption = *obs.hcp.Status.SecretEncryption.DeepCopy()
	}
	// A known endpoint stays while the server is being replaced: machines have it in their user data.
	if obs.ignitionEndpoint != "" {
		status.IgnitionEndpoint = obs.ignitionEndpoint
	}
	if arch := payloadArch(obs); arch != "" {
		status.PayloadArch = arch
	}
	g := decideGates(obs, now)
	set, absent := conditionsFor(obs, g, now)
	conditions.Set(&status.Conditions, now, set...)
	conditions.Remove(&status.Conditions, absent...)
	return g.reported(obs)
}

func (obs *observed) publishedRef(name string) *corev1.LocalObjectReference {
	if !obs.published.existing[name] {
		return nil
	}
	return &corev1.LocalObjectReference{Name: name}
}

// versionStatus is what the control plane reports. Before it does, it is made up: the wanted image, not rolled out yet.
func versionStatus(obs *observed, now time.Time) *hyperv1.ClusterVersionStatus {
	if obs.hcp != nil && obs.hcp.Status.VersionStatus != nil {
		return obs.hcp.Status.VersionStatus.DeepCopy()
	}
	wanted := configv1.Release{Image: obs.hc.Spec.Release.Image}
	if obs.userRelease != nil {
		wanted.Version = obs.userRelease.Version
	}
	status := &hyperv1.ClusterVersionStatus{}
	if obs.hc.Status.Version != nil {
		status = obs.hc.Status.Version.DeepCopy()
	}
	status.ObservedGeneration = obs.hc.Generation
	switch {
	case len(status.History) == 0 || status.Desired.Image != wanted.Image:
		if len(status.History) > 0 && validReleaseImage(obs).Status != metav1.ConditionTrue {
			return status // the old release stays the desired one until the new one can be used
		}
		status.History = slices.Insert(status.History, 0, configv1.UpdateHistory{
			State: configv1.PartialUpdate, StartedTime: metav1.NewTime(now.Truncate(time.Second)), Image: wanted.Image, Version: wanted.Version,
		})
		const most = 10 // before a control plane exists, more than a few tries are not history
		status.History = status.History[:min(len(status.History), most)]
		status.Desired = wanted
	case wanted.Version != "":
		status.Desired.Version, status.History[0].Version = wanted.Version, wanted.Version
	}
	return status
}

// routePort is where the front of a Route listens, whatever the port of the API server behind it.
const routePort = 443

func controlPlaneEndpoint(obs *observed) hyperv1.APIEndpoint {
	endpoint := obs.hcp.Status.ControlPlaneEndpoint
	for _, s := range obs.hc.Spec.Services {
		if s.Service == hyperv1.APIServer && s.ServicePublishingStrategy.Type == hyperv1.Route && endpoint.Host != "" {
			endpoint.Port = routePort
		}
	}
	return endpoint
}

// payloadArch is the architecture of the release, empty when it is unknown or none that the API has a name for.
func payloadArch(obs *observed) hyperv1.PayloadArchType {
	if obs.userRelease == nil {
		return ""
	}
	switch arch := hyperv1.PayloadArchType(obs.userRelease.Arch); arch {
	case hyperv1.Multi, hyperv1.AMD64, hyperv1.ARM64, hyperv1.PPC64LE, hyperv1.S390X:
		return arch
	}
	return ""
}

// hasBeenAvailable tells that Available was True once; an annotation remembers it, because conditions forget.
func hasBeenAvailable(hc *hyperv1.HostedCluster) bool {
	return hc.Annotations[hyperv1.HasBeenAvailableAnnotation] == "true"
}

func isAvailable(hc *hyperv1.HostedCluster) bool {
	return conditions.IsTrue(hc.Status.Conditions, hyperv1.HostedClusterAvailable)
}
