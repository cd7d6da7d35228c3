package hostedcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/etcdrecovery"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/kube/read"
	"hcp.internal/platform/internal/pki"
)

const (
	// recoverable is how many members an etcd must have for one of them to be replaced.
	recoverable = 3
	// recoveryPoll is how often an etcd that is not whole is looked at: that a pod crashes again is no event of its StatefulSet.
	recoveryPoll = 10 * time.Second
	// recoveryAttempts is how often the Job tries again; each waits for minutes.
	recoveryAttempts = 10

	recoveryName    = "etcd-recovery"
	recoveryAccount = "etcd-recovery-sa"
	maxMembers      = 20
)

// etcdState is one etcd of the control plane whose members can be replaced.
type etcdState struct {
	name    string
	set     *appsv1.StatefulSet // nil: there is none yet
	failing []string            // pods whose member crashes; looked at only while not all are ready
	pods    int
	job     *batchv1.Job // nil: there is none
}

// recoveryState is what is to be done about an etcd.
type recoveryState string

const (
	recoveryIdle     recoveryState = "idle"
	recoveryDue      recoveryState = "due"      // a Job has to be started
	recoveryRuns     recoveryState = "runs"     // the Job works
	recoveryFailed   recoveryState = "failed"   // a person has to look; the Job stays, for its logs
	recoveryOutlived recoveryState = "outlived" // nothing is left to do: the Job goes
)

// state decides. A failed Job goes when the etcd became whole without it.
func (e etcdState) state() recoveryState {
	switch {
	case e.job == nil && len(e.failing) > 0 && e.pods >= recoverable:
		return recoveryDue
	case e.job == nil:
		return recoveryIdle
	case jobHas(e.job, batchv1.JobComplete), jobHas(e.job, batchv1.JobFailed) && e.whole():
		return recoveryOutlived
	case jobHas(e.job, batchv1.JobFailed):
		return recoveryFailed
	}
	return recoveryRuns
}

func (e etcdState) whole() bool {
	return e.set != nil && e.set.Status.ReadyReplicas >= ptr.Deref(e.set.Spec.Replicas, 1)
}

func jobHas(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// recoverableEtcds are the names of the etcds that have enough members.
func recoverableEtcds(spec *hyperv1.HostedClusterSpec) []string {
	var etcds []string
	if spec.Etcd.ManagementType == hyperv1.Managed && spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable {
		etcds = append(etcds, names.Etcd)
	}
	for _, s := range shards.Managed(spec.Etcd) {
		if s.Replicas >= recoverable {
			etcds = append(etcds, shards.Component(s.Name))
		}
	}
	return etcds
}

// recoveryJob is the name of the Job for an etcd: etcd-recovery, or etcd-recovery-<shard>.
func recoveryJob(etcd string) string { return recoveryName + strings.TrimPrefix(etcd, names.Etcd) }

// observeEtcds reads the etcds that may have to be recovered, and the pods of those that are not whole.
func (r *Reconciler) observeEtcds(ctx context.Context, obs *observed) error {
	if !r.EtcdRecovery || obs.hcp == nil {
		return nil
	}
	ns := names.NamespaceOf(obs.hc)
	for _, name := range recoverableEtcds(&obs.hc.Spec) {
		e := etcdState{name: name}
		var err error
		if e.set, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: name}, &appsv1.StatefulSet{}); err != nil {
			return err
		}
		if e.job, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: ns, Name: recoveryJob(name)}, &batchv1.Job{}); err != nil {
			return err
		}
		if e.set != nil && !e.whole() {
			pods := &corev1.PodList{} // not cached: pods of all control planes would be many
			if err := r.Live.List(ctx, pods, client.InNamespace(ns), client.MatchingLabels{"app": name}, client.Limit(maxMembers)); err != nil {
				return fmt.Errorf("listing pods of %s in namespace %s: %w", name, ns, err)
			}
			e.pods = len(pods.Items)
			for i := range pods.Items {
				if etcdrecovery.Failing(&pods.Items[i]) {
					e.failing = append(e.failing, pods.Items[i].Name)
				}
			}
		}
		obs.etcds = append(obs.etcds, e)
	}
	return nil
}

// etcdRecoveryActive is True while a Job works.
func etcdRecoveryActive(obs *observed) metav1.Condition {
	var working, failed []string
	for _, e := range obs.etcds {
		switch e.state() {
		case recoveryRuns:
			working = append(working, recoveryJob(e.name))
		case recoveryFailed:
			failed = append(failed, recoveryJob(e.name))
		}
	}
	switch {
	case len(failed) > 0:
		return conditions.False(hyperv1.EtcdRecoveryActive, hyperv1.EtcdRecoveryJobFailedReason,
			fmt.Sprintf("Job %s could not replace a failing member: read its logs, repair etcd, and delete the Job", strings.Join(failed, ", ")))
	case len(working) > 0:
		return conditions.True(hyperv1.EtcdRecoveryActive, hyperv1.AsExpectedReason,
			fmt.Sprintf("Job %s replaces a failing member", strings.Join(working, ", ")))
	}
	return conditions.False(hyperv1.EtcdRecoveryActive, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
}

// recoveryStep starts Jobs and clears up after them. The Job is what tells that there is something to clear up, so it goes last.
func recoveryStep(obs *observed) step {
	s := step{name: stepRecovery, class: supporting}
	inUse, outlived := false, false
	for _, e := range obs.etcds {
		switch e.state() {
		case recoveryDue:
			inUse = true
			s.apply = append(s.apply, newRecoveryJob(obs, e.name))
		case recoveryRuns, recoveryFailed:
			inUse = true
		case recoveryOutlived:
			outlived = true
			s.delete = append(s.delete, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(obs.hc), Name: recoveryJob(e.name)}})
		}
	}
	switch {
	case inUse:
		s.apply = append(recoveryRights(obs.hc), s.apply...)
	case outlived:
		s.delete = append(recoveryRights(obs.hc), s.delete...)
	}
	return s
}

// recoveryRecheck is when to look again; 0: wait for events.
func recoveryRecheck(obs *observed) time.Duration {
	if slices.ContainsFunc(obs.etcds, func(e etcdState) bool { return e.set != nil && !e.whole() }) {
		return recoveryPoll
	}
	return 0
}

// recoveryRights let the Job see members' pods, and delete one with its volume.
func recoveryRights(hc *hyperv1.HostedCluster) []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: name}
	}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta(recoveryAccount), ImagePullSecrets: []corev1.LocalObjectReference{{Name: names.PullSecret}}},
		&rbacv1.Role{ObjectMeta: meta(recoveryName), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "delete"}},
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta(recoveryName),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: recoveryName},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: names.NamespaceOf(hc), Name: recoveryAccount}}},
	}
}

// newRecoveryJob runs `recover-etcd run` in our own image, next to etcd and with the certificate of its clients.
func newRecoveryJob(obs *observed, etcd string) *batchv1.Job {
	hc := obs.hc
	labels := maps.Clone(hc.Spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		"app": recoveryJob(etcd), component.ControlPlaneComponentLabel: recoveryName, component.NeedManagementKASAccessLabel: "true", component.HostedControlPlaneLabel: names.NamespaceOf(hc),
	})
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: recoveryJob(etcd), Labels: map[string]string{
			recoveryClusterName: hc.Name, recoveryClusterNamespace: hc.Namespace,
		}},
		Spec: batchv1.JobSpec{
			Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](recoveryAttempts),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: recoveryAccount, RestartPolicy: corev1.RestartPolicyNever, // one pod for each try: their logs stay
					NodeSelector: hc.Spec.NodeSelector, Tolerations: hc.Spec.Tolerations,
					SecurityContext: recoveryUser(obs),
					Containers: []corev1.Container{{
						Name: recoveryName, Image: obs.recoveryImage, ImagePullPolicy: corev1.PullIfNotPresent,
						Command: []string{"/usr/bin/hypershift-operator", "recover-etcd", "run"},
						Args:    []string{"--namespace=" + names.NamespaceOf(hc), "--name=" + etcd},
						SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
							Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
						TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
						VolumeMounts: []corev1.VolumeMount{
							{Name: "client-tls", MountPath: "/etc/etcd/tls/client", ReadOnly: true},
							{Name: "etcd-ca", MountPath: "/etc/etcd/tls/etcd-ca", ReadOnly: true},
						},
					}},
					Volumes: []corev1.Volume{component.SecretVolume("client-tls", pki.EtcdClient), component.ConfigMapVolume("etcd-ca", pki.EtcdCABundle)},
				},
			},
		},
	}
}

// recoveryUser is that of other pods of the namespace; on OpenShift its SecurityContextConstraints choose.
func recoveryUser(obs *observed) *corev1.PodSecurityContext {
	if obs.uid == 0 {
		return nil
	}
	return &corev1.PodSecurityContext{RunAsUser: ptr.To(obs.uid), FSGroup: ptr.To(obs.uid), RunAsNonRoot: ptr.To(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
}

// Labels of the Job, by which others find the HostedCluster.
const (
	recoveryClusterName      = "hypershift.openshift.io/cluster-name"
	recoveryClusterNamespace = "hypershift.openshift.io/cluster-namespace"
)
