package provider

import (
	"context"
	"errors"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"hcp.internal/karpenter/api"
)

// lookAgain is how often NodePools of the management cluster are looked at, whose changes nobody tells us.
const lookAgain = 30 * time.Second

// Classes says of each node class whether machines can be made by it. It is the only writer of its status.
type Classes struct {
	Hosted   client.Client
	Machines Machines
}

// Reconcile looks at one.
func (c *Classes) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	class := &api.HyperShiftNodeClass{}
	if err := c.Hosted.Get(ctx, req.NamespacedName, class); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := class.DeepCopyObject().(*api.HyperShiftNodeClass)
	t, err := c.Machines.Template(ctx, class.Spec.NodePool)
	unfit := Unfit{}
	switch {
	case err == nil:
		class.StatusConditions().SetTrue(status.ConditionReady)
		class.Status.Template = t.Hash()
	case errors.As(err, &unfit):
		class.StatusConditions().SetFalse(status.ConditionReady, "NodePoolUnfit", unfit.Problem)
	default:
		return ctrl.Result{}, err
	}
	if !equality.Semantic.DeepEqual(before.Status, class.Status) {
		if err := c.Hosted.Status().Patch(ctx, class, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	return ctrl.Result{RequeueAfter: lookAgain}, nil
}

// Register adds the controller to a manager of the hosted cluster.
func (c *Classes) Register(_ context.Context, mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("hypershiftnodeclass").For(&api.HyperShiftNodeClass{}).Complete(c)
}
