// Package store is where backups are kept: a bucket of S3 or of a storage that speaks like it, a container of Azure Blob Storage, or a volume.
package store

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"hcp.internal/platform/internal/etcdbackup/bundle"
)

// Errors of stores.
var (
	// ErrExists: there is a file of that name already; it was left alone.
	ErrExists = errors.New("a file of that name already exists: two clusters must not share a keyPrefix")
	// ErrNotFound: there is no such file.
	ErrNotFound = errors.New("there is no such file in the storage")
	// ErrForbidden: the credentials may not do this.
	ErrForbidden = errors.New("the credentials may not do this")
)

// Item is one file of a store.
type Item struct {
	Name     string
	Bytes    int64
	Modified time.Time
}

// Store keeps files by names with slashes. Names that lead out of it are refused.
type Store interface {
	// Put writes a new file as a whole; ErrExists when there is one.
	Put(ctx context.Context, name string, body io.Reader) error
	// Get reads a file; a connection that breaks is taken up again where it ended. bytes is -1 where the storage doesn't say how long the file is.
	Get(ctx context.Context, name string) (body io.ReadCloser, bytes int64, err error)
	// List has the files whose names begin with prefix, most of them at most.
	List(ctx context.Context, prefix string, most int) ([]Item, error)
	// Delete removes a file; one that isn't there is no error.
	Delete(ctx context.Context, name string) error
	// URL names a file: s3://BUCKET/NAME, or https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME.
	URL(name string) string
}

// Options say which store.
type Options struct {
	// Bucket is the bucket, the container of Azure, or the folder of the volume.
	Bucket string
	// Region of S3; KMSKey encrypts objects there; empty: as the bucket has it.
	Region, KMSKey string
	// Account is the storage account of Azure; empty: it is S3. Scope is an encryption scope of it; empty: as the container has it. Endpoint is the URL of the account;
	// empty: as the credentials or the cloud have it.
	Account, Scope, Endpoint string
	// Credentials of S3 are a shared credentials file, whose profile default may also name an endpoint_url; empty: those of the environment. For those of Azure see
	// backups.AzureCredentials; empty: a federated token that the environment names.
	Credentials string
	// CABundle is a file of certificates, in PEM, that the endpoint is trusted by; empty: the system's.
	CABundle string
	// Volume is a folder that stands for S3; empty: S3.
	Volume string
}

// Open makes a store. It asks nobody yet.
func Open(ctx context.Context, o Options) (Store, error) {
	switch {
	case o.Volume != "":
		return openVolume(o.Volume, o.Bucket)
	case o.Account != "":
		return openAzure(o)
	}
	return openS3(ctx, o)
}

// OpenURL makes the store of a file, and says what the file is called there: s3://BUCKET/NAME, or https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME. Options has the
// rest. A URL of Azure leads to Azure, or to the endpoint of the credentials, and nowhere else.
func OpenURL(ctx context.Context, url string, o Options) (s Store, name string, err error) {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		creds, err := azureCredentials(o)
		if err != nil {
			return nil, "", err
		}
		if o.Account, o.Bucket, name, err = creds.SplitBlobURL(url); err != nil {
			return nil, "", err
		}
		if creds.Endpoint == "" || !strings.HasPrefix(url, creds.Endpoint+"/") {
			// The account may be in another cloud than the authority.
			o.Endpoint = strings.TrimSuffix(url, "/"+o.Bucket+"/"+name)
		}
	} else if o.Bucket, name, err = bundle.SplitURL(url); err != nil {
		return nil, "", err
	}
	s, err = Open(ctx, o)
	return s, name, err
}
