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

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/kube/conditions"
)

// Name of the component.
const Name = names.Etcd

//go:embed assets
var assets embed.FS

// Names inside the pod.
const (
	container        = "etcd"
	restoreContainer = "etcd-init"
	resetContainer   = "reset-member"
	stateVolume      = "cluster-state"
	dataVolume       = "data"
	clientTLSVolume  = "client-tls"
	foundedVolume    = "founded"
	restoreVariable  = "RESTORE_URL_ETCD"

	configFile   = "/etc/etcd/config/etcd.yaml"       // from the ConfigMap
	finishedFile = "/etc/etcd/clusterstate/etcd.yaml" // from the init container
)

// snapshotRestored is the condition of a HostedControlPlane that started from a snapshot and has finished doing so.
const snapshotRestored = "EtcdSnapshotRestored"

// NewComponent makes the component of the main etcd.
func NewComponent() *component.WorkloadComponent { return newComponent(mainCluster) }

func newComponent(c cluster) *component.WorkloadComponent {
	b := component.NewStatefulSetComponent(c.name, assets, component.Options{MultiZoneSpread: true}).
		WithTemplateData(c.templateData()).
		WithPredicate(c.wanted).
		WithAdaptFunction(c.adaptStatefulSet).
		WithManifestAdapter("client-service.yaml", component.AdaptManifest(c.adaptClientService)).
		WithManifestAdapter("config.yaml", component.AdaptManifest(c.adaptConfig)).
		WithManifestAdapter("founded.yaml", component.When(c.marked), component.AdaptManifest(c.adaptFounded)).
		// etcd loads its certificates for every handshake, but does not read a changed CA again. Whether the cluster was
		// founded matters when a member starts, and is no reason to start it.
		ReloadsFilesOf("server-tls", "peer-tls", clientTLSVolume, foundedVolume)
	if !c.shard {
		return b.WithManifestAdapter("pdb.yaml", component.AdaptPodDisruptionBudget()).Build()
	}
	// Pods of shards use the ServiceAccount of the main etcd, which has no rights.
	return b.WithManifestAdapter("serviceaccount.yaml", component.SkipManifest()).
		WithManifestAdapter("pdb.yaml", component.When(c.several), component.AdaptPodDisruptionBudgetOf(c.hasSeveral)).
		Build()
}

// leaveSeconds is how long a member of several serves on after its pod has been told to end. Until then the node sends new connections to
// the others; an API server that were sent to an address that is gone would wait for seconds until it tries another.
const leaveSeconds = 3

func (c cluster) adaptStatefulSet(ctx component.WorkloadContext, s *appsv1.StatefulSet) error {
	if _, known := shards.ByName(ctx.HCP.Spec.Etcd, c.name); c.shard && !known {
		return fmt.Errorf("rendering %s: %w", c.name, ErrNoShard)
	}
	pod := &s.Spec.Template.Spec
	s.Spec.Replicas = ptr.To(int32(c.members(ctx)))
	config := finishedFile
	if !c.hasSeveral(ctx) {
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
		main.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: leaveSeconds}}}
	}
	shards.Schedule(ctx.HCP.Spec.Etcd, c.spec(ctx.HCP).Scheduling, pod)
	return errors.Join(c.adaptStorage(ctx.HCP, s), c.adaptRestore(ctx, pod))
}

// adaptClientService lets kube-apiserver reach a single member as soon as it listens. Waiting for its readiness buys nothing
// when there is no other member to go to, and costs a retry at every start.
func (c cluster) adaptClientService(ctx component.WorkloadContext, svc *corev1.Service) error {
	svc.Spec.PublishNotReadyAddresses = !c.hasSeveral(ctx)
	return nil
}

// adaptRestore keeps the init container that loads a snapshot until the cluster has been founded from it. A member that loses
// its disk later gets its data from the others: a snapshot of long ago would contradict them. A shard finds its own beside that of the
// main etcd, if there is a backup behind the URL; it starts empty when its data goes with its pods anyway.
func (c cluster) adaptRestore(ctx component.WorkloadContext, pod *corev1.PodSpec) error {
	var urls []string
	if ctx.HCP.Spec.Etcd.Managed != nil {
		urls = ctx.HCP.Spec.Etcd.Managed.Storage.RestoreSnapshotURL
	}
	done := len(urls) == 0 || c.shard && (c.volatile(ctx.HCP) || !backups.WithSecret(urls[0]))
	// The condition is about the main etcd.
	done = done || !c.shard && conditions.IsTrue(ctx.HCP.Status.Conditions, snapshotRestored)
	if !done {
		var err error
		if done, err = c.founded(ctx); err != nil {
			return err
		}
	}
	if done {
		component.RemoveContainer(pod, restoreContainer)
		return nil
	}
	init := component.Container(pod, restoreContainer)
	for i := range init.Env {
		if init.Env[i].Name == restoreVariable {
			init.Env[i].Value = urls[0]
		}
	}
	if c.shard {
		init.Args = append(init.Args, "--shard="+string(c.spec(ctx.HCP).Name))
	}
	if backups.WithSecret(urls[0]) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: backups.Secret, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: backups.Secret, DefaultMode: ptr.To[int32](0o440)}}})
		init.VolumeMounts = append(init.VolumeMounts, corev1.VolumeMount{Name: backups.Secret, MountPath: backups.Mount, ReadOnly: true})
	}
	return nil
}

func dropVolume(pod *corev1.PodSpec, name string) {
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}
