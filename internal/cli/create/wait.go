package create

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/why"
)

// Wait waits until the cluster answers and has rolled out, saying what is missing. o.Timeout bounds it; 0 means no bound.
func Wait(ctx context.Context, o Options, c client.Client, p *progress.Printer) error {
	ctx, cancel := connect.WithTimeout(ctx, o.Timeout)
	defer cancel()
	err := p.Until(ctx, fmt.Sprintf("HostedCluster %s/%s", o.Namespace, o.Name), func(ctx context.Context) (progress.State, error) {
		hc := &hyperv1.HostedCluster{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, hc); err != nil {
			if apierrors.IsNotFound(err) {
				return progress.State{}, progress.Terminal(err)
			}
			return progress.State{}, err
		}
		if !hc.DeletionTimestamp.IsZero() {
			return progress.State{}, progress.Terminal(fmt.Errorf("it is being deleted, since %s", hc.DeletionTimestamp.UTC().Format(time.RFC3339)))
		}
		components := &hyperv1.ControlPlaneComponentList{}
		// There are some forty components at most; the limit only bounds a broken server.
		if err := c.List(ctx, components, client.InNamespace(names.ControlPlaneNamespace(o.Namespace, o.Name)), client.Limit(500)); err != nil {
			return progress.State{}, err
		}
		return state(hc, components.Items), nil
	})
	if err != nil {
		return err
	}
	p.Printf("HostedCluster %s/%s is available", o.Namespace, o.Name)
	return nil
}

// gates are conditions of a HostedCluster that stop the operator while they are False: nothing moves before a person does something.
var gates = []string{
	hyperv1.ReconciliationActive, hyperv1.ValidHostedClusterConfiguration, hyperv1.SupportedHostedCluster, hyperv1.ValidReleaseImage,
	hyperv1.PlatformCredentialsFound, hyperv1.ControlPlaneAdmitted, hyperv1.ReconciliationSucceeded,
}

// line is a condition on one line: "EtcdAvailable=False (EtcdWaitingForQuorum): 0 of 1 members ready".
func line(cond *metav1.Condition) string {
	text := fmt.Sprintf("%s=%s (%s)", cond.Type, cond.Status, cond.Reason)
	if message := clip.Line(cond.Message); message != "" {
		text += ": " + message
	}
	return text
}

// state says whether a hosted cluster can be used, and if not, the one thing that a person should know about.
func state(hc *hyperv1.HostedCluster, components []hyperv1.ControlPlaneComponent) progress.State {
	conds := hc.Status.Conditions
	for _, gate := range gates {
		if cond := meta.FindStatusCondition(conds, gate); cond != nil && cond.Status == metav1.ConditionFalse {
			return progress.Waiting("%s", line(cond))
		}
	}
	for _, stage := range why.Stages {
		cond := meta.FindStatusCondition(conds, stage)
		switch {
		case cond == nil:
			if len(conds) == 0 {
				return progress.Waiting("the operator hasn't looked at it yet")
			}
		case cond.Status != metav1.ConditionTrue:
			return progress.Waiting("%s%s", line(cond), missing(components))
		}
	}
	available := meta.FindStatusCondition(conds, hyperv1.HostedClusterAvailable)
	switch {
	case available == nil || available.ObservedGeneration < hc.Generation:
		return progress.Waiting("the operator hasn't seen the newest change of the spec yet")
	case hc.Status.KubeConfig == nil:
		return progress.Waiting("its kubeconfig isn't published yet")
	case !rolledOut(hc):
		return progress.Waiting("release %s is rolling out%s", hc.Spec.Release.Image, missing(components))
	}
	return progress.Done()
}

// rolledOut says whether the newest rollout is complete and none has to follow. The image isn't compared: the history may
// name it by digest.
func rolledOut(hc *hyperv1.HostedCluster) bool {
	version := hc.Status.Version
	return version != nil && len(version.History) > 0 && version.History[0].State == configv1.CompletedUpdate &&
		!meta.IsStatusConditionTrue(hc.Status.Conditions, hyperv1.HostedClusterProgressing)
}

// missing lists the components that aren't rolled out.
func missing(components []hyperv1.ControlPlaneComponent) string {
	var names []string
	for i := range components {
		conds := components[i].Status.Conditions
		if !meta.IsStatusConditionTrue(conds, hyperv1.ControlPlaneComponentAvailable) || !meta.IsStatusConditionTrue(conds, hyperv1.ControlPlaneComponentRolloutComplete) {
			names = append(names, components[i].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "; not ready: " + strings.Join(names, ", ")
}
