package step

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/hostedcluster/sources"
)

// Class says what the failure of a step means for the others.
type Class int

const (
	// Critical: the steps that are blockable don't run without it.
	Critical Class = iota
	// Supporting: its failure is reported and stops nothing.
	Supporting
	// Blockable: it runs only when every critical step before it succeeded.
	Blockable
)

// Names of the steps, as they appear in error messages. Those that copy are named by what the sources are for.
const (
	Namespace      = "CPOImageAndNamespace"
	Credentials    = "PlatformCredentials"
	References     = "ReferencedResources"
	StaleCopies    = "StaleCopies"
	CreatedSecrets = "MonitoringAndCLISecrets"
	CoreHCP        = "CoreHCPChain"
	CAPICluster    = "CAPICluster"
	Kubeconfig     = "KubeconfigAndPasswordSync"
	Release        = "ReleaseImageVersion"
	Operators      = "OperatorDeployments"
	CAPIOperators  = "ClusterAPIDeployments"
	Policies       = "RBACAndPolicies"
	Recovery       = "ETCDMemberRecovery"
)

// Step is a part of the plan. It is data: a writer carries it out.
type Step struct {
	Name  string
	Class Class
	// Err is a problem found while planning: the step has failed before it starts, but its objects are applied all the same.
	Err error
	// Create is made with a plain create, because it must not exist yet.
	Create *corev1.Namespace
	Apply  []client.Object
	Delete []client.Object
	// Shared belongs to all hosted clusters together, so it does not bear the reference to one; it is applied before apply.
	Shared []client.Object
	// Mark are source objects that get our reference.
	Mark []sources.Key
	// Initialized is a Cluster whose control plane has served.
	Initialized *clusterv1.Cluster
	// Ready is an infrastructure object that no provider says anything of; nil: there is none.
	Ready *Readiness
	// Own are Secrets of the user that go with the HostedCluster.
	Own []sources.CreatedSecret
	// Certificate is made unless there is one; nil: none is needed.
	Certificate *ServingCertificate
	// Deploy comes last, and only when everything else of the step has been done.
	Deploy Deployment
}

// Readiness is what the status of an object is to hold.
type Readiness struct {
	Infra  client.Object
	Status map[string]any
}

// executor carries steps out.
type executor interface {
	execute(ctx context.Context, s Step) error
}

// Run carries the steps out in order and joins their errors. When a critical step failed, only critical errors are returned, with the
// names of the steps that did not run: the others are consequences more often than causes.
func Run(ctx context.Context, e executor, steps []Step) error {
	var criticalErrs, otherErrs []error
	var blocked []string
	for _, s := range steps {
		if s.Class == Blockable && len(criticalErrs) > 0 {
			blocked = append(blocked, s.Name)
			continue
		}
		err := errors.Join(s.Err, e.execute(ctx, s))
		if err == nil {
			continue
		}
		err = fmt.Errorf("%s: %w", s.Name, err)
		if s.Class == Critical {
			criticalErrs = append(criticalErrs, err)
		} else {
			otherErrs = append(otherErrs, err)
		}
	}
	if len(criticalErrs) == 0 {
		return errors.Join(otherErrs...)
	}
	if len(blocked) > 0 {
		criticalErrs = append(criticalErrs, fmt.Errorf("blocked by this: %s", strings.Join(blocked, ", ")))
	}
	return errors.Join(criticalErrs...)
}
