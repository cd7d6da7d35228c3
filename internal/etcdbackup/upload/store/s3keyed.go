package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// keyed is a client for files that S3 is to encrypt with a key. A storage that speaks like S3 may overlook that, and answer that all is well: what it then has isn't encrypted
// as somebody was told, so it must not stay.
type keyed struct {
	*s3.Client
	key string
}

// PutObject writes a small file, and removes it again when it was not encrypted with the key.
func (k keyed) PutObject(ctx context.Context, in *s3.PutObjectInput, options ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	out, err := k.Client.PutObject(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	if err := k.confirmedOrRemoved(ctx, in.Bucket, in.Key, out.ServerSideEncryption, out.SSEKMSKeyId); err != nil {
		return nil, err
	}
	return out, nil
}

// confirmedOrRemoved removes an object that the storage doesn't say that it encrypted with the key.
func (k keyed) confirmedOrRemoved(ctx context.Context, bucket, name *string, algorithm s3types.ServerSideEncryption, id *string) error {
	err := k.confirmed(algorithm, id)
	if err == nil {
		return nil
	}
	_, left := k.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: name})
	return k.leaving(err, left)
}

// CreateMultipartUpload begins a file in parts, and gives it up before the first part when it would not be encrypted with the key.
func (k keyed) CreateMultipartUpload(ctx context.Context, in *s3.CreateMultipartUploadInput, options ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error) {
	out, err := k.Client.CreateMultipartUpload(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	if err := k.confirmed(out.ServerSideEncryption, out.SSEKMSKeyId); err != nil {
		_, left := k.Client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: in.Bucket, Key: in.Key, UploadId: out.UploadId})
		return nil, k.leaving(err, left)
	}
	return out, nil
}

// confirmed compares what the storage says that it encrypts with. It may name a key by its id alone.
func (k keyed) confirmed(algorithm s3types.ServerSideEncryption, id *string) error {
	used := aws.ToString(id)
	if algorithm == s3types.ServerSideEncryptionAwsKms && (used == k.key || used != "" && strings.HasSuffix(k.key, "/"+used)) {
		return nil
	}
	says := "it says nothing about encryption"
	if algorithm != "" {
		says = strings.TrimSpace(fmt.Sprintf("it says that it encrypts with %s %s", algorithm, used))
	}
	return fmt.Errorf("the storage does not encrypt with %s: %s. Use a storage that does, or remove the key from spec.storage.s3.kmsKeyARN of the backup and "+
		"from spec.etcd.managed.backup of the HostedCluster", k.key, says)
}

// leaving adds that a file was left in the storage. Credentials that may not delete are nothing new to who gave them.
func (k keyed) leaving(err, left error) error {
	if left = remedy(left); left == nil || errors.Is(left, ErrForbidden) {
		return err
	}
	return errors.Join(err, fmt.Errorf("removing what was written: %w", left))
}
