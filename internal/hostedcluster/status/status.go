package status

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/kube/conditions"
)

// Set brings the status up to what was observed, and returns the gates that it reports. The order matters: conditions compare with
// status.version.
func Set(obs *state.Observed, now time.Time) Gates {
	status := &obs.HC.Status
	status.KubeConfig = obs.PublishedRef(state.AdminKubeconfigName(obs.HC.Name))
	status.CustomKubeconfig = obs.PublishedRef(state.CustomKubeconfigName(obs.HC.Name))
	status.KubeadminPassword = obs.PublishedRef(state.KubeadminPasswordName(obs.HC.Name))
	status.Version = versionStatus(obs, now)
	if obs.HCP != nil {
		status.ControlPlaneVersion = *obs.HCP.Status.ControlPlaneVersion.DeepCopy()
		status.ControlPlaneEndpoint = controlPlaneEndpoint(obs)
		status.OAuthCallbackURLTemplate = obs.HCP.Status.OAuthCallbackURLTemplate
		status.Configuration = *obs.HCP.Status.Configuration.DeepCopy()
		status.Platform = obs.HCP.Status.Platform.DeepCopy()
		status.AutoNode = *obs.HCP.Status.AutoNode.DeepCopy()
		status.SecretEncryption = *obs.HCP.Status.SecretEncryption.DeepCopy()
	}
	// A known endpoint stays while the server is being replaced: machines have it in their user data.
	if obs.IgnitionEndpoint != "" {
		status.IgnitionEndpoint = obs.IgnitionEndpoint
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

// versionStatus is what the control plane reports. Before it does, it is made up: the wanted image, not rolled out yet.
func versionStatus(obs *state.Observed, now time.Time) *hyperv1.ClusterVersionStatus {
	if obs.HCP != nil && obs.HCP.Status.VersionStatus != nil {
		return obs.HCP.Status.VersionStatus.DeepCopy()
	}
	wanted := configv1.Release{Image: obs.HC.Spec.Release.Image}
	if obs.UserRelease != nil {
		wanted.Version = obs.UserRelease.Version
	}
	status := &hyperv1.ClusterVersionStatus{}
	if obs.HC.Status.Version != nil {
		status = obs.HC.Status.Version.DeepCopy()
	}
	status.ObservedGeneration = obs.HC.Generation
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

func controlPlaneEndpoint(obs *state.Observed) hyperv1.APIEndpoint {
	endpoint := obs.HCP.Status.ControlPlaneEndpoint
	for _, s := range obs.HC.Spec.Services {
		if s.Service == hyperv1.APIServer && s.ServicePublishingStrategy.Type == hyperv1.Route && endpoint.Host != "" {
			endpoint.Port = routePort
		}
	}
	return endpoint
}

// payloadArch is the architecture of the release, empty when it is unknown or none that the API has a name for.
func payloadArch(obs *state.Observed) hyperv1.PayloadArchType {
	if obs.UserRelease == nil {
		return ""
	}
	switch arch := hyperv1.PayloadArchType(obs.UserRelease.Arch); arch {
	case hyperv1.Multi, hyperv1.AMD64, hyperv1.ARM64, hyperv1.PPC64LE, hyperv1.S390X:
		return arch
	}
	return ""
}
