package store

import (
	"context"
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

const (
	// partSize makes parts enough for 8 GiB in few requests, and few enough to be sent again.
	partSize = 8 << 20
	// attempts is how often one request is tried: a storage that is slow or restarts is no lost backup.
	attempts = 8
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

func (b bucket) Put(ctx context.Context, name string, body io.Reader) error {
	in := &transfermanager.UploadObjectInput{Bucket: &b.name, Key: &name, Body: body, ChecksumAlgorithm: types.ChecksumAlgorithmSha256, IfNoneMatch: aws.String("*")}
	if b.kms != "" {
		in.ServerSideEncryption, in.SSEKMSKeyID = types.ServerSideEncryptionAwsKms, &b.kms
	}
	uploader := transfermanager.New(b.client, func(o *transfermanager.Options) { o.PartSizeBytes = partSize })
	if _, err := uploader.UploadObject(ctx, in); err != nil {
		return fmt.Errorf("writing %s: %w", b.URL(name), remedy(err))
	}
	return nil
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
	return &body{ctx: ctx, b: b, name: name, etag: out.ETag, size: size, r: out.Body}, max(size, 0), nil
}

// body reads an object to its end, and goes on with another request where a connection broke. The ETag makes sure that it is still the same object.
type body struct {
	ctx      context.Context
	b        bucket
	name     string
	etag     *string
	at, size int64 // in bytes; a size that the storage didn't tell is negative
	again    int
	r        io.ReadCloser
}

func (o *body) Read(p []byte) (int, error) {
	for {
		n, err := o.r.Read(p)
		o.at += int64(n)
		switch {
		case err == nil || n > 0:
			return n, nil // what is wrong shows again at the next call
		case errors.Is(err, io.EOF) && o.at >= o.size:
			return 0, io.EOF
		case o.size >= 0 && o.at >= o.size:
			// Nothing is left to ask for: what came last is the client's comparison with the sum that the object was stored with.
			return 0, fmt.Errorf("%s is damaged: %d of %d bytes came, and they are not what was stored: %w", o.b.URL(o.name), o.at, o.size, unexpected(err))
		case o.ctx.Err() != nil:
			return 0, o.ctx.Err()
		case o.again == attempts:
			return 0, fmt.Errorf("reading %s: the connection broke %d times, last after %d of %d bytes: %w", o.b.URL(o.name), o.again+1, o.at, o.size, unexpected(err))
		}
		o.again++
		_ = o.r.Close() // it is broken
		out, err := o.b.client.GetObject(o.ctx, &s3.GetObjectInput{Bucket: &o.b.name, Key: &o.name, IfMatch: o.etag, Range: aws.String(fmt.Sprintf("bytes=%d-", o.at))})
		if err != nil {
			o.r = io.NopCloser(failing{fmt.Errorf("reading %s from byte %d: %w", o.b.URL(o.name), o.at, remedy(err))})
			o.again = attempts
			continue
		}
		o.r = out.Body
	}
}

func (o *body) Close() error { return o.r.Close() }

// failing gives an error to who reads it.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// unexpected is an error for an end that is too early. It is none of package io: who reads would take it for the end of what was stored.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ended too early")
	}
	return err
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
	"AccessDenied":                 "the credentials need s3:PutObject and s3:AbortMultipartUpload on the bucket, s3:GetObject and s3:ListBucket to read backups, s3:DeleteObject for retention, and kms:GenerateDataKey and kms:Decrypt on the key",
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

// kinds are answers that callers tell apart.
var kinds = map[string]error{"PreconditionFailed": ErrExists, "NoSuchKey": ErrNotFound, "NotFound": ErrNotFound, "AccessDenied": ErrForbidden}

// answer is what a storage said, with the error that callers tell it by.
type answer struct {
	text string
	kind error
}

func (a answer) Error() string { return a.text }
func (a answer) Unwrap() error { return a.kind }

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
