package etcdbackup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
	"hcp.internal/platform/internal/etcdbackup/bundle"
	"hcp.internal/platform/internal/kube/conditions"
)

func newBackup(name string, conds ...metav1.Condition) *hyperv1.HCPEtcdBackup {
	b := &hyperv1.HCPEtcdBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: name, UID: "1"}, Spec: hyperv1.HCPEtcdBackupSpec{
		Storage: hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.S3BackupStorage, S3: &hyperv1.HCPEtcdBackupS3{
			Bucket: "backups", Region: "eu-west-1", KeyPrefix: "demo/", Credentials: hyperv1.EncryptionSecretReference{Name: "bucket"}}}}}
	b.Status.Conditions = conds
	return b
}

func reason(status metav1.ConditionStatus, reason string) metav1.Condition {
	return conditions.New(hyperv1.EtcdBackupCompleted, status, reason, "")
}

func members(n int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &n}, Status: appsv1.StatefulSetStatus{ReadyReplicas: n}}
}

// sharded gives the control plane a shard that is saved and one whose data goes with its pods.
func sharded(o *observed) {
	o.hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Shards: []hyperv1.ManagedEtcdShard{
		{Name: "leases", Replicas: 1}, {Name: "events", Replicas: 1, Storage: &hyperv1.EtcdShardStorage{Type: hyperv1.EmptyDirEtcdShardStorage}}}}}
	o.etcds["etcd-leases"] = members(1)
}

// inAzure has the backup go to Azure, by a client's secret.
func inAzure(o *observed) *hyperv1.HCPEtcdBackupAzureBlob {
	blob := &hyperv1.HCPEtcdBackupAzureBlob{StorageAccount: "mine", Container: "backups", KeyPrefix: "demo", Credentials: hyperv1.EncryptionSecretReference{Name: "bucket"}}
	o.backup.Spec.Storage = hyperv1.HCPEtcdBackupStorage{StorageType: hyperv1.AzureBlobBackupStorage, AzureBlob: blob}
	o.secret = &corev1.Secret{Data: map[string][]byte{"credentials": []byte(`{"tenantId":"t","clientId":"c","clientSecret":"hunter2"}`)}}
	return blob
}

// ready is all that a backup needs.
func ready() observed {
	return observed{
		backup: newBackup("one"), namespace: "hypershift", keep: 5,
		hcp:    &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-demo", Name: "demo"}},
		etcds:  map[string]*appsv1.StatefulSet{"etcd": members(3)},
		secret: &corev1.Secret{Data: map[string][]byte{"credentials": []byte("[default]\n")}},
	}
}

func jobWith(kind batchv1.JobConditionType, message string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "etcd-backup-one-x"}}
	if kind != "" {
		j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Message: message}}
	}
	return j
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*observed)
		reason  string
		message string
		bubbled string
		start   bool
		again   bool
	}{
		"When all is there it should start": {func(*observed) {}, "BackupInProgress", "Backup Job created, waiting for completion", "BackupInProgress", true, true},
		"When there is no control plane it should fail": {
			func(o *observed) { o.hcp = nil }, "BackupFailed", "HostedControlPlane not found in namespace clusters-demo", "", false, false},
		"When a shard isn't there it should wait": {
			func(o *observed) { sharded(o); delete(o.etcds, "etcd-leases") }, "EtcdUnhealthy", "etcd-leases StatefulSet not found", "", false, true},
		"When a shard isn't whole it should wait": {
			func(o *observed) { sharded(o); o.etcds["etcd-leases"].Status.ReadyReplicas = 0 }, "EtcdUnhealthy", "etcd-leases StatefulSet not fully ready: 0/1 replicas ready", "", false, true},
		"When a shard is missing whose data goes with its pods it should begin all the same": {sharded, "BackupInProgress", "waiting", "BackupInProgress", true, true},
		"When there is no etcd it should wait":                                               {func(o *observed) { o.etcds = nil }, "EtcdUnhealthy", "etcd StatefulSet not found", "", false, true},
		"When a member is missing it should wait": {
			func(o *observed) { o.etcds["etcd"].Status.ReadyReplicas = 2 }, "EtcdUnhealthy", "etcd StatefulSet not fully ready: 2/3 replicas ready", "", false, true},
		"When etcd has no members, as of a cluster that sleeps, it should wait": {
			func(o *observed) { o.etcds["etcd"] = members(0) }, "EtcdUnhealthy", "etcd StatefulSet has no members: the cluster sleeps, or its etcd is being restored", "", false, true},
		"When its name is longer than a label may be it should fail": {
			func(o *observed) { o.backup.Name = strings.Repeat("a", 64) }, "BackupFailed", "the name has 64 characters, and labels that lead back to it hold 63: create it under a shorter name", "", false, false},
		"When another Job of the control plane runs it should be rejected": {
			func(o *observed) { o.others = []batchv1.Job{*jobWith("", "")} }, "BackupRejected", "Job etcd-backup-one-x is making another backup", "", false, false},
		"When the credentials are missing it should say where": {
			func(o *observed) { o.secret = nil }, "BackupFailed", `credential Secret "bucket" not found in namespace "hypershift"`, "", false, false},
		"When the storage is in Azure it should start": {func(o *observed) { inAzure(o) }, "BackupInProgress", "waiting for completion", "BackupInProgress", true, true},
		"When credentials of Azure are none it should say what they must be": {
			func(o *observed) { inAzure(o); o.secret.Data = map[string][]byte{"credentials": []byte("[default]\n")} }, "BackupFailed", "Secret hypershift/bucket: key credentials: it must be JSON", "", false, false},
		"When Azure is to encrypt and no scope has the key it should say how": {
			func(o *observed) { inAzure(o).EncryptionKeyURL = "https://vault.vault.azure.net/keys/a" }, "BackupFailed", "write its name into key encryption-scope of Secret hypershift/bucket", "", false, false},
		"When the scope is no name of one it should say so": {
			func(o *observed) { inAzure(o); o.secret.Data["encryption-scope"] = []byte("https://vault") }, "BackupFailed", "3 to 63 letters, digits and hyphens", "", false, false},
		"When a volume is to stand for Azure it should say what it can stand for": {
			func(o *observed) { inAzure(o); o.secret.Data["volume-claim"] = []byte("disk") }, "BackupFailed", "use storageType S3", "", false, false},
		"When the endpoint of Azure has no TLS it should say that its URL can't be recorded": {
			func(o *observed) {
				inAzure(o)
				o.secret.Data["credentials"] = []byte(`{"accountKey":"a2V5","blobEndpoint":"http://10.0.0.1:10000/mine"}`)
			}, "BackupFailed", "blobEndpoint (AZURE_BLOB_ENDPOINT) must begin with https://", "", false, false},
		"When a key of AWS is to encrypt on a volume it should say that none does": {
			func(o *observed) {
				o.secret.Data["volume-claim"], o.key = []byte("disk"), make([]byte, 32)
				o.backup.Spec.Storage.S3.KMSKeyARN = "arn:aws:kms:eu-west-1:123456789012:key/a"
			}, "BackupFailed", "remove spec.storage.s3.kmsKeyARN to save on the volume", "", false, false},
		"When the storage is none it should say so": {
			func(o *observed) { o.backup.Spec.Storage = hyperv1.HCPEtcdBackupStorage{StorageType: "GCS"} }, "BackupFailed", "unsupported storage type: GCS", "", false, false},
		"When the Job runs it should wait": {func(o *observed) { o.job = jobWith("", "") }, "BackupInProgress", "waiting for completion", "BackupInProgress", false, true},
		"When the Job runs and etcd is not whole it should wait for the Job": {
			func(o *observed) { o.job, o.etcds = jobWith("", ""), nil }, "BackupInProgress", "waiting", "BackupInProgress", false, true},
		"When the Job has failed it should repeat why": {
			func(o *observed) { o.job = jobWith(batchv1.JobFailed, "deadline\nexceeded") }, "BackupFailed", "Backup Job failed: deadline exceeded", "BackupFailed", false, true},
		"When the Job's container has said why it failed it should be repeated": {
			func(o *observed) {
				o.job, o.said = jobWith(batchv1.JobFailed, "Job has reached the specified backoff limit"), "upload: NoSuchBucket: none (create the bucket)"
			}, "BackupFailed", "Backup Job failed: upload: NoSuchBucket: none (create the bucket)", "BackupFailed", false, true},
		"When the Job is complete it should have succeeded": {
			func(o *observed) { o.job, o.url = jobWith(batchv1.JobComplete, ""), "s3://backups/demo/1.db" }, "BackupSucceeded", "Backup completed successfully", "BackupSucceeded", false, true},
		"When the Job is complete and nobody knows where the snapshot is it should have failed": {
			func(o *observed) { o.job = jobWith(batchv1.JobComplete, "") }, "BackupFailed", "its result is unknown: look for the snapshot in the storage", "BackupFailed", false, true},
		"When the snapshot may need a key that the backup lacks it should have failed": {
			func(o *observed) {
				o.job, o.url, o.newKeys = jobWith(batchv1.JobComplete, ""), "s3://backups/demo/1.db.enc", []string{"key-2"}
			}, "BackupFailed", "data that is encrypted with key-2, which the backup lacks; create another HCPEtcdBackup", "BackupFailed", false, true},
		"When the Job has vanished it should not start another": {
			func(o *observed) { o.backup = newBackup("one", reason("False", "BackupInProgress")) }, "BackupFailed", "the Job is gone", "BackupFailed", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := ready()
			tc.change(&o)
			p := planFor(o)
			g.Expect(p.condition.Reason).To(Equal(tc.reason))
			g.Expect(p.condition.Message).To(ContainSubstring(tc.message))
			g.Expect(p.start).To(Equal(tc.start))
			g.Expect(p.again != 0).To(Equal(tc.again))
			if tc.bubbled == "" {
				g.Expect(p.bubbled).To(BeNil())
			} else {
				g.Expect(p.bubbled.Reason).To(Equal(tc.bubbled))
			}
			g.Expect(p.succeeded).To(Equal(tc.reason == "BackupSucceeded"))
		})
	}
}

// TestTurn: backups of schedules wait for each other.
func TestTurn(t *testing.T) {
	o := ready()
	o.backup.Labels = map[string]string{backups.ScheduleLabel: "daily"}
	o.others = []batchv1.Job{*jobWith("", "")}
	t.Run("When another Job of the control plane runs and a schedule made the backup it should wait for its turn", func(t *testing.T) {
		g, p := NewWithT(t), planFor(o)
		g.Expect(p.condition.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(p.condition.Reason).To(Equal("BackupWaiting"))
		g.Expect(p.condition.Message).To(Equal("Job etcd-backup-one-x is making another backup of this control plane: this one starts by itself when that Job has ended"))
		g.Expect(p.start).To(BeFalse())
		g.Expect(p.bubbled).To(BeNil())
		g.Expect(p.again).To(Equal(poll))
	})
	t.Run("When its turn has come it should start", func(t *testing.T) {
		g := NewWithT(t)
		o.backup.Status.Conditions, o.others = []metav1.Condition{reason("False", "BackupWaiting")}, nil
		p := planFor(o)
		g.Expect(p.start).To(BeTrue())
		g.Expect(p.condition.Reason).To(Equal(hyperv1.BackupInProgressReason))
	})
}

func TestLastWords(t *testing.T) {
	ended := func(name string, code int32, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}}
	}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"When the main container failed it should be its error, and not what it logged before": {corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{ended("snapshot", 0, "saved")},
			ContainerStatuses:     []corev1.ContainerStatus{ended("upload", 1, "Warning: it is slow\nError: NoSuchBucket: none\nand more\n")}}, "upload: NoSuchBucket: none\nand more"},
		"When an earlier container failed it should be its error": {corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{ended("fetch-certs", 1, "Error: reading Secret a/b: forbidden"), {Name: "snapshot"}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "upload"}}}, "fetch-certs: reading Secret a/b: forbidden"},
		"When it was killed without a word nothing should be said": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("upload", 137, "")}}, ""},
		"When it ended in another way its message should stay":     {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("upload", 128, "no such image")}}, "upload: no such image"},
		"When none failed nothing should be said":                  {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("upload", 0, "s3://backups/1.db")}}, ""},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(lastWords(tc.status)).To(Equal(tc.want)) })
	}
}

func TestEnded(t *testing.T) {
	t.Run("When it has ended and another runs what is open should stay open", func(t *testing.T) {
		g := NewWithT(t)
		o := ready()
		o.backup = newBackup("one", reason("True", "BackupSucceeded"))
		o.siblings = []hyperv1.HCPEtcdBackup{*newBackup("two", reason("False", "EtcdUnhealthy"))}
		g.Expect(planFor(o).clear).To(BeFalse())
		o.siblings = []hyperv1.HCPEtcdBackup{*newBackup("two", reason("False", "BackupRejected"))}
		g.Expect(planFor(o).clear).To(BeTrue())
	})
	t.Run("When it has ended and the Job of a backup that was deleted runs what is open should stay open", func(t *testing.T) {
		g := NewWithT(t)
		o := ready()
		o.backup = newBackup("one", reason("False", "BackupRejected"))
		o.others = []batchv1.Job{*jobWith("", "")}
		g.Expect(planFor(o).clear).To(BeFalse())
		o.others = nil
		g.Expect(planFor(o).clear).To(BeTrue())
	})
	t.Run("When there are more than are kept the oldest successful ones should go, and no others", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			g := NewWithT(t)
			o := ready()
			o.backup = newBackup("last", reason("True", "BackupSucceeded"))
			o.backup.CreationTimestamp = metav1.NewTime(time.Unix(1_000_000, 0))
			o.keep = rapid.IntRange(1, 4).Draw(t, "keep")
			good := 1
			for i := range rapid.IntRange(0, 8).Draw(t, "siblings") {
				why := rapid.SampledFrom([]string{"BackupSucceeded", "BackupFailed", "BackupRejected", "BackupInProgress", "EtcdUnhealthy"}).Draw(t, "reason")
				status := metav1.ConditionFalse
				if why == "BackupSucceeded" {
					status, good = metav1.ConditionTrue, good+1
				}
				b := newBackup(fmt.Sprint("b", i), reason(status, why))
				b.CreationTimestamp = metav1.NewTime(time.Unix(int64(rapid.IntRange(0, 100).Draw(t, "age")), 0))
				o.siblings = append(o.siblings, *b)
			}
			got := planFor(o).expired
			g.Expect(got).To(HaveLen(max(0, good-o.keep)))
			for _, b := range got {
				g.Expect(completed(&b).Reason).To(Equal("BackupSucceeded"))
				g.Expect(b.Name).NotTo(Equal("last"), "the newest stays")
			}
		})
	})
}

func TestJob(t *testing.T) {
	w := world{namespace: "hypershift", image: "registry.example.com/operator:1", user: userID}
	payload := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "etcd-backup-1"}, Data: map[string][]byte{metaKey: nil}}
	t.Run("When the Secret has keys they should be a file, in no argument and no variable", func(t *testing.T) {
		g := NewWithT(t)
		o := ready()
		o.secret.Data["credentials"] = []byte("[default]\naws_secret_access_key = hunter2\n")
		o.backup.Spec.Storage.S3.KMSKeyARN = "arn:aws:kms:eu-west-1:123456789012:key/a"
		pod := newJob(o, w, payload).Spec.Template.Spec
		g.Expect(fmt.Sprint(pod)).NotTo(ContainSubstring("hunter2"))
		g.Expect(pod.Containers[0].Args).To(ContainElements("--credentials-file", "/etc/etcd-backup-creds/credentials", "--aws-kms-key-arn"))
		g.Expect(*pod.SecurityContext.RunAsNonRoot).To(BeTrue())
	})
	t.Run("When the Secret names a role it should be taken by a token", func(t *testing.T) {
		g := NewWithT(t)
		o := ready()
		o.secret.Data["credentials"] = []byte(" arn:aws:iam::123456789012:role/backups\n")
		upload := newJob(o, w, payload).Spec.Template.Spec.Containers[0]
		g.Expect(upload.Env).To(ContainElement(corev1.EnvVar{Name: "AWS_ROLE_ARN", Value: "arn:aws:iam::123456789012:role/backups"}))
		g.Expect(upload.Args).NotTo(ContainElement("--credentials-file"))
	})
	for name, change := range map[string]func(*observed){
		"": func(*observed) {}, "of a role ": func(o *observed) { o.secret.Data["credentials"] = []byte("arn:aws:iam::123456789012:role/backups") },
		"of Azure ": func(o *observed) { inAzure(o) }, "of an identity of Azure ": func(o *observed) { inAzure(o); identity(o, "t") },
	} {
		t.Run("When mounts "+name+"are looked at each should have its volume", func(t *testing.T) {
			g := NewWithT(t)
			o := ready()
			change(&o)
			pod := newJob(o, w, payload).Spec.Template.Spec
			volumes := map[string]bool{}
			for _, v := range pod.Volumes {
				volumes[v.Name] = true
			}
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				for _, m := range c.VolumeMounts {
					g.Expect(volumes).To(HaveKey(m.Name), c.Name)
				}
			}
		})
	}
	t.Run("When the backup has any name the Job's should be one that a label takes", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			name := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,240}[a-z0-9])?`).Draw(t, "name")
			if problems := validation.IsDNS1123Label(generateName(name) + "abcde"); strings.Count(name, "..") == 0 && len(problems) > 0 {
				t.Fatal(name, problems)
			}
		})
	})
}

// identity has the Secret name a workload identity.
func identity(o *observed, tenant string) {
	o.secret.Data = map[string][]byte{"cloud": []byte("AZURE_TENANT_ID=" + tenant + "\nAZURE_CLIENT_ID=c\nAZURE_BLOB_ENDPOINT=https://mine.example.com\n")}
}

func TestAzureJob(t *testing.T) {
	w := world{namespace: "hypershift", image: "registry.example.com/operator:1", user: userID}
	payload := &corev1.Secret{Data: map[string][]byte{metaKey: nil}}
	azure := func(change func(*observed)) (observed, corev1.PodTemplateSpec) {
		o := ready()
		inAzure(&o)
		change(&o)
		return o, newJob(o, w, payload).Spec.Template
	}
	t.Run("When the Secret has a client's secret it should be a file, in no argument and no variable", func(t *testing.T) {
		g := NewWithT(t)
		_, pod := azure(func(o *observed) { o.secret.Data["encryption-scope"] = []byte("mykeys\n") })
		g.Expect(fmt.Sprint(pod)).NotTo(ContainSubstring("hunter2"))
		g.Expect(strings.Join(pod.Spec.Containers[0].Args, " ")).To(ContainSubstring(
			"--storage-type AzureBlob --azure-container backups --azure-storage-account mine --key-prefix demo --azure-encryption-scope mykeys --credentials-file /etc/etcd-backup-creds/credentials"))
		g.Expect(pod.Labels).NotTo(HaveKey(azureIdentityLabel))
	})
	t.Run("When the Secret names an identity it should be proved by a token of the Job's own, and change no ServiceAccount", func(t *testing.T) {
		g := NewWithT(t)
		_, pod := azure(func(o *observed) { identity(o, "t") })
		upload := pod.Spec.Containers[0]
		g.Expect(upload.Env).To(ConsistOf(corev1.EnvVar{Name: "AZURE_CLIENT_ID", Value: "c"}, corev1.EnvVar{Name: "AZURE_TENANT_ID", Value: "t"},
			corev1.EnvVar{Name: "AZURE_FEDERATED_TOKEN_FILE", Value: "/var/run/secrets/azure/tokens/token"}))
		g.Expect(upload.Args).To(ContainElements("--azure-endpoint", "https://mine.example.com"))
		g.Expect(upload.Args).NotTo(ContainElement("--credentials-file"))
		g.Expect(pod.Labels).NotTo(HaveKey(azureIdentityLabel))
		g.Expect(serviceAccount(w).Annotations).To(BeEmpty())
	})
	t.Run("When the identity's tenant isn't known Azure's webhook should be asked for it", func(t *testing.T) {
		g := NewWithT(t)
		_, pod := azure(func(o *observed) { identity(o, "") })
		g.Expect(pod.Labels).To(HaveKeyWithValue(azureIdentityLabel, "true"))
		g.Expect(pod.Spec.Containers[0].Env).To(HaveLen(2))
	})
	t.Run("When it is read back it should be reached in the same way", func(t *testing.T) {
		g := NewWithT(t)
		o, _ := azure(func(*observed) {})
		o.backup.Status.SnapshotURL = "https://mine.blob.core.windows.net/backups/demo/1.db"
		g.Expect(strings.Join(verifyArgs(o), " ")).To(Equal("etcd-verify --url https://mine.blob.core.windows.net/backups/demo/1.db --scratch-dir /var/lib/scratch --credentials-file /etc/etcd-backup-creds/credentials"))
	})
}

// TestStorageKeys: the cluster says what its backups are encrypted with in the storage, and a backup may say otherwise.
func TestStorageKeys(t *testing.T) {
	const clusters, own = "arn:aws:kms:eu-west-1:123456789012:key/cluster", "arn:aws:kms:eu-west-1:123456789012:key/own"
	says := func(o *observed, b hyperv1.EtcdBackupSpec) {
		o.hcp.Spec.Etcd.Managed = &hyperv1.ManagedEtcdSpec{Backup: &b}
	}
	aws := hyperv1.EtcdBackupSpec{Platform: "AWS", AWS: &hyperv1.HCPEtcdBackupEncryptionMetadataAWS{KMSKeyARN: clusters}}
	azure := hyperv1.EtcdBackupSpec{Platform: "Azure", Azure: &hyperv1.HCPEtcdBackupEncryptionMetadataAzure{EncryptionKeyURL: "https://vault.vault.azure.net/keys/a"}}
	t.Run("When the cluster names a key of AWS S3 should encrypt with it", func(t *testing.T) {
		g := NewWithT(t)
		o := ready()
		says(&o, aws)
		g.Expect(uploadArgs(o, &corev1.Secret{})).To(ContainElements("--aws-kms-key-arn", clusters))
		o.backup.Spec.Storage.S3.KMSKeyARN = own
		g.Expect(uploadArgs(o, &corev1.Secret{})).To(ContainElements("--aws-kms-key-arn", own))
	})
	t.Run("When the cluster names a key of Azure a scope should be needed there, and S3 not be told of it", func(t *testing.T) {
		g := NewWithT(t)
		o := ready()
		says(&o, azure)
		g.Expect(uploadArgs(o, &corev1.Secret{})).NotTo(ContainElement("--aws-kms-key-arn"))
		inAzure(&o)
		g.Expect(planFor(o).condition.Message).To(ContainSubstring("encryption-scope"))
		o.secret.Data["encryption-scope"] = []byte("mykeys")
		g.Expect(planFor(o).start).To(BeTrue())
		g.Expect(string(o.vaultKey())).To(ContainSubstring("vault.vault.azure.net"))
	})
	t.Run("When a volume stands for S3 no key of AWS should be named", func(t *testing.T) {
		g := NewWithT(t)
		o := ready()
		says(&o, aws)
		o.secret.Data["volume-claim"], o.key = []byte("disk"), make([]byte, 32)
		g.Expect(planFor(o).start).To(BeTrue())
		g.Expect(uploadArgs(o, &corev1.Secret{})).NotTo(ContainElement("--aws-kms-key-arn"))
		g.Expect(o.kmsKey()).To(BeEmpty(), "the status should not say that it is encrypted with the key")
	})
	t.Run("When the storage is in Azure no key of AWS should be named", func(t *testing.T) {
		o := ready()
		says(&o, aws)
		inAzure(&o)
		NewWithT(t).Expect(planFor(o).start).To(BeTrue())
		NewWithT(t).Expect(o.kmsKey()).To(BeEmpty())
	})
}

func TestShards(t *testing.T) {
	o := ready()
	sharded(&o)
	t.Run("When there are shards each that is kept should have a snapshot, in a file that the upload looks for", func(t *testing.T) {
		g := NewWithT(t)
		inits := newJob(o, world{namespace: "hypershift", image: "x"}, &corev1.Secret{}).Spec.Template.Spec.InitContainers
		var names []string
		for _, c := range inits {
			names = append(names, c.Name)
		}
		g.Expect(names).To(Equal([]string{"fetch-certs", "snapshot", "snapshot-leases"}))
		g.Expect(inits[2].Args).To(ContainElements("https://etcd-client-leases.clusters-demo.svc:2379", "/etc/etcd-backup/etcd-leases.db"))
	})
	t.Run("When there are shards the way to each that is kept should be opened, and to no other", func(t *testing.T) {
		g := NewWithT(t)
		for _, obj := range rights(o) {
			if p, ok := obj.(*networkingv1.NetworkPolicy); ok {
				g.Expect(p.Spec.PodSelector.MatchExpressions[0].Values).To(Equal([]string{"etcd", "etcd-leases"}))
			}
		}
	})
	t.Run("When a backup has shards it should be said", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(described(bundle.Summary{Revision: 1, Shards: []string{"leases"}, Key: "k"})).To(ContainSubstring("with its shards leases, sealed"))
	})
}
