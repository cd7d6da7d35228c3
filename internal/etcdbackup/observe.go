package etcdbackup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/read"
)

const (
	// owner is the field manager of what a Job needs.
	owner = "hypershift-operator-etcd-backup"
	// maxList bounds lists that a tenant can make long; retention and people keep them short.
	maxList = 500
	// maxURL is what status.snapshotURL takes.
	maxURL = 2048
)

// observe reads everything.
func (r *Reconciler) observe(ctx context.Context, backup *hyperv1.HCPEtcdBackup) (observed, error) {
	o := observed{backup: backup, now: r.Clock.Now(), namespace: r.Namespace, keep: r.Keep}
	list := &hyperv1.HCPEtcdBackupList{}
	if err := r.Client.List(ctx, list, client.InNamespace(backup.Namespace), client.Limit(maxList)); err != nil {
		return o, fmt.Errorf("listing HCPEtcdBackups of namespace %s: %w", backup.Namespace, err)
	}
	for _, b := range list.Items {
		if b.Name != backup.Name && !scheduled(&b) {
			o.siblings = append(o.siblings, b)
		}
	}
	if ended(backup) {
		if err := r.observeJobs(ctx, &o); err != nil {
			return o, err
		}
		return o, r.observeVerification(ctx, &o)
	}
	hcps := &hyperv1.HostedControlPlaneList{}
	if err := r.Client.List(ctx, hcps, client.InNamespace(backup.Namespace), client.Limit(1)); err != nil {
		return o, fmt.Errorf("listing HostedControlPlanes of namespace %s: %w", backup.Namespace, err)
	}
	var err error
	if len(hcps.Items) > 0 {
		o.hcp = &hcps.Items[0]
		if o.hc, err = r.hostedCluster(ctx, o.hcp); err != nil {
			return o, err
		}
	}
	o.etcds = map[string]*appsv1.StatefulSet{}
	for _, name := range backups.EtcdsOf(o.shards()) {
		if o.etcds[name], err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: backup.Namespace, Name: name}, &appsv1.StatefulSet{}); err != nil {
			return o, err
		}
	}
	if name := credentials(backup.Spec.Storage); name != "" {
		if o.secret, err = read.Optional(ctx, r.Client, client.ObjectKey{Namespace: r.Namespace, Name: name}, &corev1.Secret{}); err != nil {
			return o, err
		}
		o.key, o.keyErr = keyOf(o.secret)
	}
	return o, r.observeJobs(ctx, &o)
}

func (r *Reconciler) observeJobs(ctx context.Context, o *observed) error {
	jobs, err := r.jobsOf(ctx, o.backup.Namespace)
	if err != nil {
		return err
	}
	for i := range jobs {
		j := &jobs[i]
		// A backup that was deleted and created again under its name is another.
		if j.Annotations[annotationUID] == string(o.backup.UID) {
			o.job = j
		} else if done, _ := ending(j); done == "" {
			o.others = append(o.others, *j)
		}
	}
	if o.job == nil || ended(o.backup) {
		return nil // nothing is asked of it any more
	}
	done, _ := ending(o.job)
	if done == "" {
		return nil
	}
	if done == batchv1.JobComplete {
		if o.newKeys, err = r.newKeys(ctx, o); err != nil {
			return err
		}
	}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(r.Namespace), client.MatchingLabels{batchv1.JobNameLabel: o.job.Name}, client.Limit(maxList)); err != nil {
		return fmt.Errorf("listing pods of Job %s/%s: %w", r.Namespace, o.job.Name, err)
	}
	for i := range pods.Items {
		if done == batchv1.JobFailed {
			o.said = cmp.Or(lastWords(pods.Items[i].Status), o.said)
			continue
		}
		for _, c := range pods.Items[i].Status.ContainerStatuses {
			if url, summary := terminated(c); c.Name == "upload" && url != "" {
				o.url, o.summary = url, summary
			}
		}
	}
	return nil
}

// jobsOf are the Jobs that save a control plane.
func (r *Reconciler) jobsOf(ctx context.Context, namespace string) ([]batchv1.Job, error) {
	jobs := &batchv1.JobList{}
	labels := client.MatchingLabels{labelApp: appName, labelNamespace: namespace}
	if err := r.Client.List(ctx, jobs, client.InNamespace(r.Namespace), labels, client.Limit(maxList)); err != nil {
		return nil, fmt.Errorf("listing Jobs of namespace %s: %w", r.Namespace, err)
	}
	return jobs.Items, nil
}

// lastWords is what the container that failed in a pod said at its end, with its name before it; empty: none failed, or it said nothing.
func lastWords(pod corev1.PodStatus) string {
	for _, c := range slices.Concat(pod.InitContainerStatuses, pod.ContainerStatuses) {
		if c.State.Terminated == nil || c.State.Terminated.ExitCode == 0 {
			continue
		}
		// Where it wrote no message, the kubelet has put the end of its log there: what comes before the error is of no use.
		message := "\n" + strings.TrimSpace(c.State.Terminated.Message)
		if i := strings.LastIndex(message, "\nError: "); i >= 0 {
			message = message[i+len("\nError: "):]
		}
		if message = strings.TrimSpace(message); message != "" {
			return c.Name + ": " + message
		}
	}
	return ""
}

// terminated is the URL that a container left behind, empty when it left none that the API takes, and what it says of the backup.
func terminated(c corev1.ContainerStatus) (string, *bundle.Summary) {
	if c.State.Terminated == nil {
		return "", nil
	}
	url, rest, _ := strings.Cut(strings.TrimSpace(c.State.Terminated.Message), "\n")
	if len(url) > maxURL || (!strings.HasPrefix(url, backups.Scheme) && !strings.HasPrefix(url, "https://")) {
		return "", nil
	}
	summary := &bundle.Summary{}
	if json.Unmarshal([]byte(rest), summary) != nil {
		return url, nil
	}
	return url, summary
}
