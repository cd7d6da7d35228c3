package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"hcp.internal/platform/internal/contract/backups"
)

// bucket is one of S3.
type bucket struct {
	client *s3.Client
	name   string
	kms    string
}

func openS3(ctx context.Context, o Options) (Store, error) {
	options := []func(*awsconfig.LoadOptions) error{awsconfig.WithRegion(o.Region), awsconfig.WithRetryMaxAttempts(attempts)}
	if o.Credentials != "" {
		// As configuration, too, so that an endpoint can be named beside the keys.
		options = append(options, awsconfig.WithSharedCredentialsFiles([]string{o.Credentials}), awsconfig.WithSharedConfigFiles([]string{o.Credentials}))
	}
	if o.CABundle != "" {
		f, err := os.Open(o.CABundle)
		if err != nil {
			return nil, fmt.Errorf("reading the certificates of the storage: %w", err)
		}
		defer func() { _ = f.Close() }() // it is only read
		options = append(options, awsconfig.WithCustomCABundle(f))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of the bucket: %w", err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		// A bucket's name is no name of a host that somebody else's endpoint has.
		o.UsePathStyle = o.BaseEndpoint != nil
		// Who reads compares with sums of our own.
		o.DisableLogOutputChecksumValidationSkipped = true
	})
	return bucket{client, o.Bucket, o.KMSKey}, nil
}

func (b bucket) URL(name string) string { return backups.Scheme + b.name + "/" + name }

// Put writes an object, if there is none of that name yet. The library tries requests again whose answers were lost, and then the object may be there already: it has a mark by
// which it is known as ours.
func (b bucket) Put(ctx context.Context, name string, body io.Reader) error {
	nonce := rand.Text()
	in := &transfermanager.UploadObjectInput{Bucket: &b.name, Key: &name, Body: body, ChecksumAlgorithm: types.ChecksumAlgorithmSha256, IfNoneMatch: aws.String("*"),
		Metadata: map[string]string{nonceKey: nonce}}
	var client transfermanager.S3APIClient = b.client
	if b.kms != "" {
		client = keyed{b.client, b.kms}
		in.ServerSideEncryption, in.SSEKMSKeyID = types.ServerSideEncryptionAwsKms, &b.kms
	}
	uploader := transfermanager.New(client, func(o *transfermanager.Options) { o.PartSizeBytes = partSize })
	_, err := uploader.UploadObject(ctx, in)
	if mayBeThere(err) {
		err = b.recognize(ctx, name, nonce, err)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", b.URL(name), remedy(err))
	}
	return nil
}

// mayBeThere tells answers that a request gets when it comes again after it made the object: the name is taken, or the parts have been put together.
func mayBeThere(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && (api.ErrorCode() == "PreconditionFailed" || api.ErrorCode() == "NoSuchUpload")
}

// recognize is nil when the object is that of the upload with this nonce, and refused when it is somebody else's or the credentials may not look.
func (b bucket) recognize(ctx context.Context, name, nonce string, refused error) error {
	there, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &name})
	if err != nil || there.Metadata[nonceKey] != nonce {
		return refused
	}
	if b.kms == "" {
		return nil
	}
	return keyed{b.client, b.kms}.confirmedOrRemoved(ctx, &b.name, &name, there.ServerSideEncryption, there.SSEKMSKeyId)
}

func (b bucket) Get(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &name})
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", b.URL(name), remedy(err))
	}
	size := int64(-1)
	if out.ContentLength != nil {
		size = *out.ContentLength
	}
	again := func(from int64) (io.ReadCloser, error) {
		// The ETag makes sure that it is still the same object.
		part, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &name, IfMatch: out.ETag, Range: aws.String(fmt.Sprintf("bytes=%d-", from))})
		if err != nil {
			return nil, remedy(err)
		}
		return part.Body, nil
	}
	return &body{ctx: ctx, url: b.URL(name), open: again, size: size, r: out.Body}, size, nil
}

func (b bucket) List(ctx context.Context, prefix string, most int) ([]Item, error) {
	var items []Item
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix})
	for pages.HasMorePages() && len(items) < most {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", b.URL(prefix), remedy(err))
		}
		for _, o := range page.Contents {
			items = append(items, Item{Name: aws.ToString(o.Key), Bytes: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified)})
		}
	}
	return items[:min(len(items), most)], nil
}

func (b bucket) Delete(ctx context.Context, name string) error {
	if _, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &name}); err != nil {
		return fmt.Errorf("deleting %s: %w", b.URL(name), remedy(err))
	}
	return nil
}

// remedies say what to do about answers of S3.
var remedies = map[string]string{
	"NoSuchKey":                    "there is no such file in the bucket",
	"NoSuchBucket":                 "create the bucket, or correct spec.storage.s3.bucket",
	"AccessDenied":                 "the credentials need s3:PutObject and s3:AbortMultipartUpload on the bucket, s3:GetObject and s3:ListBucket to read backups, s3:DeleteObject for retention, and kms:GenerateDataKey and kms:Decrypt on the key; a policy of the bucket may want the files encrypted with a key: set kmsKeyARN",
	"InvalidAccessKeyId":           "the access key in the Secret is unknown",
	"SignatureDoesNotMatch":        "the secret key in the Secret is wrong",
	"PermanentRedirect":            "the bucket is in another region: correct spec.storage.s3.region",
	"AuthorizationHeaderMalformed": "the bucket is in another region: correct spec.storage.s3.region",
	"PreconditionFailed":           "an object of that name already exists: two clusters must not share a keyPrefix",
	"ExpiredToken":                 "the credentials in the Secret have expired",
	"KMS.DisabledException":        "the key is disabled: enable it",
	"KMS.KMSInvalidStateException": "the key can't be used now: cancel its deletion, or name another key in spec.storage.s3.kmsKeyARN",
	"KMS.InvalidKeyUsageException": "the key is not for encryption: name a symmetric one in spec.storage.s3.kmsKeyARN",
	"KMS.NotFoundException":        "the key is not found in the bucket's region: correct spec.storage.s3.kmsKeyARN",
	"SlowDown":                     "the storage is busy: try again later",
}

// kinds are answers of S3 that callers tell apart.
var kinds = map[string]error{"PreconditionFailed": ErrExists, "NoSuchKey": ErrNotFound, "NotFound": ErrNotFound, "AccessDenied": ErrForbidden}

// remedy is the storage's answer without its ids, and what to do about it.
func remedy(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	code := api.ErrorCode()
	var response *awshttp.ResponseError
	if remedies[code] == "" && errors.As(err, &response) && response.HTTPStatusCode() == http.StatusForbidden {
		code = "AccessDenied"
	}
	text := api.ErrorCode() + ": " + api.ErrorMessage()
	if what := remedies[code]; what != "" {
		text += " (" + what + ")"
	}
	return answer{text, kinds[code]}
}
