// Package pkioperator is the component that runs the control-plane-pki-operator, which issues and revokes certificates for
// break-glass access to the hosted cluster.
//
// Nearly no hosted cluster ever needs it, and a process for each would cost as much memory as another operator. So it runs from
// when somebody asks for it: by the first CertificateSigningRequestApproval or CertificateRevocationRequest in the control plane
// namespace. From then on it stays, because what it has issued has to be renewed.
package pkioperator

import (
	"embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	certificatesv1alpha1 "hcp.internal/api/certificates/v1alpha1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/pki"
)

// Name of the component.
const Name = names.PKIOperator

//go:embed assets
var assets embed.FS

// askingKinds are those by which somebody asks for certificates.
var askingKinds = []string{"CertificateSigningRequestApproval", "CertificateRevocationRequest"}

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewDeploymentComponent(Name, assets, component.Options{NeedsManagementKASAccess: true}).
		WithPredicate(wanted).
		WithAdaptFunction(adaptDeployment).
		Build()
}

// Rights are those of the operator, whatever the release.
func Rights() ([]rbacv1.PolicyRule, error) {
	return component.RoleRules(assets, "assets/role.yaml", Name)
}

// wanted says whether somebody asks for certificates, or did.
func wanted(ctx component.WorkloadContext) (bool, error) {
	if _, disabled := ctx.HCP.Annotations[pki.DisableAnnotation]; disabled {
		return false, nil
	}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: pki.TotalClientCABundle}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		return err == nil, err
	}
	for _, kind := range askingKinds {
		gvk := certificatesv1alpha1.GroupVersion.WithKind(kind)
		if ctx.Capabilities == nil {
			return false, nil
		}
		if served, err := ctx.Capabilities.Accessible(ctx.Context, gvk); err != nil || !served {
			return false, err
		}
		list := &metav1.PartialObjectMetadataList{}
		gvk.Kind += "List"
		list.SetGroupVersionKind(gvk)
		if err := ctx.Reader.List(ctx.Context, list, client.InNamespace(ctx.HCP.Namespace)); err != nil {
			return false, fmt.Errorf("listing %ss: %w", kind, err)
		}
		if len(list.Items) > 0 {
			return true, nil
		}
	}
	return false, nil
}

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	main := component.Container(&d.Spec.Template.Spec, Name)
	main.Env = append(main.Env, corev1.EnvVar{Name: "HOSTED_CONTROL_PLANE_NAME", Value: ctx.HCP.Name})
	if ctx.CertRotationScale != "" {
		main.Env = append(main.Env, corev1.EnvVar{Name: "CERT_ROTATION_SCALE", Value: ctx.CertRotationScale})
	}
	return nil
}
