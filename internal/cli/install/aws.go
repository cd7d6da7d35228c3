package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
)

// Where the operator finds its credentials for AWS, and the token with which it takes on a role.
const (
	bucketCredentials       = "hypershift-operator-oidc-provider-s3-credentials" // Secret and volume
	bucketCredentialsFolder = "/etc/oidc-storage-provider-s3-creds"
	privateCredentials      = "hypershift-operator-aws-credentials" // Secret and volume
	privateFolder           = "/etc/provider"
	awsTokenFolder          = "/var/run/secrets/openshift/serviceaccount"
	awsTokenVolume          = "aws-token"
	credentialsFile         = "credentials"

	// bucketNote in bucketNoteNamespace tells the command line the bucket.
	bucketNote, bucketNoteNamespace = "oidc-storage-provider-s3-config", "kube-public"
)

// Sources of credentials with which a role is taken on.
const (
	fromWebIdentity = "web-identity"
	fromInstance    = "ec2-instance-metadata"
)

// AWS says what the operator does in AWS. The zero value: nothing.
type AWS struct {
	// Bucket and BucketRegion are where OIDC documents of hosted clusters are published.
	Bucket, BucketRegion string
	BucketAccess         AWSAccess
	// Private says that private hosted clusters are supported, whose load balancers are in PrivateRegion, that of the management cluster.
	Private       bool
	PrivateRegion string
	PrivateAccess AWSAccess
	// RoleSource is web-identity or ec2-instance-metadata: with which credentials roles are taken on.
	RoleSource string
}

// AWSAccess is one way to call AWS.
type AWSAccess struct {
	// Credentials is the content of a file for a Secret that the installation makes.
	Credentials []byte
	// Secret is an existing one, SecretKey its key.
	Secret, SecretKey string
	// RoleARN is a role to take on.
	RoleARN string
}

// ways is how many ways to call AWS are given.
func (a AWSAccess) ways() int { return count(len(a.Credentials) > 0, a.Secret != "", a.RoleARN != "") }

func (a AWSAccess) validate(flag, file string) (errs []error) {
	if n := a.ways(); n != 1 {
		errs = append(errs, fmt.Errorf("%[1]s-%[2]s, %[1]s-secret and %[1]s-role-arn: give exactly one of them", flag, file))
	}
	if a.RoleARN != "" && !strings.HasPrefix(a.RoleARN, "arn:") {
		errs = append(errs, fmt.Errorf("%s-role-arn %q: must be a role's ARN, arn:aws:iam::ACCOUNT:role/NAME", flag, a.RoleARN))
	}
	return errs
}

func (a AWS) validate() (errs []error) {
	if a.Bucket != "" || a.BucketRegion != "" || a.BucketAccess.ways() > 0 {
		if a.Bucket == "" || a.BucketRegion == "" {
			errs = append(errs, errors.New("--oidc-storage-provider-s3-bucket-name and --oidc-storage-provider-s3-region: give both, with credentials"))
		}
		if strings.Contains(a.Bucket, ".") {
			errs = append(errs, fmt.Errorf("--oidc-storage-provider-s3-bucket-name %q: must have no dots, since it is part of a host name with a certificate for one label", a.Bucket))
		}
		errs = append(errs, a.BucketAccess.validate("--oidc-storage-provider-s3", "credentials")...)
	}
	switch {
	case a.Private:
		if a.PrivateRegion == "" {
			errs = append(errs, errors.New("--aws-private-region: name the region of the management cluster, in which the load balancers of private clusters are"))
		}
		errs = append(errs, a.PrivateAccess.validate("--aws-private", "creds")...)
	case a.PrivateRegion != "" || a.PrivateAccess.ways() > 0:
		errs = append(errs, errors.New("--aws-private-…: give --private-platform AWS, too"))
	}
	errs = append(errs, oneOf("--aws-role-credential-source", a.RoleSource, fromWebIdentity, fromInstance))
	return errs
}

// files are what installing for AWS reads.
type awsFiles struct{ bucket, private, roles string }

func addAWSFlags(fs *pflag.FlagSet, a *AWS, files *awsFiles) {
	fs.StringVar(&a.Bucket, "oidc-storage-provider-s3-bucket-name", a.Bucket, "Bucket in which the operator publishes the OIDC documents of hosted clusters on AWS; it must exist and be publicly readable")
	fs.StringVar(&a.BucketRegion, "oidc-storage-provider-s3-region", a.BucketRegion, "Region of that bucket")
	fs.StringVar(&files.bucket, "oidc-storage-provider-s3-credentials", "", "File with credentials for that bucket, in the format of the AWS command line")
	fs.StringVar(&a.BucketAccess.Secret, "oidc-storage-provider-s3-secret", a.BucketAccess.Secret, "Existing Secret with credentials for that bucket")
	fs.StringVar(&a.BucketAccess.SecretKey, "oidc-storage-provider-s3-secret-key", "credentials", "Key of that Secret")
	fs.StringVar(&a.BucketAccess.RoleARN, "oidc-storage-provider-s3-role-arn", a.BucketAccess.RoleARN, "AWS role that may write to that bucket")
	fs.StringVar(&a.PrivateRegion, "aws-private-region", a.PrivateRegion, "Region of the management cluster, in which the operator creates endpoint services for private clusters; with --private-platform AWS")
	fs.StringVar(&files.private, "aws-private-creds", "", "File with credentials for that, in the format of the AWS command line")
	fs.StringVar(&a.PrivateAccess.Secret, "aws-private-secret", a.PrivateAccess.Secret, "Existing Secret with credentials that may create endpoint services")
	fs.StringVar(&a.PrivateAccess.SecretKey, "aws-private-secret-key", "credentials", "Key of that Secret")
	fs.StringVar(&a.PrivateAccess.RoleARN, "aws-private-role-arn", a.PrivateAccess.RoleARN, "AWS role that may create endpoint services")
	fs.StringVar(&a.RoleSource, "aws-role-credential-source", a.RoleSource, "How the operator assumes AWS roles: web-identity, with a token of its ServiceAccount, or ec2-instance-metadata, with the role of its machine")
	fs.StringVar(&files.roles, "aws-operator-roles-file", "", "JSON with operatorOIDCS3RoleARN, operatorEC2RoleARN and externalDNSRoleARN, in place of the role flags")
}

// load reads the files.
func (f awsFiles) load(o *Options) error {
	var errs []error
	for _, file := range []struct {
		flag, path string
		into       *[]byte
	}{
		{"--oidc-storage-provider-s3-credentials", f.bucket, &o.AWS.BucketAccess.Credentials}, {"--aws-private-creds", f.private, &o.AWS.PrivateAccess.Credentials},
	} {
		if file.path == "" {
			continue
		}
		raw, err := connect.ReadFile(file.path)
		if err == nil && strings.TrimSpace(string(raw)) == "" {
			err = errors.New("the file is empty")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file.flag, err))
		}
		*file.into = raw
	}
	if f.roles != "" {
		errs = append(errs, f.loadRoles(o))
	}
	return errors.Join(errs...)
}

// loadRoles takes roles for what is asked for: a file may have more.
func (f awsFiles) loadRoles(o *Options) error {
	const flag = "--aws-operator-roles-file"
	if o.AWS.BucketAccess.RoleARN != "" || o.AWS.PrivateAccess.RoleARN != "" || o.ExternalDNS.RoleARN != "" {
		return errors.New(flag + ": leave out --oidc-storage-provider-s3-role-arn, --aws-private-role-arn and --external-dns-role-arn, or the file")
	}
	raw, err := connect.ReadFile(f.roles)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	roles := struct{ OperatorOIDCS3RoleARN, OperatorEC2RoleARN, ExternalDNSRoleARN string }{}
	if err := json.Unmarshal(raw, &roles); err != nil {
		return fmt.Errorf("%s %s: must be JSON with operatorOIDCS3RoleARN, operatorEC2RoleARN and externalDNSRoleARN", flag, f.roles)
	}
	for _, role := range []struct {
		wanted     bool
		name, from string
		into       *string
	}{
		{o.AWS.Bucket != "", "operatorOIDCS3RoleARN", roles.OperatorOIDCS3RoleARN, &o.AWS.BucketAccess.RoleARN},
		{o.AWS.Private, "operatorEC2RoleARN", roles.OperatorEC2RoleARN, &o.AWS.PrivateAccess.RoleARN},
		{o.ExternalDNS.Provider == dnsAWS, "externalDNSRoleARN", roles.ExternalDNSRoleARN, &o.ExternalDNS.RoleARN},
	} {
		switch {
		case role.wanted && role.from == "":
			err = errors.Join(err, fmt.Errorf("%s %s: has no %s", flag, f.roles, role.name))
		case role.wanted:
			*role.into = role.from
		}
	}
	return err
}

// credentials are the content of a Secret to make; nil: there is one, or none is needed.
func (a AWSAccess) credentials(source string) []byte {
	if a.RoleARN == "" {
		return a.Credentials
	}
	if source == fromInstance {
		return fmt.Appendf(nil, "[default]\nrole_arn = %s\ncredential_source = Ec2InstanceMetadata\n", a.RoleARN)
	}
	return fmt.Appendf(nil, "[default]\nrole_arn = %s\nweb_identity_token_file = %s/token\n", a.RoleARN, awsTokenFolder)
}

// use is what the operator's container gets of an access.
type use struct {
	AWSAccess
	name, folder string
}

func (u use) secret() (name, key string) {
	if u.Secret != "" {
		return u.Secret, u.SecretKey
	}
	return u.name, credentialsFile
}

func (u use) path() string {
	_, key := u.secret()
	return u.folder + "/" + key
}

// uses are the accesses that are asked for.
func (a AWS) uses() (list []use) {
	if a.Bucket != "" {
		list = append(list, use{a.BucketAccess, bucketCredentials, bucketCredentialsFolder})
	}
	if a.Private {
		list = append(list, use{a.PrivateAccess, privateCredentials, privateFolder})
	}
	return list
}

func (a AWS) takesOnRoles() bool {
	return a.RoleSource != fromInstance && slices.ContainsFunc(a.uses(), func(u use) bool { return u.RoleARN != "" })
}

// awsObjects are Secrets with credentials, and the note of the bucket.
func awsObjects(o Options) (objs []client.Object) {
	for _, u := range o.AWS.uses() {
		if content := u.credentials(o.AWS.RoleSource); len(content) > 0 {
			objs = append(objs, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: u.name, Namespace: o.Namespace}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{credentialsFile: content},
			})
		}
	}
	if o.AWS.Bucket != "" {
		objs = append(objs, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: bucketNote, Namespace: bucketNoteNamespace}, Data: map[string]string{"name": o.AWS.Bucket, "region": o.AWS.BucketRegion},
		})
	}
	return objs
}

// addAWS gives the operator what it needs for AWS.
func addAWS(pod *corev1.PodSpec, o Options) {
	main := &pod.Containers[0]
	mount := func(v corev1.Volume, folder string) {
		pod.Volumes = append(pod.Volumes, v)
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: folder, ReadOnly: true})
	}
	for _, u := range o.AWS.uses() {
		secret, _ := u.secret()
		mount(corev1.Volume{Name: u.name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To[int32](0o640)}}}, u.folder)
		if u.name == bucketCredentials {
			main.Args = append(main.Args, "--oidc-storage-provider-s3-bucket-name="+o.AWS.Bucket, "--oidc-storage-provider-s3-region="+o.AWS.BucketRegion,
				"--oidc-storage-provider-s3-credentials="+u.path())
			continue
		}
		main.Args = append(main.Args, "--private-platform=AWS")
		main.Env = append(main.Env, corev1.EnvVar{Name: "AWS_SHARED_CREDENTIALS_FILE", Value: u.path()}, corev1.EnvVar{Name: "AWS_REGION", Value: o.AWS.PrivateRegion},
			corev1.EnvVar{Name: "AWS_SDK_LOAD_CONFIG", Value: "1"})
	}
	if o.AWS.takesOnRoles() {
		mount(corev1.Volume{Name: awsTokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "openshift", Path: "token"}}},
		}}}, awsTokenFolder)
	}
}

// OIDCBucket is the bucket of OIDC documents that an installation has, as it noted it in the management cluster. ok is false if it has none.
func OIDCBucket(ctx context.Context, c client.Reader) (name, region string, ok bool, err error) {
	note := &corev1.ConfigMap{}
	err = c.Get(ctx, client.ObjectKey{Namespace: bucketNoteNamespace, Name: bucketNote}, note)
	if client.IgnoreNotFound(err) != nil {
		return "", "", false, fmt.Errorf("reading the bucket of OIDC documents from ConfigMap %s/%s: %w", bucketNoteNamespace, bucketNote, err)
	}
	name, region = note.Data["name"], note.Data["region"]
	return name, region, name != "" && region != "", nil
}
