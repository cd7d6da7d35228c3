package recovery

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
	// fewest is how many members an etcd must have for one of them to be replaced.
	fewest = 3
	// poll is how often an etcd that is not whole is looked at: that a pod crashes again is no event of its StatefulSet.
	poll = 10 * time.Second
	// attempts is how often the Job tries again; each waits for minutes.
	attempts = 10

	jobName    = "etcd-recovery"
	account    = "etcd-recovery-sa"
	maxMembers = 20
)

// Etcd is one etcd of the control plane whose members can be replaced.
type Etcd struct {
	name    string
	set     *appsv1.StatefulSet // nil: there is none yet
	failing []string            // pods whose member crashes; looked at only while not all are ready
	pods    int
	job     *batchv1.Job // nil: there is none
}

// state is what is to be done about an etcd.
type state string

const (
	stateIdle     state = "idle"
	stateDue      state = "due"      // a Job has to be started
	stateRuns     state = "runs"     // the Job works
	stateFailed   state = "failed"   // a person has to look; the Job stays, for its logs
	stateOutlived state = "outlived" // nothing is left to do: the Job goes
)

// state decides. A failed Job goes when the etcd became whole without it.
func (e Etcd) state() state {
	switch {
	case e.job == nil && len(e.failing) > 0 && e.pods >= fewest:
		return stateDue
	case e.job == nil:
		return stateIdle
	case jobHas(e.job, batchv1.JobComplete), jobHas(e.job, batchv1.JobFailed) && e.whole():
		return stateOutlived
	case jobHas(e.job, batchv1.JobFailed):
		return stateFailed
	}
	return stateRuns
}

func (e Etcd) whole() bool {
	return e.set != nil && e.set.Status.ReadyReplicas >= ptr.Deref(e.set.Spec.Replicas, 1)
}

func jobHas(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// recoverable are the names of the etcds that have enough members.
func recoverable(spec *hyperv1.HostedClusterSpec) []string {
	var etcds []string
	if spec.Etcd.ManagementType == hyperv1.Managed && spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable {
		etcds = append(etcds, names.Etcd)
	}
	for _, s := range shards.Managed(spec.Etcd) {
		if s.Replicas >= fewest {
			etcds = append(etcds, shards.Component(s.Name))
		}
	}
	return etcds
}

// jobOf is the name of the Job for an etcd: etcd-recovery, or etcd-recovery-<shard>.
func jobOf(etcd string) string { return jobName + strings.TrimPrefix(etcd, names.Etcd) }

// Observe reads the etcds of a hosted cluster that may have to be recovered, and the pods of those that are not whole. cached has
// StatefulSets and Jobs, live is uncached.
func Observe(ctx context.Context, cached, live client.Reader, hc *hyperv1.HostedCluster) (etcds []Etcd, err error) {
	ns := names.NamespaceOf(hc)
	for _, name := range recoverable(&hc.Spec) {
		e := Etcd{name: name}
		if e.set, err = read.Optional(ctx, cached, client.ObjectKey{Namespace: ns, Name: name}, &appsv1.StatefulSet{}); err != nil {
			return nil, err
		}
		if e.job, err = read.Optional(ctx, cached, client.ObjectKey{Namespace: ns, Name: jobOf(name)}, &batchv1.Job{}); err != nil {
			return nil, err
		}
		if e.set != nil && !e.whole() {
			pods := &corev1.PodList{} // not cached: pods of all control planes would be many
			if err := live.List(ctx, pods, client.InNamespace(ns), client.MatchingLabels{"app": name}, client.Limit(maxMembers)); err != nil {
				return nil, fmt.Errorf("listing pods of %s in namespace %s: %w", name, ns, err)
			}
			e.pods = len(pods.Items)
			for i := range pods.Items {
				if etcdrecovery.Failing(&pods.Items[i]) {
					e.failing = append(e.failing, pods.Items[i].Name)
				}
			}
		}
		etcds = append(etcds, e)
	}
	return etcds, nil
}

// Active is the condition of that name: True while a Job works.
func Active(etcds []Etcd) metav1.Condition {
	var working, failed []string
	for _, e := range etcds {
		switch e.state() {
		case stateRuns:
			working = append(working, jobOf(e.name))
		case stateFailed:
			failed = append(failed, jobOf(e.name))
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

// Options are what a Job is made from.
type Options struct {
	// Image is ours, which the Job runs.
	Image string
	// UID is the user of the pods of the namespace; 0: the management cluster assigns one itself.
	UID int64
}

// Plan starts Jobs and clears up after them. The Job is what tells that there is something to clear up, so it goes last.
func Plan(hc *hyperv1.HostedCluster, etcds []Etcd, o Options) (write, remove []client.Object) {
	inUse, outlived := false, false
	for _, e := range etcds {
		switch e.state() {
		case stateDue:
			inUse = true
			write = append(write, newJob(hc, e.name, o))
		case stateRuns, stateFailed:
			inUse = true
		case stateOutlived:
			outlived = true
			remove = append(remove, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: jobOf(e.name)}})
		}
	}
	switch {
	case inUse:
		write = append(rights(hc), write...)
	case outlived:
		remove = append(rights(hc), remove...)
	}
	return write, remove
}

// Recheck is when to look again; 0: wait for events.
func Recheck(etcds []Etcd) time.Duration {
	if slices.ContainsFunc(etcds, func(e Etcd) bool { return e.set != nil && !e.whole() }) {
		return poll
	}
	return 0
}

// rights let the Job see members' pods, and delete one with its volume.
func rights(hc *hyperv1.HostedCluster) []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: name}
	}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta(account), ImagePullSecrets: []corev1.LocalObjectReference{{Name: names.PullSecret}}},
		&rbacv1.Role{ObjectMeta: meta(jobName), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "delete"}},
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta(jobName),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: jobName},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: names.NamespaceOf(hc), Name: account}}},
	}
}

// newJob runs `recover-etcd run` in our own image, next to etcd and with the certificate of its clients.
func newJob(hc *hyperv1.HostedCluster, etcd string, o Options) *batchv1.Job {
	labels := maps.Clone(hc.Spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		"app": jobOf(etcd), component.ControlPlaneComponentLabel: jobName, component.NeedManagementKASAccessLabel: "true", component.HostedControlPlaneLabel: names.NamespaceOf(hc),
	})
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceOf(hc), Name: jobOf(etcd), Labels: map[string]string{
			clusterNameLabel: hc.Name, clusterNamespaceLabel: hc.Namespace,
		}},
		Spec: batchv1.JobSpec{
			Completions: ptr.To[int32](1), BackoffLimit: ptr.To[int32](attempts),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: account, RestartPolicy: corev1.RestartPolicyNever, // one pod for each try: their logs stay
					NodeSelector: hc.Spec.NodeSelector, Tolerations: hc.Spec.Tolerations,
					SecurityContext: user(o.UID),
					Containers: []corev1.Container{{
						Name: jobName, Image: o.Image, ImagePullPolicy: corev1.PullIfNotPresent,
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

// user is that of other pods of the namespace; on OpenShift its SecurityContextConstraints choose.
func user(uid int64) *corev1.PodSecurityContext {
	if uid == 0 {
		return nil
	}
	return &corev1.PodSecurityContext{RunAsUser: ptr.To(uid), FSGroup: ptr.To(uid), RunAsNonRoot: ptr.To(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
}

// Labels of the Job, by which others find the HostedCluster.
const (
	clusterNameLabel      = "hypershift.openshift.io/cluster-name"
	clusterNamespaceLabel = "hypershift.openshift.io/cluster-namespace"
)
