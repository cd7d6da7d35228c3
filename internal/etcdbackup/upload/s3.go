package upload

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

const (
	// partSize makes parts enough for 8 GiB in few requests, and few enough to be sent again.
	partSize = 8 << 20
	// attempts is how often one request is tried: a storage that is slow or restarts is no lost backup.
	attempts = 8
)

// s3 puts the snapshot into a bucket.
func (u Upload) s3(ctx context.Context) (string, error) {
	options := []func(*awsconfig.LoadOptions) error{awsconfig.WithRegion(u.Region), awsconfig.WithRetryMaxAttempts(attempts)}
	if u.Credentials != "" {
		// As configuration, too, so that an endpoint can be named beside the keys.
		options = append(options, awsconfig.WithSharedCredentialsFiles([]string{u.Credentials}), awsconfig.WithSharedConfigFiles([]string{u.Credentials}))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return "", fmt.Errorf("reading the credentials of the bucket: %w", err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		// A bucket's name is no name of a host that somebody else's endpoint has.
		o.UsePathStyle = o.BaseEndpoint != nil
	})
	f, err := os.Open(u.Path)
	if err != nil {
		return "", fmt.Errorf("snapshot file not accessible: %w", err)
	}
	defer func() { _ = f.Close() }() // it is only read
	key := u.key()
	in := &transfermanager.UploadObjectInput{Bucket: &u.Bucket, Key: &key, Body: f, ChecksumAlgorithm: types.ChecksumAlgorithmSha256, IfNoneMatch: aws.String("*")}
	if u.KMSKey != "" {
		in.ServerSideEncryption, in.SSEKMSKeyID = types.ServerSideEncryptionAwsKms, &u.KMSKey
	}
	uploader := transfermanager.New(client, func(o *transfermanager.Options) { o.PartSizeBytes = partSize })
	if _, err := uploader.UploadObject(ctx, in); err != nil {
		return "", fmt.Errorf("writing s3://%s/%s: %w", u.Bucket, key, remedy(err))
	}
	return "s3://" + u.Bucket + "/" + key, nil
}

// remedies say what to do about answers of S3.
var remedies = map[string]string{
	"NoSuchBucket":                 "create the bucket, or correct spec.storage.s3.bucket",
	"AccessDenied":                 "the credentials need s3:PutObject and s3:AbortMultipartUpload on the bucket, and kms:GenerateDataKey and kms:Decrypt on the key",
	"InvalidAccessKeyId":           "the access key in the Secret is unknown",
	"SignatureDoesNotMatch":        "the secret key in the Secret is wrong",
	"PermanentRedirect":            "the bucket is in another region: correct spec.storage.s3.region",
	"AuthorizationHeaderMalformed": "the bucket is in another region: correct spec.storage.s3.region",
	"PreconditionFailed":           "an object of that name is there: two clusters must not share a keyPrefix",
	"ExpiredToken":                 "the credentials in the Secret have expired",
	"KMS.DisabledException":        "the key is disabled",
	"KMS.NotFoundException":        "the key is not found: correct spec.storage.s3.kmsKeyARN",
	"SlowDown":                     "the storage is busy: try again later",
}

// remedy is the storage's answer without its ids, and what to do about it.
func remedy(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	text := api.ErrorCode() + ": " + api.ErrorMessage()
	if what := remedies[api.ErrorCode()]; what != "" {
		text += " (" + what + ")"
	}
	return errors.New(text)
}
