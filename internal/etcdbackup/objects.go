package etcdbackup

import (
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/etcdbackup/job"
	"hcp.internal/platform/internal/kube/memorylimit"
)

// Labels of the Job and its pod.
const (
	labelApp       = "app"
	labelHCP       = "hypershift.openshift.io/hcp"
	labelBackup    = "hypershift.openshift.io/backup-name"
	labelNamespace = "hypershift.openshift.io/hcp-namespace"

	// annotationUID is the backup's UID.
	annotationUID = "hypershift.openshift.io/backup-uid"
	// annotationKeys, on what the Job is given and on the Job, are the names of the encryption keys that the sealed objects hold, separated by commas; none where nothing
	// is sealed.
	annotationKeys = "hypershift.openshift.io/encryption-keys"
	// annotationLeftOut, on both, is what the backup has no room for, in words.
	annotationLeftOut = "hypershift.openshift.io/left-out"

	appName = "etcd-backup"
	// verifyName is the app of Jobs that read backups: they don't stand in the way of new ones.
	verifyName = "etcd-verify"
	account    = "etcd-backup-job"
	policy     = "allow-etcd-backup"
)

// Limits of the Job.
const (
	// deadline bounds the whole: etcd's largest database, 8 GiB, takes minutes.
	deadline = 900
	// retention is how long the Job stays when it has ended, in seconds: long enough for an operator that restarts.
	retention = 600
	// userID is that of the pod where the management cluster assigns none.
	userID = 1001
)

// Where the containers of the Job find things.
const (
	certificates   = "/etc/etcd-certs"
	folder         = "/etc/etcd-backup"
	snapshotFile   = folder + "/snapshot.db"
	credentialsDir = "/etc/etcd-backup-creds"
	tokenDir       = "/var/run/secrets/aws-iam-token"
	azureTokenDir  = "/var/run/secrets/azure/tokens"
	payloadVolume  = "cluster"
	payloadDir     = "/etc/etcd-backup-cluster"
	storageDir     = "/var/lib/etcd-backups"
	scratchDir     = "/var/lib/scratch"
)

// world is what the Job is made for.
type world struct {
	namespace string // of the operator
	// image is ours.
	image string
	// user is the pod's; 0: the management cluster assigns one.
	user int64
	// pullSecret: the operator's namespace has one.
	pullSecret bool
}

// rights let the Job read the client certificate of etcd, and nothing else, and reach its port.
func rights(o observed) []client.Object {
	ns := o.backup.Namespace
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta(account), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{job.ClientSecret}, Verbs: []string{"get"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{job.CAConfigMap}, Verbs: []string{"get"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta(account),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: o.namespace, Name: account}}},
		&networkingv1.NetworkPolicy{ObjectMeta: meta(policy), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: backups.PodsOf(o.shards()),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(2379))}},
				From: []networkingv1.NetworkPolicyPeer{{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: o.namespace}},
					// Not the whole namespace: other programs run there.
					PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labelApp: appName, labelNamespace: ns}},
				}},
			}},
		}},
	}
}

// serviceAccount is the Job's, the same for all control planes; it may do nothing but what rights give it for a time.
func serviceAccount(w world) *corev1.ServiceAccount {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: account}}
	if w.pullSecret {
		sa.ImagePullSecrets = []corev1.LocalObjectReference{{Name: names.PullSecret}}
	}
	return sa
}

// jobLabels are those of the Job and its pod.
func jobLabels(o observed) map[string]string {
	return map[string]string{labelApp: appName, labelHCP: o.hcp.Name, labelBackup: o.backup.Name, labelNamespace: o.backup.Namespace}
}

// newJob saves etcd: one container fetches the certificate, one writes the snapshot, one puts it into the storage.
func newJob(o observed, w world, payload *corev1.Secret) *batchv1.Job {
	ns := o.backup.Namespace
	fetch := container("fetch-certs", w.image, "fetch-etcd-certs", "--hcp-namespace", ns, "--output-dir", certificates)
	fetch.VolumeMounts = []corev1.VolumeMount{{Name: "etcd-certs", MountPath: certificates}}
	inits := []corev1.Container{fetch}
	for _, shard := range append([]string{""}, o.shards()...) {
		inits = append(inits, snapshotOf(ns, w.image, shard))
	}
	upload := container("upload", w.image, append([]string{"etcd-upload"}, uploadArgs(o, payload)...)...)
	upload.VolumeMounts = []corev1.VolumeMount{{Name: "etcd-backup", MountPath: folder, ReadOnly: true}, {Name: payloadVolume, MountPath: payloadDir, ReadOnly: true}}
	volumes := []corev1.Volume{emptyDir("etcd-certs"), emptyDir("etcd-backup"), secretVolume(payloadVolume, payload.Name)}
	volumes = append(volumes, reachStorage(o, &upload)...)
	made := w.job(o, jobLabels(o), generateName(o.backup.Name), "", inits, upload, volumes)
	for _, key := range []string{annotationKeys, annotationLeftOut} {
		if value, there := payload.Annotations[key]; there {
			made.Annotations[key] = value
		}
	}
	return made
}

// snapshotOf saves the main etcd, or a shard into a file beside: etcd-upload looks for it there.
func snapshotOf(namespace, image, shard string) corev1.Container {
	name, file := "snapshot", snapshotFile
	if shard != "" {
		name, file = "snapshot-"+shard, folder+"/"+backups.EtcdOf(shard)+".db"
	}
	c := container(name, image, "etcd-snapshot", "--endpoint", "https://"+backups.ClientServiceOf(shard)+"."+namespace+".svc:2379", "--cacert", certificates+"/"+job.CAFile,
		"--cert", certificates+"/"+job.CertFile, "--key", certificates+"/"+job.KeyFile, "--output", file)
	c.VolumeMounts = []corev1.VolumeMount{{Name: "etcd-certs", MountPath: certificates, ReadOnly: true}, {Name: "etcd-backup", MountPath: folder}}
	return c
}

// job is a Job of a backup; name or generate is its name.
func (w world) job(o observed, labels map[string]string, generate, name string, inits []corev1.Container, main corev1.Container, volumes []corev1.Volume) *batchv1.Job {
	// The operator's cache holds what carries its label.
	own := maps.Clone(labels)
	own[names.OwnedByLabel] = names.HypershiftOperator
	if o.webhookHelps() {
		labels = maps.Clone(labels)
		labels[azureIdentityLabel] = "true"
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: generate, Name: name, Labels: own,
			Annotations: map[string]string{annotationUID: string(o.backup.UID)}},
		Spec: batchv1.JobSpec{
			ActiveDeadlineSeconds: ptr.To[int64](deadline), BackoffLimit: ptr.To[int32](0), TTLSecondsAfterFinished: ptr.To[int32](retention),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: account, RestartPolicy: corev1.RestartPolicyNever, SecurityContext: podSecurity(w.user),
					InitContainers: inits, Containers: []corev1.Container{main}, Volumes: volumes,
				},
			},
		},
	}
}

func secretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To[int32](0o440)}}}
}

// generateName begins the name of the Job, which the name of a pod and a label repeat: 63 characters with what the API server adds.
func generateName(backup string) string {
	const most = 63 - len("etcd-backup-") - 1 - 5
	if len(backup) > most {
		backup = strings.TrimRight(backup[:most], "-.")
	}
	return "etcd-backup-" + strings.ReplaceAll(backup, ".", "-") + "-"
}

func container(name, image string, args ...string) corev1.Container {
	c := corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:                  []string{"/usr/bin/control-plane-operator", args[0]},
		Args:                     args[1:],
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Resources:                corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}},
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
	memorylimit.Set(&c, "512Mi")
	return c
}

func podSecurity(user int64) *corev1.PodSecurityContext {
	s := &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if user != 0 {
		s.RunAsUser, s.FSGroup = ptr.To(user), ptr.To(user)
	}
	return s
}

func emptyDir(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}
