package work

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/world"
)

// pool is the name of a NodePool of ours in the demo cluster, and of the ConfigMap with its configuration. The demo's own is left as it is.
const pool = "adversary"

// createPool makes a NodePool of one machine.
func (w *Work) createPool(ctx context.Context) error {
	demo := world.Key(plan.Demo)
	np := &hyperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: demo.Namespace, Name: pool, Labels: map[string]string{world.Label: "true"}},
		Spec: hyperv1.NodePoolSpec{
			ClusterName: demo.Name, Replicas: ptr.To[int32](1), Release: hyperv1.Release{Image: w.Release},
			Platform:   hyperv1.NodePoolPlatform{Type: hyperv1.LocalPlatform},
			Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace, AutoRepair: true},
		},
	}
	return client.IgnoreAlreadyExists(w.World.Client.Create(ctx, np))
}

// rollPool gives it a configuration that every machine needs, so that all are replaced.
func (w *Work) rollPool(ctx context.Context) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: world.Key(plan.Demo).Namespace, Name: pool, Labels: map[string]string{world.Label: "true"}},
		Data: map[string]string{"config": machineConfig}}
	if err := client.IgnoreAlreadyExists(w.World.Client.Create(ctx, cm)); err != nil {
		return err
	}
	return w.changePool(ctx, fmt.Sprintf(`{"spec":{"config":[{"name":%q}]}}`, pool))
}

const machineConfig = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 99-adversary}
spec:
  config:
    ignition: {version: 3.2.0}
    storage:
      files:
      - {path: /etc/adversary, mode: 420, contents: {source: "data:,rolled"}}
`

func (w *Work) changePool(ctx context.Context, patch string) error {
	np := &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: world.Key(plan.Demo).Namespace, Name: pool}}
	return w.World.Client.Patch(ctx, np, client.RawPatch(types.MergePatchType, []byte(patch)))
}
