package etcdbackup

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/backups"
)

// mode is how the Job proves who it is.
type mode string

const (
	// webIdentity: by a token of its ServiceAccount.
	webIdentity mode = "aws-sts"
	// static: by a credentials file.
	static mode = "aws-static"
	// workloadIdentity: by a token of its ServiceAccount, to Azure. Other modes of Azure have a file.
	workloadIdentity = mode(backups.AzureWorkloadIdentity)
)

// azureIdentityLabel on a pod has the webhook of Azure's workload identities, where one is installed, tell the pod its tenant.
const azureIdentityLabel = "azure.workload.identity/use"

// secretKey is the key of the Secret: a credentials file, or the ARN of a role.
const secretKey = backups.CredentialsKey

// scopeName is what Azure takes as the name of an encryption scope.
var scopeName = regexp.MustCompile(`^[a-zA-Z0-9-]{3,63}$`)

// azure is the storage in Azure; nil: it is S3.
func (o observed) azure() *hyperv1.HCPEtcdBackupAzureBlob { return o.backup.Spec.Storage.AzureBlob }

// mode is that of the Secret. Credentials of Azure that can't be read have none; accessProblem tells of them.
func (o observed) mode() mode {
	if o.azure() != nil {
		c, _, err := backups.AzureOf(o.secret.Data)
		if err != nil {
			return ""
		}
		m, _ := c.Mode() // AzureOf has asked
		return mode(m)
	}
	if roleOf(o.secret) != "" {
		return webIdentity
	}
	return static
}

// roleOf is the role that the Secret names; empty: it holds a credentials file.
func roleOf(s *corev1.Secret) string {
	if text := strings.TrimSpace(string(s.Data[secretKey])); strings.HasPrefix(text, "arn:") {
		return text
	}
	return ""
}

// scopeOf is the encryption scope of Azure that the Secret names; empty: as the container has it.
func scopeOf(s *corev1.Secret) string { return strings.TrimSpace(string(s.Data[backups.ScopeKey])) }

// claimOf is the claim that stands for S3; empty: S3 does.
func claimOf(s *corev1.Secret) string { return strings.TrimSpace(string(s.Data[backups.VolumeKey])) }

// kmsKey is what S3 encrypts with: the key of the backup, else that of the cluster; empty: as the bucket has it, or the storage is another.
func (o observed) kmsKey() hyperv1.AWSKMSKeyARN {
	if o.azure() != nil || o.secret != nil && claimOf(o.secret) != "" {
		return ""
	}
	key := o.backup.Spec.Storage.S3.KMSKeyARN
	if c := o.clusters(); c != nil && c.AWS != nil {
		key = cmp.Or(key, c.AWS.KMSKeyARN)
	}
	return key
}

// vaultKey is what Azure encrypts with: the key of the backup, else that of the cluster; empty: as the container has it.
func (o observed) vaultKey() hyperv1.AzureEncryptionKeyURL {
	if o.azure() == nil {
		return ""
	}
	key := o.azure().EncryptionKeyURL
	if c := o.clusters(); c != nil && c.Azure != nil {
		key = cmp.Or(key, c.Azure.EncryptionKeyURL)
	}
	return key
}

// clusters is what the cluster says of its backups; nil: nothing.
func (o observed) clusters() *hyperv1.EtcdBackupSpec {
	if o.hcp == nil || o.hcp.Spec.Etcd.Managed == nil {
		return nil
	}
	return o.hcp.Spec.Etcd.Managed.Backup
}

// accessProblem says why the Secret leads to no storage; empty: it does.
func (o observed) accessProblem() string {
	where := fmt.Sprintf("Secret %s/%s", o.namespace, credentials(o.backup.Spec.Storage))
	if o.azure() == nil {
		if claimOf(o.secret) != "" && o.backup.Spec.Storage.S3.KMSKeyARN != "" && !ended(o.backup) {
			return fmt.Sprintf("%s has key %s, and AWS encrypts no files on a volume: remove spec.storage.s3.kmsKeyARN to save on the volume, or the key of the Secret to save in S3", where, backups.VolumeKey)
		}
		return ""
	}
	creds, key, err := backups.AzureOf(o.secret.Data)
	scope := scopeOf(o.secret)
	switch {
	case claimOf(o.secret) != "":
		return fmt.Sprintf("%s has key %s, which stands for S3: use storageType S3 to save on a volume, or remove the key", where, backups.VolumeKey)
	case err != nil:
		return fmt.Sprintf("%s: key %s: %v", where, key, err)
	case strings.HasPrefix(creds.Endpoint, "http://"):
		return fmt.Sprintf("%s: key %s: blobEndpoint (AZURE_BLOB_ENDPOINT) must begin with https://: status.snapshotURL takes no other URL, and nobody could restore from it", where, key)
	case scope != "" && !scopeName.MatchString(scope):
		return fmt.Sprintf("%s: key %s is not the name of an encryption scope: 3 to 63 letters, digits and hyphens", where, backups.ScopeKey)
	case scope == "" && o.vaultKey() != "" && !ended(o.backup):
		return fmt.Sprintf("Azure encrypts blobs with encryption scopes, not with URLs of keys: create a scope with the key of encryptionKeyURL in storage account %s, and write its name into key %s of %s",
			o.azure().StorageAccount, backups.ScopeKey, where)
	}
	return ""
}

// webhookHelps tells that the Secret doesn't say which tenant the identity is of, which the webhook of Azure's workload identities does where it is installed.
func (o observed) webhookHelps() bool {
	if o.azure() == nil || o.mode() != workloadIdentity {
		return false
	}
	c, _, _ := backups.AzureOf(o.secret.Data) // it has a mode
	return c.TenantID == ""
}

// reachStorage gives a container what it proves with who it is, and returns the volumes for that.
func reachStorage(o observed, c *corev1.Container) []corev1.Volume {
	var volumes []corev1.Volume
	token := func(name, dir, audience string) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: dir, ReadOnly: true})
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: ptr.To[int64](3600), Path: "token"}}}}}})
	}
	m := o.mode()
	if m != webIdentity && m != workloadIdentity || len(o.key) > 0 || len(o.secret.Data[backups.CABundleKey]) > 0 {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "backup-credentials", MountPath: credentialsDir, ReadOnly: true})
		volumes = append(volumes, secretVolume("backup-credentials", credentials(o.backup.Spec.Storage)))
	}
	switch m {
	case webIdentity:
		c.Env = []corev1.EnvVar{{Name: "AWS_ROLE_ARN", Value: roleOf(o.secret)}, {Name: "AWS_WEB_IDENTITY_TOKEN_FILE", Value: tokenDir + "/token"}}
		token("aws-iam-token", tokenDir, "sts.amazonaws.com")
	case workloadIdentity:
		creds, _, _ := backups.AzureOf(o.secret.Data) // it has a mode
		c.Env = []corev1.EnvVar{{Name: "AZURE_CLIENT_ID", Value: creds.ClientID}, {Name: "AZURE_FEDERATED_TOKEN_FILE", Value: azureTokenDir + "/token"}}
		for _, v := range []corev1.EnvVar{{Name: "AZURE_TENANT_ID", Value: creds.TenantID}, {Name: "AZURE_AUTHORITY_HOST", Value: creds.Authority}} {
			if v.Value != "" {
				c.Env = append(c.Env, v)
			}
		}
		token("azure-token", azureTokenDir, "api://AzureADTokenExchange")
	}
	if claim := claimOf(o.secret); claim != "" {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "backups", MountPath: storageDir})
		volumes = append(volumes, corev1.Volume{Name: "backups", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	return volumes
}

func uploadArgs(o observed, payload *corev1.Secret) []string {
	s := o.backup.Spec.Storage
	args := []string{"--snapshot-path", snapshotFile, "--storage-type", string(s.StorageType)}
	if a := s.AzureBlob; a != nil {
		args = append(args, "--azure-container", a.Container, "--azure-storage-account", a.StorageAccount, "--key-prefix", a.KeyPrefix)
		if scope := scopeOf(o.secret); scope != "" {
			args = append(args, "--azure-encryption-scope", scope)
		}
	} else {
		args = append(args, "--aws-bucket", s.S3.Bucket, "--aws-region", s.S3.Region, "--key-prefix", s.S3.KeyPrefix)
	}
	args = append(args, storageArgs(o)...)
	if key := o.kmsKey(); key != "" {
		args = append(args, "--aws-kms-key-arn", string(key))
	}
	args = append(args, "--meta", payloadDir+"/"+metaKey)
	if len(payload.Data[objectsKey]) > 0 {
		args = append(args, "--objects", payloadDir+"/"+objectsKey)
	}
	if keep := o.backup.Annotations[backups.KeepAnnotation]; keep != "" {
		args = append(args, "--keep", keep)
	}
	return args
}

// verifyArgs are those of the command that reads a backup.
func verifyArgs(o observed) []string {
	args := []string{"etcd-verify", "--url", o.backup.Status.SnapshotURL}
	if s := o.backup.Spec.Storage.S3; s != nil {
		args = append(args, "--aws-region", s.Region)
	}
	return append(append(args, "--scratch-dir", scratchDir), storageArgs(o)...)
}

// storageArgs are what every command needs that reads or writes the storage.
func storageArgs(o observed) []string {
	var args []string
	claim, m := claimOf(o.secret), o.mode()
	switch {
	case m == static && claim == "":
		args = append(args, "--credentials-file", credentialsDir+"/"+secretKey)
	case o.azure() != nil:
		c, key, _ := backups.AzureOf(o.secret.Data) // accessProblem has told
		if m != workloadIdentity {
			args = append(args, "--credentials-file", credentialsDir+"/"+key)
		} else if c.Endpoint != "" {
			args = append(args, "--azure-endpoint", c.Endpoint)
		}
	}
	if len(o.secret.Data[backups.CABundleKey]) > 0 {
		args = append(args, "--ca-bundle-file", credentialsDir+"/"+backups.CABundleKey)
	}
	if claim != "" {
		args = append(args, "--volume", storageDir)
	}
	if len(o.key) > 0 {
		args = append(args, "--encryption-key-file", credentialsDir+"/"+backups.EncryptionKey)
	}
	return args
}
