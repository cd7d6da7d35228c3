package hostedcluster

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

// class says what the failure of a step means for the others.
type class int

const (
	// critical: the steps that are blockable don't run without it.
	critical class = iota
	// supporting: its failure is reported and stops nothing.
	supporting
	// blockable: it runs only when every critical step before it succeeded.
	blockable
)

// Names of the steps, as they appear in error messages. Those that copy are named by what the sources are for.
const (
	stepNamespace      = "CPOImageAndNamespace"
	stepCredentials    = "PlatformCredentials"
	stepReferences     = "ReferencedResources"
	stepStaleCopies    = "StaleCopies"
	stepCreatedSecrets = "MonitoringAndCLISecrets"
	stepCoreHCP        = "CoreHCPChain"
	stepCAPICluster    = "CAPICluster"
	stepKubeconfig     = "KubeconfigAndPasswordSync"
	stepRelease        = "ReleaseImageVersion"
	stepOperators      = "OperatorDeployments"
	stepCAPIOperators  = "ClusterAPIDeployments"
	stepPolicies       = "RBACAndPolicies"
	stepRecovery       = "ETCDMemberRecovery"
)

// step is a part of the plan. It is data: a writer carries it out.
type step struct {
	name  string
	class class
	// err is a problem found while planning: the step has failed before it starts, but its objects are applied all the same.
	err error
	// create is made with a plain create, because it must not exist yet.
	create *corev1.Namespace
	apply  []client.Object
	delete []client.Object
	// shared belongs to all hosted clusters together, so it does not bear the reference to one; it is applied before apply.
	shared []client.Object
	// mark are source objects that get our reference.
	mark []sources.Key
	// initialized is a Cluster whose control plane has served.
	initialized *clusterv1.Cluster
	// ready is an infrastructure object that no provider says anything of; nil: there is none.
	ready *readiness
	// own are Secrets of the user that go with the HostedCluster.
	own []sources.CreatedSecret
	// certificate is made unless there is one; nil: none is needed.
	certificate *servingCertificate
	// deploy comes last, and only when everything else of the step has been done.
	deploy deployment
}

// readiness is what the status of an object is to hold.
type readiness struct {
	infra  client.Object
	status map[string]any
}

// executor carries steps out.
type executor interface {
	execute(ctx context.Context, s step) error
}

// runSteps carries the steps out in order and joins their errors. When a critical step failed, only critical errors are returned, with the
// names of the steps that did not run: the others are consequences more often than causes.
func runSteps(ctx context.Context, e executor, steps []step) error {
	var criticalErrs, otherErrs []error
	var blocked []string
	for _, s := range steps {
		if s.class == blockable && len(criticalErrs) > 0 {
			blocked = append(blocked, s.name)
			continue
		}
		err := errors.Join(s.err, e.execute(ctx, s))
		if err == nil {
			continue
		}
		err = fmt.Errorf("%s: %w", s.name, err)
		if s.class == critical {
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
