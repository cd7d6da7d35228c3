package backups

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Keys of the Secret of a storage in Azure, besides those of every storage.
const (
	// CloudKey is what Velero calls its credentials of Azure: lines AZURE_CLIENT_ID=… and the like.
	CloudKey = "cloud"
	// ScopeKey is the name of the encryption scope of the storage account that has the key of spec.storage.azureBlob.encryptionKeyURL.
	ScopeKey = "encryption-scope"
)

// SealedEnd is what the name of a sealed snapshot ends with.
const SealedEnd = ".db.enc"

// WithSecret tells a snapshot that is read with Secret etcd-restore: one of S3, or a sealed one of Azure, or of an emulator, which may not be encrypted on its way. Everything
// else is a plain download, whose URL may be signed.
func WithSecret(snapshot string) bool {
	if strings.HasPrefix(snapshot, Scheme) {
		return true
	}
	u, err := url.Parse(snapshot)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.RawQuery == "" && strings.HasSuffix(u.Path, SealedEnd)
}

// AzureMode is how somebody proves to Azure who he is.
type AzureMode string

// Modes. The first three have the published names; the last is for accounts, and products, that still have keys.
const (
	AzureWorkloadIdentity AzureMode = "azure-workload-identity"
	AzureManagedIdentity  AzureMode = "azure-managed-identity"
	AzureClientSecret     AzureMode = "azure-client-secret"
	AzureAccountKey       AzureMode = "azure-account-key"
)

// AzureCredentials are what a Secret says of Azure, in one of three forms: JSON as `az ad sp create-for-rbac --json-auth` prints it, JSON as Azure Red Hat OpenShift
// keeps the certificate of a managed identity, or lines KEY=VALUE as Velero has them.
type AzureCredentials struct {
	TenantID     string
	ClientID     string
	ClientSecret string
	// Certificate is that of a managed identity, with its key: PEM or PKCS #12, in base64.
	Certificate string
	AccountKey  string
	// Authority is where tokens come from, https://login.microsoftonline.com unless given.
	Authority string
	// Endpoint is the URL of the storage account, https://ACCOUNT.blob.core.windows.net unless given.
	Endpoint string
}

// maxCredentials bounds what is read as credentials; a certificate with its chain has some kilobytes.
const maxCredentials = 64 << 10

var errNoCredentials = errors.New("it must be JSON with tenantId, clientId and clientSecret, or with accountKey, or lines like AZURE_CLIENT_ID=…")

// ParseAzure reads credentials in any form. Errors don't quote them.
func ParseAzure(raw []byte) (AzureCredentials, error) {
	if len(raw) > maxCredentials {
		return AzureCredentials{}, fmt.Errorf("it has more than %d bytes", maxCredentials)
	}
	c, err := parseAzure(raw)
	if err != nil {
		return c, err
	}
	if _, err := c.Mode(); err != nil {
		return c, err
	}
	for name, value := range map[string]string{"activeDirectoryEndpointUrl (AZURE_AUTHORITY_HOST)": c.Authority, "blobEndpoint (AZURE_BLOB_ENDPOINT)": c.Endpoint} {
		if u, err := url.Parse(value); value != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
			return c, fmt.Errorf("%s must be a URL like https://example.com", name)
		}
	}
	c.Endpoint = strings.TrimSuffix(c.Endpoint, "/")
	return c, nil
}

func parseAzure(raw []byte) (AzureCredentials, error) {
	text := strings.TrimSpace(string(raw))
	if !strings.HasPrefix(text, "{") {
		return parseLines(text), nil
	}
	var f struct {
		TenantID     string `json:"tenantId"`
		ClientID     string `json:"clientId"`
		ClientSecret string `json:"clientSecret"`
		Authority    string `json:"activeDirectoryEndpointUrl"`
		AccountKey   string `json:"accountKey"`
		Endpoint     string `json:"blobEndpoint"`
		// Of a managed identity.
		OtherTenant    string `json:"tenant_id"`
		OtherClient    string `json:"client_id"`
		Certificate    string `json:"client_secret"`
		OtherAuthority string `json:"authentication_endpoint"`
	}
	if json.Unmarshal([]byte(text), &f) != nil {
		return AzureCredentials{}, errNoCredentials
	}
	c := AzureCredentials{TenantID: f.TenantID, ClientID: f.ClientID, ClientSecret: f.ClientSecret, Authority: f.Authority, AccountKey: f.AccountKey, Endpoint: f.Endpoint}
	if f.Certificate != "" {
		c.TenantID, c.ClientID, c.Certificate, c.Authority = f.OtherTenant, f.OtherClient, f.Certificate, f.OtherAuthority
	}
	return c, nil
}

// clouds are names of Azure's clouds and their authorities.
var clouds = map[string]string{
	"azurepubliccloud": "https://login.microsoftonline.com/", "azurecloud": "https://login.microsoftonline.com/",
	"azureusgovernmentcloud": "https://login.microsoftonline.us/", "azureusgovernment": "https://login.microsoftonline.us/",
	"azurechinacloud": "https://login.chinacloudapi.cn/",
}

func parseLines(text string) AzureCredentials {
	c := AzureCredentials{}
	into := map[string]*string{"AZURE_TENANT_ID": &c.TenantID, "AZURE_CLIENT_ID": &c.ClientID, "AZURE_CLIENT_SECRET": &c.ClientSecret,
		"AZURE_STORAGE_ACCOUNT_ACCESS_KEY": &c.AccountKey, "AZURE_AUTHORITY_HOST": &c.Authority, "AZURE_BLOB_ENDPOINT": &c.Endpoint}
	named := ""
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch key = strings.TrimSpace(key); {
		case ok && into[key] != nil:
			*into[key] = value
		case ok && key == "AZURE_CLOUD_NAME":
			named = clouds[strings.ToLower(value)]
		}
	}
	if c.Authority == "" {
		c.Authority = named
	}
	return c
}

// Mode is how these credentials prove who somebody is.
func (c AzureCredentials) Mode() (AzureMode, error) {
	switch {
	case c.AccountKey != "":
		return AzureAccountKey, nil
	case c.ClientID == "":
		return "", errNoCredentials
	case (c.Certificate != "" || c.ClientSecret != "") && c.TenantID == "":
		return "", errors.New("the tenant is missing: add tenantId (AZURE_TENANT_ID)")
	case c.Certificate != "":
		return AzureManagedIdentity, nil
	case c.ClientSecret != "":
		return AzureClientSecret, nil
	}
	return AzureWorkloadIdentity, nil
}

// AzureOf reads the credentials in a Secret of a storage, and says in which of its keys they are. CloudKey goes first, as long as it says who somebody is.
func AzureOf(data map[string][]byte) (c AzureCredentials, key string, err error) {
	if len(data[CloudKey]) > 0 {
		if c, err = ParseAzure(data[CloudKey]); err == nil || len(data[CredentialsKey]) == 0 {
			return c, CloudKey, err
		}
	}
	if len(data[CredentialsKey]) == 0 {
		return c, CredentialsKey, errNoCredentials
	}
	c, err = ParseAzure(data[CredentialsKey])
	return c, CredentialsKey, err
}

// blobHost are host names of storage accounts in Azure's clouds.
var blobHost = regexp.MustCompile(`^([a-z0-9]{3,24})\.blob\.(core\.windows\.net|core\.usgovcloudapi\.net|core\.chinacloudapi\.cn)$`)

// Domain is that of storage accounts whose tokens come from the authority; empty: the authority is none of Azure's.
func (c AzureCredentials) Domain() string {
	u, err := url.Parse(c.Authority)
	switch {
	case err != nil:
		return ""
	case c.Authority == "", strings.HasSuffix(u.Host, ".microsoftonline.com"):
		return "core.windows.net"
	case strings.HasSuffix(u.Host, ".microsoftonline.us"):
		return "core.usgovcloudapi.net"
	case strings.HasSuffix(u.Host, ".chinacloudapi.cn"), strings.HasSuffix(u.Host, ".partner.microsoftonline.cn"):
		return "core.chinacloudapi.cn"
	}
	return ""
}

// EndpointOf is the URL of a storage account.
func (c AzureCredentials) EndpointOf(account string) string {
	if c.Endpoint != "" {
		return c.Endpoint
	}
	return "https://" + account + ".blob." + cmp.Or(c.Domain(), "core.windows.net")
}

// SplitBlobURL is what https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME consists of. A token is good for every storage of Azure, so no other host gets one than Azure's
// and the endpoint of the credentials.
func (c AzureCredentials) SplitBlobURL(snapshot string) (account, container, name string, err error) {
	refuse := func(why string) (string, string, string, error) {
		return "", "", "", fmt.Errorf("%q is no URL of a backup in Azure: %s", snapshot, why)
	}
	u, err := url.Parse(snapshot)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return refuse("want https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME, without anything behind it")
	}
	var path string
	if rest, ok := strings.CutPrefix(snapshot, c.Endpoint+"/"); c.Endpoint != "" && ok {
		e, err := url.Parse(c.Endpoint)
		if err != nil {
			return refuse("the endpoint of the credentials is none")
		}
		// The first part of a host name, or the last of a path, is the account.
		account, path = strings.Split(e.Hostname(), ".")[0], rest
		if folder := strings.Trim(e.Path, "/"); folder != "" {
			account = folder
		}
	} else if found := blobHost.FindStringSubmatch(u.Host); u.Scheme == "https" && found != nil {
		account, path = found[1], strings.TrimPrefix(u.Path, "/")
	} else {
		return refuse("its host is none of Azure's, nor the blobEndpoint of the credentials")
	}
	container, name, ok := strings.Cut(path, "/")
	if !ok || container == "" || name == "" {
		return refuse("want https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME")
	}
	return account, container, name, nil
}
