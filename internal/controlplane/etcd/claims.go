package etcd

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
)

// Claims are the volume claims that the StatefulSets of a control plane's etcds are going to make, of a Kubernetes release. Whoever makes them before has storage
// provide volumes while certificates are made; a StatefulSet takes claims of these names for its own.
func Claims(hcp *hyperv1.HostedControlPlane) ([]*corev1.PersistentVolumeClaim, error) {
	if hcp.Spec.Etcd.ManagementType != hyperv1.Managed {
		return nil, nil
	}
	clusters := []cluster{mainCluster}
	for _, s := range shards.Managed(hcp.Spec.Etcd) {
		clusters = append(clusters, shardCluster(s.Name))
	}
	var claims []*corev1.PersistentVolumeClaim
	for _, c := range clusters {
		of, err := c.claims(hcp)
		if err != nil {
			return nil, err
		}
		claims = append(claims, of...)
	}
	return claims, nil
}

func (c cluster) claims(hcp *hyperv1.HostedControlPlane) ([]*corev1.PersistentVolumeClaim, error) {
	raw, err := assets.ReadFile("assets/statefulset.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the asset of %s: %w", c.name, err)
	}
	set := &appsv1.StatefulSet{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer("{{.name}}", c.name, "{{.client}}", c.client, "{{.discovery}}", c.discovery).Replace(string(raw))), set); err != nil {
		return nil, fmt.Errorf("decoding the asset of %s: %w", c.name, err)
	}
	if err := c.adaptStorage(hcp, set); err != nil {
		return nil, err
	}
	var claims []*corev1.PersistentVolumeClaim
	for _, t := range set.Spec.VolumeClaimTemplates {
		for i := range c.members(component.WorkloadContext{HCP: hcp}) {
			claims = append(claims, &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: hcp.Namespace, Name: t.Name + "-" + c.memberName(i), Labels: t.Labels},
				Spec:       *t.Spec.DeepCopy(),
			})
		}
	}
	return claims, nil
}
