package hostedcontrolplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/releaseimage"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/cpo"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
)

// report patches the status. It is computed on the newest status that we know, because others write conditions too.
func (r *Reconciler) report(ctx context.Context, obs Observed) error {
	newest := &hyperv1.HostedControlPlane{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(obs.HCP), newest); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := newest.DeepCopy()
	report(&newest.Status, obs, r.Clock.Now())
	obs.HCP.Status = newest.Status
	if err := patch.Status(ctx, r.Client, before, newest); err != nil {
		return err
	}
	events.Transitions(r.Events, newest, eventRules, before.Status.Conditions, newest.Status.Conditions)
	return nil
}

// report writes what was observed into the status. It changes nothing when nothing changed, keeps good values over missing ones, and touches no
// condition that is not owned here.
func report(status *hyperv1.HostedControlPlaneStatus, obs Observed, now time.Time) {
	var conds []metav1.Condition
	for _, compute := range ownedConditions {
		conds = append(conds, compute(obs, conds))
	}
	if restored := snapshotRestored(obs); restored != nil {
		conds = append(conds, *restored)
	}
	if c := validAzureKMS(obs); c != nil {
		conds = append(conds, *c)
	}
	reportVersions(status, obs, now)
	if obs.Release != nil && obs.UserRelease != nil && obs.UserRelease.Kubernetes {
		conds = append(conds, clusterVersionConditions(versionReport{status: status.VersionStatus, waiting: obs.waiting(), failures: obs.failures(), behind: obs.behind(),
			running: runningSince(obs.HCP, status.Conditions, now), now: now})...)
		obs.blameProgress(conds)
	} else if err := errors.Join(obs.ReleaseErr, obs.UserReleaseErr); err != nil && status.ReleaseImage != obs.HCP.Spec.ReleaseImage && !obs.toldByHosted() { //nolint:staticcheck // because it has the image as the spec has it
		conds = append(conds, versionCondition(hyperv1.ClusterVersionReleaseAccepted, false, err.Error()))
	}
	if c := autoNodeEnabled(obs); c != nil {
		conds = append(conds, *c)
	} else if obs.Flavour != openShift {
		conditions.Remove(&status.Conditions, hyperv1.AutoNodeEnabled)
	}
	calm(obs, conds)
	if c := hibernated(obs, conditions.Get(conds, hyperv1.HostedControlPlaneAvailable)); c != nil {
		conds = append(conds, *c)
	} else {
		conditions.Remove(&status.Conditions, hyperv1.HostedClusterHibernated)
	}
	for i := range conds {
		conds[i].ObservedGeneration = obs.HCP.Generation
	}
	conditions.Set(&status.Conditions, now, conds...)

	status.Ready = conditions.IsTrue(conds, hyperv1.HostedControlPlaneAvailable)
	status.Initialized = status.Initialized || status.Ready
	if obs.Infra.Ready() {
		status.ControlPlaneEndpoint = hyperv1.APIEndpoint{Host: obs.Infra.APIHost, Port: obs.Infra.APIPort}
	}
	if obs.Infra.OAuthHost != "" {
		status.OAuthCallbackURLTemplate = fmt.Sprintf("https://%s/oauth2callback/[identity-provider-name]", net.JoinHostPort(obs.Infra.OAuthHost, strconv.Itoa(int(obs.Infra.OAuthPort))))
	}
	if obs.AdminKubeconfig != nil {
		status.KubeConfig = obs.AdminKubeconfig
	}
	status.CustomKubeconfig = obs.CustomKubeconfig
	reportKubeadmin(status, obs)
}

// toldByHosted says whether a hosted-cluster-config-operator for spec.releaseImage is there. It tells what the hosted cluster itself says about its version,
// and holds as long as it was made for another release; so the conditions about that have one writer at any time. Of releases of Kubernetes it tells nothing.
func (obs Observed) toldByHosted() bool {
	if obs.Flavour != openShift {
		return false
	}
	for i := range obs.Deployments {
		if obs.Deployments[i].Name != names.ConfigOperator {
			continue
		}
		for _, c := range obs.Deployments[i].Spec.Template.Spec.Containers {
			for _, env := range c.Env {
				if env.Name == releaseimage.EnvOperateOn {
					return env.Value == obs.HCP.Spec.ReleaseImage
				}
			}
		}
	}
	return false
}

// reportVersions moves the histories when the releases are known.
//
//nolint:staticcheck // because old readers read the fields that are deprecated
func reportVersions(status *hyperv1.HostedControlPlaneStatus, obs Observed, now time.Time) {
	if obs.Release == nil || obs.UserRelease == nil {
		return
	}
	r := rollout{desired: desired(obs.Release), complete: obs.complete(), generation: obs.HCP.Generation, now: now}
	status.ControlPlaneVersion = controlPlaneVersion(status.ControlPlaneVersion, r)
	if !obs.UserRelease.Kubernetes {
		return // the hosted cluster's own ClusterVersion reports, through the hosted-cluster config operator
	}
	r.desired, r.complete = desired(obs.UserRelease), r.complete && obs.behind() == ""
	status.VersionStatus = clusterVersion(status.VersionStatus, r)
	if !r.complete || status.ReleaseImage == obs.HCP.Spec.ReleaseImage && status.Version == obs.UserRelease.Version {
		return
	}
	changed := metav1.NewTime(now.Truncate(time.Second))
	status.Version, status.ReleaseImage, status.LastReleaseImageTransitionTime = obs.UserRelease.Version, obs.HCP.Spec.ReleaseImage, &changed
}

// failures says why components can't be brought to the release: what it lacks, and errors.
func (obs Observed) failures() []string {
	var list []string
	if len(obs.MissingImages) > 0 {
		list = append(list, fmt.Sprintf("release %s lacks images: %s", obs.Release.Version, listed(obs.MissingImages)))
	}
	for _, c := range obs.Components {
		rollout := conditions.Get(c.Status.Conditions, hyperv1.ControlPlaneComponentRolloutComplete)
		if rollout != nil && rollout.Status == metav1.ConditionFalse && slices.Contains([]string{component.ReconciliationErrorReason, component.JobFailedReason}, rollout.Reason) {
			list = append(list, fmt.Sprintf("%s: %s", c.Name, rollout.Message))
		}
	}
	slices.Sort(list)
	return list
}

// waiting lists the components that do not run the release completely.
func (obs Observed) waiting() []string {
	var names []string
	for _, c := range obs.Components {
		if c.Name == cpo.Name {
			continue // this process: it runs, and handles no other release
		}
		if c.Status.Version != obs.Release.Version || !conditions.IsTrue(c.Status.Conditions, hyperv1.ControlPlaneComponentRolloutComplete) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// behind says that the control plane is to stay at a minor version of Kubernetes before that of the hosted cluster's release; empty when it is not. The hosted
// cluster has its release only with a control plane of that minor version: NodePools follow it, and a kubelet may not be newer than its kube-apiserver. A payload
// of OpenShift has a cluster version operator that brings the hosted cluster to its release and says so; here its control plane does not count.
func (obs Observed) behind() string {
	if obs.Release == nil || obs.UserRelease == nil || !obs.UserRelease.Kubernetes || !olderMinor(obs.Release.Version, obs.UserRelease.Version) {
		return ""
	}
	return fmt.Sprintf("the control plane stays at %s, which spec.controlPlaneRelease names: name a release of %s there, or remove the field", obs.Release.Version, minorOf(obs.UserRelease.Version))
}

// complete reports whether the whole control plane runs the release. Only a pass that got through all components may say so: a component that is new in
// this release has no report before that.
func (obs Observed) complete() bool {
	return obs.ComponentsCurrent && len(obs.Components) > 0 && len(obs.waiting()) == 0
}
