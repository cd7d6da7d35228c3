package hostedcluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/capiprovider"
	"hcp.internal/platform/internal/controlplane/clusterapi"
	"hcp.internal/platform/internal/controlplane/trouble"
	"hcp.internal/platform/internal/kube/read"
)

// deployed are the components that this operator deploys itself. The troubles of others are told by the control-plane-operator.
var deployed = []string{names.ControlPlaneOperator, clusterapi.Name, capiprovider.Name}

const (
	// troubleAfter is how long pods may take to run before anybody asks why not.
	troubleAfter = 20 * time.Second
	// troubleRecheck is how often it is asked: pods are not watched for it.
	troubleRecheck = 15 * time.Second
)

// observeTroubles looks why pods of deployed do not run, when some don't.
func (r *Reconciler) observeTroubles(ctx context.Context, obs *observed) error {
	if obs.hcp == nil || r.Clock.Since(obs.hcp.CreationTimestamp.Time) < troubleAfter {
		return nil
	}
	var lacking []appsv1.Deployment
	for _, name := range deployed {
		d, err := read.Optional(ctx, r.Client, client.ObjectKey{Namespace: obs.hcp.Namespace, Name: name}, &appsv1.Deployment{})
		if err != nil {
			return err
		}
		if d != nil && d.Status.AvailableReplicas < ptr.Deref(d.Spec.Replicas, 1) {
			lacking = append(lacking, *d)
		}
	}
	if obs.lacking = len(lacking) > 0; !obs.lacking {
		return nil
	}
	var err error
	if obs.troubles, err = trouble.Look(ctx, r.Live, obs.hcp.Namespace, lacking, nil, r.Clock.Now(), deployed...); err != nil {
		return fmt.Errorf("looking why pods of %s do not run: %w", names.BackReference(obs.hc), err)
	}
	return nil
}

// operatorTrouble says why there is no control-plane-operator to say how the control plane is; nil: there is, or may be in a moment.
func (obs *observed) operatorTrouble() *trouble.Trouble {
	return trouble.Of(obs.troubles, names.ControlPlaneOperator)
}

// rolloutTrouble is what keeps a release from being rolled out, as reason and message; no reason: nothing that is known.
func (obs *observed) rolloutTrouble() (reason, message string) {
	if t := obs.operatorTrouble(); t != nil {
		return t.Reason, t.Message
	}
	c := obs.hcpCondition(hyperv1.ClusterVersionProgressing)
	if c == nil || c.Status != metav1.ConditionTrue || !slices.Contains(trouble.Reasons(), c.Reason) {
		return "", ""
	}
	return c.Reason, c.Message
}
