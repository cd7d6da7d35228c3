// Package pkioperator is the component that issues certificates for administrators in an emergency, in payload form.
package pkioperator

import (
	"cmp"
	"embed"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	kubernetes "hcp.internal/platform/internal/controlplane/pkioperator"
)

// Name of the component.
const Name = "control-plane-pki-operator"

//go:embed assets
var assets embed.FS

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(wanted).
		WithAdaptFunction(adaptDeployment).
		WithManifestAdapter("role.yaml", component.AdaptManifest(adaptRole)).
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		Build()
}

func wanted(ctx component.WorkloadContext) (bool, error) {
	_, disabled := ctx.HCP.Annotations[hyperv1.DisablePKIReconciliationAnnotation]
	return !disabled, nil
}

// adaptRole grants what the operator needs. What is published lacks rights without which ours can't watch, and ends after two minutes. Previews show what is
// published.
func adaptRole(ctx component.WorkloadContext, role *rbacv1.Role) (err error) {
	if !ctx.PublishedRights {
		role.Rules, err = kubernetes.Rights()
	}
	return err
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	scale, err := time.ParseDuration(cmp.Or(ctx.CertRotationScale, "24h"))
	if err != nil {
		return fmt.Errorf("the scale of the rotation of certificates is %q: it must be a duration, for example 24h", ctx.CertRotationScale)
	}
	main := component.Container(&d.Spec.Template.Spec, Name)
	kit.SetEnv(main, "HOSTED_CONTROL_PLANE_NAME", ctx.HCP.Name)
	kit.SetEnv(main, "CERT_ROTATION_SCALE", scale.String())
	component.ManagementProxy(ctx, main)
	return nil
}

func adaptConfig(ctx component.WorkloadContext, cm *corev1.ConfigMap) error {
	return kit.EditConfig(cm, "config.yaml", func(config map[string]any) error {
		kit.TLSOf(ctx.HCP).ServingInfo(kit.Section(config, "servingInfo"))
		return nil
	})
}
