// Package etcd is the component that keeps the data of a hosted cluster.
//
// A member is configured by a file (ConfigMap etcd-config), because etcd takes the one setting that differs between starts,
// whether it founds a cluster or joins one, from the same place as all others, and its image has no shell that could put an
// environment together. A single member always founds its cluster or finds its data, so it reads the file as it is. Of
// several, each has an init container that completes the file.
package etcd

import (
	"embed"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/kube/conditions"
)

// Name of the component.
const Name = "etcd"

//go:embed assets
var assets embed.FS

// Names inside the pod.
const (
	container        = "etcd"
	restoreContainer = "etcd-init"
	resetContainer   = "reset-member"
	stateVolume      = "cluster-state"
	clientTLSVolume  = "client-tls"
	foundedVolume    = "founded"
	restoreVariable  = "RESTORE_URL_ETCD"

	configFile   = "/etc/etcd/config/etcd.yaml"       // from the ConfigMap
	finishedFile = "/etc/etcd/clusterstate/etcd.yaml" // from the init container
)

// snapshotRestored is the condition of a HostedControlPlane that started from a snapshot and has finished doing so.
const snapshotRestored = "EtcdSnapshotRestored"

// NewComponent makes the component.
func NewComponent() *component.WorkloadComponent {
	return component.NewStatefulSetComponent(Name, assets, component.Options{MultiZoneSpread: true}).
		WithPredicate(managed).
		WithAdaptFunction(adaptStatefulSet).
		WithManifestAdapter("client-service.yaml", component.AdaptManifest(adaptClientService)).
		WithManifestAdapter("config.yaml", component.AdaptManifest(adaptConfig)).
		WithManifestAdapter("founded.yaml", component.When(founded)).
		WithManifestAdapter("pdb.yaml", component.AdaptPodDisruptionBudget()).
		// etcd loads its certificates for every handshake, but does not read a changed CA again. Whether the cluster was
		// founded matters when a member starts, and is no reason to start it.
		ReloadsFilesOf("server-tls", "peer-tls", clientTLSVolume, foundedVolume).
		Build()
}

func managed(ctx component.WorkloadContext) (bool, error) {
	return ctx.HCP.Spec.Etcd.ManagementType == hyperv1.Managed, nil
}

// members is how many members a control plane has.
func members(ctx component.WorkloadContext) int {
	if ctx.HighlyAvailable() {
		return 3
	}
	return 1
}

func adaptStatefulSet(ctx component.WorkloadContext, s *appsv1.StatefulSet) error {
	pod := &s.Spec.Template.Spec
	s.Spec.Replicas = ptr.To(int32(members(ctx)))
	config := finishedFile
	if members(ctx) == 1 {
		config = configFile
		component.RemoveContainer(pod, resetContainer)
		dropVolume(pod, stateVolume)
		dropVolume(pod, clientTLSVolume)
		dropVolume(pod, foundedVolume)
	}
	main := component.Container(pod, container)
	main.Args = []string{"--config-file=" + config}
	if config == finishedFile {
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: stateVolume, MountPath: "/etc/etcd/clusterstate", ReadOnly: true})
	}
	return errors.Join(adaptStorage(ctx.HCP, s), adaptRestore(ctx, pod))
}

// adaptClientService lets kube-apiserver reach a single member as soon as it listens. Waiting for its readiness buys nothing
// when there is no other member to go to, and costs a retry at every start.
func adaptClientService(ctx component.WorkloadContext, svc *corev1.Service) error {
	svc.Spec.PublishNotReadyAddresses = members(ctx) == 1
	return nil
}

// adaptStorage takes size and class of the volumes from the HostedControlPlane.
func adaptStorage(hcp *hyperv1.HostedControlPlane, s *appsv1.StatefulSet) error {
	if hcp.Spec.Etcd.Managed == nil || hcp.Spec.Etcd.Managed.Storage.PersistentVolume == nil {
		return nil
	}
	volume := hcp.Spec.Etcd.Managed.Storage.PersistentVolume
	claim := &s.Spec.VolumeClaimTemplates[0].Spec
	claim.StorageClassName = volume.StorageClassName
	if volume.Size != nil {
		if volume.Size.Sign() <= 0 {
			return fmt.Errorf("spec.etcd.managed.storage.persistentVolume.size is %s; it must be more than zero", volume.Size)
		}
		claim.Resources.Requests[corev1.ResourceStorage] = *volume.Size
	}
	return nil
}

// adaptRestore keeps the init container that loads a snapshot until the cluster has been founded from it. A member that loses
// its disk later gets its data from the others: a snapshot of long ago would contradict them.
func adaptRestore(ctx component.WorkloadContext, pod *corev1.PodSpec) error {
	var urls []string
	if ctx.HCP.Spec.Etcd.Managed != nil {
		urls = ctx.HCP.Spec.Etcd.Managed.Storage.RestoreSnapshotURL
	}
	done := len(urls) == 0 || conditions.IsTrue(ctx.HCP.Status.Conditions, snapshotRestored)
	if !done {
		var err error
		if done, err = founded(ctx); err != nil {
			return err
		}
	}
	if done {
		component.RemoveContainer(pod, restoreContainer)
		return nil
	}
	c := component.Container(pod, restoreContainer)
	for i := range c.Env {
		if c.Env[i].Name == restoreVariable {
			c.Env[i].Value = urls[0]
		}
	}
	return nil
}

func dropVolume(pod *corev1.PodSpec, name string) {
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}
