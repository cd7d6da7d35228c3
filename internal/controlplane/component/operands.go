package component

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeploymentComplete says whether every replica runs what the Deployment asks for.
func DeploymentComplete(d *appsv1.Deployment) bool { return deploymentReady(d) == nil }

func deploymentReady(d *appsv1.Deployment) error {
	cond := metav1.Condition{}
	workloadRollout(d, &cond)
	if cond.Status == metav1.ConditionTrue {
		return nil
	}
	return fmt.Errorf("deployment %s is not ready: %s", d.Name, cond.Message)
}

// Operand is a Deployment that some operator makes, and that must run an image of the release before the operator counts as
// rolled out.
type Operand struct {
	Deployment, Container string
	// Tag is the image's tag in the control plane release.
	Tag string
}

// CheckOperands says what keeps operands from being rolled out, in one error for all of them. A container that a Deployment
// does not have is fine.
func CheckOperands(ctx WorkloadContext, operands ...Operand) error {
	var errs []error
	for _, o := range operands {
		d := &appsv1.Deployment{}
		if err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: o.Deployment}, d); err != nil {
			errs = append(errs, fmt.Errorf("reading deployment %s: %w", o.Deployment, err))
			continue
		}
		image, _ := ctx.Release.ImageFor(o.Tag)
		if c := Container(&d.Spec.Template.Spec, o.Container); c != nil && c.Image != image {
			errs = append(errs, fmt.Errorf("container %s of deployment %s does not run the image %s of the release", o.Container, o.Deployment, o.Tag))
			continue
		}
		errs = append(errs, deploymentReady(d))
	}
	return errors.Join(errs...)
}
