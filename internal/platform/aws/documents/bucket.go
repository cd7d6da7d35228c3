package documents

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/session"
)

// Location is the bucket of an installation, as install was told. An empty Bucket: there is none.
type Location struct {
	Bucket, Region string
	// Credentials is a file in the SDK's format; empty: what the environment offers.
	Credentials string
}

// Bucket keeps documents.
type Bucket interface {
	// Get returns nil without an error when there is no such object.
	Get(ctx context.Context, name string) ([]byte, error)
	Put(ctx context.Context, name string, content []byte) error
	// Delete removes objects; those that aren't there, and a bucket that isn't, are fine.
	Delete(ctx context.Context, names []string) error
}

// maxDocument bounds what is read of a published document, in bytes: nobody else should write there, and somebody might.
const maxDocument = 64 << 10

// Open makes a client of the bucket. It makes no request.
func (l Location) Open(ctx context.Context) (Bucket, error) {
	cfg, err := session.Load(ctx, session.Options{Agent: "hypershift-operator-oidc-bucket", Region: l.Region, CredentialsFile: l.Credentials})
	if err != nil {
		return nil, err
	}
	return &bucket{session.S3(cfg), l.Bucket}, nil
}

type bucket struct {
	client *s3.Client
	name   string
}

// Get implements Bucket.
func (b *bucket) Get(ctx context.Context, name string) ([]byte, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &name})
	if fault.Is(err, "NoSuchKey", "NotFound") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Body.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(out.Body, maxDocument))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return raw, nil
}

// Put implements Bucket.
func (b *bucket) Put(ctx context.Context, name string, content []byte) error {
	_, err := b.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.name, Key: &name, Body: bytes.NewReader(content), ContentType: aws.String("application/json")})
	return err
}

// Delete implements Bucket.
func (b *bucket) Delete(ctx context.Context, names []string) error {
	var objects []types.ObjectIdentifier
	for _, name := range names {
		objects = append(objects, types.ObjectIdentifier{Key: aws.String(name)})
	}
	out, err := b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &b.name, Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)}})
	switch {
	case fault.Is(err, "NoSuchBucket"):
		return nil
	case err != nil:
		return err
	case len(out.Errors) > 0:
		return fmt.Errorf("%s is not deleted: %s", aws.ToString(out.Errors[0].Key), aws.ToString(out.Errors[0].Code))
	}
	return nil
}
