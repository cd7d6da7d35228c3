package fleet

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/events"
	"hcp.internal/platform/internal/kube/patch"
	"hcp.internal/platform/internal/sizing"
)

// InvalidReason is the reason of ClusterSizingConfigurationValid while the sizes make no sense.
const InvalidReason = "SizeConfigurationInvalid"

// Validator says whether the sizes make sense. It is the only writer of the status of the ClusterSizingConfiguration.
type Validator struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Events may be nil.
	Events events.Recorder
}

var validRules = []events.Rule{
	{Condition: schedulingv1alpha1.ClusterSizingConfigurationValidType, Status: metav1.ConditionFalse, Warning: true, Action: "Validate"},
	{Condition: schedulingv1alpha1.ClusterSizingConfigurationValidType, Status: metav1.ConditionTrue, Action: "Validate"},
}

// Reconcile looks at the configuration, or makes the first one.
func (v *Validator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name != sizing.ConfigurationName {
		return ctrl.Result{}, nil // the definition of the kind lets no other through
	}
	config := &schedulingv1alpha1.ClusterSizingConfiguration{}
	if err := v.Client.Get(ctx, req.NamespacedName, config); apierrors.IsNotFound(err) {
		return ctrl.Result{}, v.create(ctx)
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading ClusterSizingConfiguration %s: %w", req.Name, err)
	}
	if !config.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := config.DeepCopy()
	c := conditions.True(schedulingv1alpha1.ClusterSizingConfigurationValidType, hyperv1.AsExpectedReason, "The sizes cover every number of nodes once")
	if err := sizing.Check(&config.Spec); err != nil {
		c = conditions.False(c.Type, InvalidReason, err.Error()+"; hosted clusters keep the sizes that they have")
	}
	c.ObservedGeneration = config.Generation
	conditions.Set(&config.Status.Conditions, v.Clock.Now(), c)
	if err := patch.Status(ctx, v.Client, before, config); err != nil {
		return ctrl.Result{}, err
	}
	events.Transitions(v.Events, config, validRules, before.Status.Conditions, config.Status.Conditions)
	return ctrl.Result{}, nil
}

// create makes the sizes to begin with. They are not written from the Go type: that would write delays of 0, where none means the default.
func (v *Validator) create(ctx context.Context) error {
	first := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": sizing.ConfigurationName},
		"spec": map[string]any{
			"concurrency": map[string]any{}, "transitionDelay": map[string]any{}, // so that their defaults are filled in
			"sizes": []any{
				map[string]any{"name": "small", "criteria": map[string]any{"from": int64(0), "to": int64(10)}},
				map[string]any{"name": "medium", "criteria": map[string]any{"from": int64(11), "to": int64(100)}},
				map[string]any{"name": "large", "criteria": map[string]any{"from": int64(101)}},
			},
		},
	}}
	first.SetGroupVersionKind(schedulingv1alpha1.GroupVersion.WithKind("ClusterSizingConfiguration"))
	if err := v.Client.Create(ctx, first, client.FieldOwner(validatorName)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ClusterSizingConfiguration %s: %w", sizing.ConfigurationName, err)
	}
	ctrl.LoggerFrom(ctx).Info("created the sizes to begin with", "clusterSizingConfiguration", sizing.ConfigurationName)
	return nil
}
