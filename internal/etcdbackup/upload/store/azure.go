package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azcloud "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	azcontainer "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"k8s.io/utils/ptr"

	"hcp.internal/platform/internal/contract/backups"
)

const (
	// inFlight is how many parts are sent at the same time; each is in memory.
	inFlight = 4
	// firstPause and longestPause lie between attempts; a storage that asks for a longer pause is given up.
	firstPause, longestPause = time.Second, 30 * time.Second
	// beginTimeout bounds the wait for an answer to begin, once a request has been sent.
	beginTimeout = time.Minute
	// nonceKey of metadata says which upload made a blob, or an object of S3.
	nonceKey = "upload"
)

// container is one of Azure Blob Storage.
type container struct {
	client *azcontainer.Client
	url    string
	scope  string
}

// azureCredentials are those of a file, or of a pod with a federated token, whose environment has the rest.
func azureCredentials(o Options) (backups.AzureCredentials, error) {
	if o.Credentials == "" {
		c := backups.AzureCredentials{TenantID: os.Getenv("AZURE_TENANT_ID"), ClientID: os.Getenv("AZURE_CLIENT_ID"), Authority: os.Getenv("AZURE_AUTHORITY_HOST"), Endpoint: o.Endpoint}
		if os.Getenv("AZURE_FEDERATED_TOKEN_FILE") == "" || c.ClientID == "" || c.TenantID == "" {
			return c, errors.New("there are no credentials of the storage: a file is missing, and AZURE_FEDERATED_TOKEN_FILE, AZURE_CLIENT_ID and AZURE_TENANT_ID aren't all set")
		}
		return c, nil
	}
	raw, err := os.ReadFile(o.Credentials)
	if err != nil {
		return backups.AzureCredentials{}, fmt.Errorf("reading the credentials of the storage: %w", err)
	}
	c, err := backups.ParseAzure(raw)
	if err != nil {
		return c, fmt.Errorf("the credentials of the storage: %w", err)
	}
	if o.Endpoint != "" {
		c.Endpoint = o.Endpoint
	}
	return c, nil
}

func openAzure(o Options) (Store, error) {
	creds, err := azureCredentials(o)
	if err != nil {
		return nil, err
	}
	transport, err := trusting(o.CABundle)
	if err != nil {
		return nil, err
	}
	options := policy.ClientOptions{
		Transport: transport,
		Retry:     policy.RetryOptions{MaxRetries: attempts - 1, RetryDelay: firstPause, MaxRetryDelay: longestPause},
		Telemetry: policy.TelemetryOptions{ApplicationID: "hcp-backup"},
	}
	c := container{url: creds.EndpointOf(o.Account) + "/" + o.Bucket, scope: o.Scope}
	clientOptions := &azcontainer.ClientOptions{ClientOptions: options}
	if creds.AccountKey != "" {
		key, err := blob.NewSharedKeyCredential(o.Account, creds.AccountKey)
		if err != nil {
			return nil, errors.New("the credentials of the storage: the key of the account is not in base64")
		}
		c.client, err = azcontainer.NewClientWithSharedKeyCredential(c.url, key, clientOptions)
		return c, err
	}
	token, err := tokens(creds, options)
	if err != nil {
		return nil, err
	}
	c.client, err = azcontainer.NewClient(c.url, token, clientOptions)
	return c, err
}

// tokens are those of Microsoft Entra ID for credentials.
func tokens(c backups.AzureCredentials, options policy.ClientOptions) (azcore.TokenCredential, error) {
	// A cloud of somebody's own is known to nobody who could be asked about it.
	unknown := false
	options.Cloud = azcloud.AzurePublic
	if c.Authority != "" {
		options.Cloud.ActiveDirectoryAuthorityHost = c.Authority
		unknown = c.Domain() == "" || c.Certificate != ""
	}
	mode, err := c.Mode()
	if err != nil {
		return nil, fmt.Errorf("the credentials of the storage: %w", err)
	}
	var token azcore.TokenCredential
	switch mode {
	case backups.AzureClientSecret:
		token, err = azidentity.NewClientSecretCredential(c.TenantID, c.ClientID, c.ClientSecret, &azidentity.ClientSecretCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: unknown})
	case backups.AzureManagedIdentity:
		raw, decoding := base64.StdEncoding.DecodeString(c.Certificate)
		certificates, key, parsing := azidentity.ParseCertificates(raw, nil)
		if decoding != nil || parsing != nil {
			return nil, errors.New("the credentials of the storage: client_secret must be a certificate with its key, PEM or PKCS #12, in base64")
		}
		token, err = azidentity.NewClientCertificateCredential(c.TenantID, c.ClientID, certificates, key,
			&azidentity.ClientCertificateCredentialOptions{ClientOptions: options, DisableInstanceDiscovery: unknown, SendCertificateChain: true})
	default:
		token, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options, TenantID: c.TenantID, ClientID: c.ClientID, DisableInstanceDiscovery: unknown})
	}
	if err != nil {
		// The library's own words may quote what it was given.
		return nil, errors.New("the credentials of the storage name no tenant, client or authority that could be one, or the federated token is missing")
	}
	return token, nil
}

// trusting is a client of HTTP that trusts the certificates of a file, too.
func trusting(bundle string) (*http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = beginTimeout
	t.MaxIdleConnsPerHost = inFlight
	if bundle != "" {
		raw, err := os.ReadFile(bundle)
		if err != nil {
			return nil, fmt.Errorf("reading the certificates of the storage: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		// Tokens come from somewhere else, so the system's stay.
		if !pool.AppendCertsFromPEM(raw) {
			return nil, errors.New("the certificates of the storage: there is none in PEM")
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t}, nil
}

func (c container) URL(name string) string { return c.url + "/" + name }

// Put sends parts, each with a sum that Azure compares, and puts them together in the end, if there is no blob of that name yet.
func (c container) Put(ctx context.Context, name string, from io.Reader) error {
	nonce := rand.Text()
	client := c.client.NewBlockBlobClient(name)
	err := azureRemedy(c.send(ctx, client, from, nonce))
	if errors.Is(err, ErrExists) {
		// It may be ours: the answer to the last request was lost, and the next attempt has found what it made.
		there, lookErr := client.GetProperties(ctx, nil)
		if lookErr == nil && metadata(there.Metadata, nonceKey) == nonce {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", c.URL(name), err)
	}
	return nil
}

func (c container) send(ctx context.Context, client *blockblob.Client, from io.Reader, nonce string) error {
	sum, marked := blob.TransferValidationTypeComputeCRC64(), map[string]*string{nonceKey: &nonce}
	absent := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: ptr.To(azcore.ETagAny)}}
	var scope *blob.CPKScopeInfo
	if c.scope != "" {
		scope = &blob.CPKScopeInfo{EncryptionScope: &c.scope}
	}
	// What fits into one part the library would send without a sum.
	first, err := io.ReadAll(io.LimitReader(from, partSize))
	if err != nil {
		return err
	}
	if len(first) < partSize {
		_, err := client.Upload(ctx, streaming.NopCloser(bytes.NewReader(first)), &blockblob.UploadOptions{TransactionalValidation: sum, Metadata: marked, AccessConditions: absent, CPKScopeInfo: scope})
		return err
	}
	_, err = client.UploadStream(ctx, io.MultiReader(bytes.NewReader(first), from),
		&blockblob.UploadStreamOptions{BlockSize: partSize, Concurrency: inFlight, TransactionalValidation: sum, Metadata: marked, AccessConditions: absent, CPKScopeInfo: scope})
	return err
}

// metadata is a value of a key, whose case goes with HTTP.
func metadata(m map[string]*string, key string) string {
	for k, v := range m {
		if http.CanonicalHeaderKey(k) == http.CanonicalHeaderKey(key) && v != nil {
			return *v
		}
	}
	return ""
}

func (c container) Get(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	client := c.client.NewBlobClient(name)
	out, err := client.DownloadStream(ctx, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", c.URL(name), azureRemedy(err))
	}
	size := int64(-1)
	if out.ContentLength != nil {
		size = *out.ContentLength
	}
	again := func(from int64) (io.ReadCloser, error) {
		// The ETag makes sure that it is still the same blob.
		part, err := client.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: from},
			AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: out.ETag}}})
		if err != nil {
			return nil, azureRemedy(err)
		}
		return part.Body, nil
	}
	return &body{ctx: ctx, url: c.URL(name), open: again, size: size, r: out.Body}, size, nil
}

func (c container) List(ctx context.Context, prefix string, most int) ([]Item, error) {
	var items []Item
	pages := c.client.NewListBlobsFlatPager(&azcontainer.ListBlobsFlatOptions{Prefix: &prefix})
	for pages.More() && len(items) < most {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", c.URL(prefix), azureRemedy(err))
		}
		if page.Segment == nil {
			continue
		}
		for _, b := range page.Segment.BlobItems {
			if b == nil || b.Name == nil {
				continue
			}
			item := Item{Name: *b.Name}
			if p := b.Properties; p != nil {
				item.Bytes, item.Modified = ptr.Deref(p.ContentLength, 0), ptr.Deref(p.LastModified, time.Time{})
			}
			items = append(items, item)
		}
	}
	return items[:min(len(items), most)], nil
}

func (c container) Delete(ctx context.Context, name string) error {
	_, err := c.client.NewBlobClient(name).Delete(ctx, nil)
	if err = azureRemedy(err); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("deleting %s: %w", c.URL(name), err)
	}
	return nil
}
