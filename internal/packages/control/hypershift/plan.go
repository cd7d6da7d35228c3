package hypershift

import (
	"cmp"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/packages/engine/owner"
)

// settings are the operator's.
type settings struct {
	// Image of the connector; empty: it isn't known, and connectors are left as they are.
	Image string
	// PackageImage installs the connector as a Package instead.
	PackageImage string
	Affinity     *corev1.Affinity
	Tolerations  []corev1.Toleration
	UserID       *int64
}

// observed is what a decision about a connector looks at.
type observed struct {
	// Key of the HostedCluster, and Namespace of its control plane.
	Key       client.ObjectKey
	Namespace string
	// Cluster is nil when it is gone.
	Cluster *hyperv1.HostedCluster
	// Owner is what the namespace says whose it is, {namespace}/{name}; empty: it doesn't say. Present: it is there, and not going.
	Owner   string
	Present bool
	// Parts are what there is of a connector that was deployed for this HostedCluster, without a Package.
	Parts []client.Object
	// Package that the connector was installed by, nil when there is none for this HostedCluster.
	Package *v1alpha1.Package
}

// plan is what to do. The zero plan does nothing.
type plan struct {
	// Delete goes first. While there is something to delete, nothing is applied.
	Delete []client.Object
	Apply  []client.Object
	// Package to create, or to update to.
	Package *v1alpha1.Package
}

// planFor gives every hosted cluster that is available a connector in one of two ways, and takes away the one of a cluster that is gone but has left
// its namespace behind. It touches nothing in a namespace that goes, or belongs to another cluster.
func planFor(in observed, s settings) (plan, error) {
	if !in.Present || (in.Owner != "" && in.Owner != in.Key.String()) {
		return plan{}, nil
	}
	mine := append([]client.Object{}, in.Parts...)
	switch {
	case in.Cluster == nil:
		if in.Package != nil {
			mine = append(mine, in.Package)
		}
		return plan{Delete: mine}, nil
	case !in.Cluster.DeletionTimestamp.IsZero(), !conditions.IsTrue(in.Cluster.Status.Conditions, string(hyperv1.HostedClusterAvailable)):
		return plan{}, nil // it keeps what it has
	}
	owners, err := ownersOf(in.Cluster)
	if err != nil {
		return plan{}, err
	}
	if s.PackageImage != "" {
		if len(mine) > 0 {
			return plan{Delete: mine}, nil
		}
		p, err := packageOf(in, s, owners)
		return plan{Package: p}, err
	}
	if s.Image == "" {
		return plan{}, nil
	}
	if in.Package != nil {
		return plan{Delete: []client.Object{in.Package}}, nil
	}
	d := deployment{
		Namespace: in.Namespace, Owners: owners, Image: s.Image, NodeSelector: in.Cluster.Spec.NodeSelector, Tolerations: in.Cluster.Spec.Tolerations,
		Affinity: s.Affinity, MoreTolerations: s.Tolerations, UserID: s.UserID,
		PriorityClass: cmp.Or(in.Cluster.Annotations[hyperv1.ControlPlanePriorityClass], hyperv1.DefaultControlPlanePriorityClass),
	}
	return plan{Apply: d.objects()}, nil
}

// ownersOf is the annotation that names a HostedCluster as the controller.
func ownersOf(hc *hyperv1.HostedCluster) (string, error) {
	text, err := json.Marshal([]owner.Entry{{
		APIVersion: hyperv1.GroupVersion.String(), Kind: hostedCluster.Kind, Name: hc.Name, Namespace: hc.Namespace, UID: hc.UID, Controller: true,
	}})
	if err != nil {
		return "", fmt.Errorf("encoding owners: %w", err)
	}
	return string(text), nil
}

// packageOf is the Package that a connector is installed by.
func packageOf(in observed, s settings, owners string) (*v1alpha1.Package, error) {
	p := &v1alpha1.Package{}
	p.Namespace, p.Name = in.Namespace, connectorPackage
	p.Annotations = map[string]string{v1alpha1.OwnersAnnotation: owners}
	p.Spec = v1alpha1.PackageSpec{Image: s.PackageImage, Component: connectorPackage}
	config := map[string]any{}
	if s.Affinity != nil {
		config["affinity"] = s.Affinity
	}
	if len(s.Tolerations) > 0 {
		config["tolerations"] = s.Tolerations
	}
	if len(config) == 0 {
		return p, nil
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration of the connector: %w", err)
	}
	p.Spec.Config = &runtime.RawExtension{Raw: raw}
	return p, nil
}
