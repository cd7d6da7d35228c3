package hcpstatus

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/configoperator/hold"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/patch"
)

const (
	// Controller is the name of the controller.
	Controller = "hcpstatus"
	// resync is a safety net for lost watches.
	resync = 5 * time.Minute
	jitter = 0.2
	// timeout bounds reading one object of the hosted cluster.
	timeout = 10 * time.Second
)

// Kinds that are read.
var (
	ClusterVersion = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ClusterVersion"}
	Authentication = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Authentication"}
)

// Reconciler keeps status.versionStatus, status.configuration, the conditions ClusterVersion…, and the deprecated fields about versions. It is their only writer on an
// OpenShift payload, from when it has been deployed for the release of the spec. Before that the control-plane-operator tells by ClusterVersionReleaseAccepted when the
// release can't be read at all.
type Reconciler struct {
	Management client.Client // not cached: the decision whether to write needs what was written last
	Hosted     client.Client
	Clock      clock.PassiveClock
	// Hold says why nothing is to be done, if so.
	Hold hold.Func
}

// Reconcile tells once what the hosted cluster says.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	hcp, done, err := hold.Begin(ctx, r.Management, req, r.Hold, r.Clock.Now())
	if hcp == nil {
		return done, err
	}
	version, err := r.statusOf(ctx, ClusterVersion, "version")
	if err != nil {
		return ctrl.Result{}, err
	}
	authentication, err := r.statusOf(ctx, Authentication, "cluster")
	if err != nil {
		return ctrl.Result{}, err
	}
	before := hcp.DeepCopy()
	tell(&hcp.Status, reportOf(version, hcp.Generation), func(conds ...metav1.Condition) {
		conditions.Set(&hcp.Status.Conditions, r.Clock.Now(), conds...)
	})
	err = patch.Status(ctx, r.Management, before, hcp)
	// By itself, so that one that the API doesn't take doesn't hide the version.
	before = hcp.DeepCopy()
	hcp.Status.Configuration.Authentication = authenticationOf(authentication)
	if err = errors.Join(err, patch.Status(ctx, r.Management, before, hcp)); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status of HostedControlPlane %s: %w", req, err)
	}
	return ctrl.Result{RequeueAfter: wait.Jitter(resync, jitter)}, nil
}

// statusOf reads the status of an object of the hosted cluster; nil when there is none.
func (r *Reconciler) statusOf(ctx context.Context, kind schema.GroupVersionKind, name string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	err := r.Hosted.Get(ctx, client.ObjectKey{Name: name}, u)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s of the hosted cluster: %w", kind.Kind, name, err)
	}
	status, _ := u.Object["status"].(map[string]any)
	return status, nil
}
