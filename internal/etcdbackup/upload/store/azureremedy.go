package store

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
)

const (
	azureRole = "give the identity the role Storage Blob Data Contributor on the container; Reader alone can't write"
	azureKey  = "the key of the account in the Secret is wrong, or the storage account allows no keys: use an identity"
)

// azureRemedies say what to do about answers of Azure Blob Storage.
var azureRemedies = map[bloberror.Code]string{
	bloberror.BlobNotFound:                    "there is no such file in the container",
	bloberror.ContainerNotFound:               "create the container, or correct spec.storage.azureBlob.container",
	bloberror.ContainerBeingDeleted:           "the container is being deleted: wait, and create it again",
	bloberror.ContainerDisabled:               "the container is disabled",
	bloberror.BlobAlreadyExists:               "a file of that name already exists: two clusters must not share a keyPrefix",
	bloberror.ConditionNotMet:                 "the file was replaced while it was read",
	bloberror.AuthorizationPermissionMismatch: azureRole,
	bloberror.InsufficientAccountPermissions:  azureRole,
	bloberror.AuthorizationFailure:            "the firewall of the storage account refuses this network, or the identity may not do this: " + azureRole,
	bloberror.AuthenticationFailed:            azureKey,
	bloberror.AccountIsDisabled:               "the storage account is disabled",
	bloberror.ServerBusy:                      "the storage is busy: try again later",
	bloberror.BlobImmutableDueToPolicy:        "a policy of the container keeps it from being changed or deleted",
	bloberror.SnapshotsPresent:                "the file has snapshots: delete them",
	"Crc64Mismatch":                           "the data was changed in transit: try again",
	"FeatureNotSupported":                     "the storage lacks features of Azure: start Azurite with --loose and --skipApiVersionCheck",
	"KeyBasedAuthenticationNotPermitted":      "the storage account allows no keys: use an identity",
	"BlobNotFoundOrNoPermission":              azureRole,
	"InvalidAuthenticationInfo":               "the storage rejects the token, which must be of the tenant of the storage account",
	"NoAuthenticationInformation":             "the storage rejects the token, which must be of the tenant of the storage account",
	"PublicAccessNotPermitted":                azureRole,
	"EncryptionScopeNotFound":                 "create the encryption scope in the storage account, or correct key encryption-scope of the Secret",
	"EncryptionScopeDisabled":                 "enable the encryption scope of the storage account",
	"KeyVaultEncryptionKeyNotFound":           "the key of the encryption scope is gone, or the storage account may not use it",
	"KeyVaultAccessTokenCannotBeAcquired":     "the storage account may not use the key of the encryption scope: give its identity the role Key Vault Crypto Service Encryption User",
}

// azureKinds are answers of Azure that callers tell apart.
var azureKinds = map[bloberror.Code]error{
	bloberror.BlobAlreadyExists: ErrExists, bloberror.BlobNotFound: ErrNotFound, bloberror.AuthorizationPermissionMismatch: ErrForbidden,
	bloberror.InsufficientAccountPermissions: ErrForbidden, "BlobNotFoundOrNoPermission": ErrForbidden,
}

// entraCode is how Microsoft Entra ID begins what it says; entra is what to do about it.
var (
	entraCode = regexp.MustCompile(`AADSTS\d+`)
	entra     = map[string]string{
		"AADSTS7000215": "the secret of the client is wrong: it is the secret's value, not its ID",
		"AADSTS7000222": "the secret of the client has expired",
		"AADSTS700016":  "the tenant has no such client",
		"AADSTS90002":   "there is no such tenant",
		"AADSTS700027":  "the certificate of the identity is not registered, or has expired",
		"AADSTS700024":  "the token is not valid yet, or has expired: check the clock of the node",
		"AADSTS70021":   "the identity has no federated credential for " + federated,
		"AADSTS700211":  "the federated credential of the identity names another issuer than this cluster's",
		"AADSTS700212":  "the federated credential of the identity names another audience than api://AzureADTokenExchange",
		"AADSTS700213":  "the federated credential of the identity is not for " + federated,
	}
)

// federated is what a federated credential must say.
const federated = "subject system:serviceaccount:hypershift:etcd-backup-job (the namespace is the operator's), audience api://AzureADTokenExchange and this cluster's issuer"

// azureRemedy is the storage's answer without its ids, and what to do about it.
func azureRemedy(err error) error {
	var said *azcore.ResponseError
	var identity *azidentity.AuthenticationFailedError
	switch {
	case errors.As(err, &identity):
		// It quotes requests and answers.
		code := entraCode.FindString(err.Error())
		text := "Microsoft Entra ID issues no token for the storage"
		if code == "" {
			return answer{text: text + ": check tenant, client and secret, and that it can be reached from here"}
		}
		if text += ": " + code; entra[code] != "" {
			text += " (" + entra[code] + ")"
		}
		return answer{text: text}
	case errors.As(err, &said):
		code := bloberror.Code(said.ErrorCode)
		kind := azureKinds[code]
		switch {
		case code == "" && said.StatusCode == http.StatusNotFound:
			kind = ErrNotFound // an answer without a body says no more
		case code == "" && said.StatusCode == http.StatusForbidden:
			code, kind = bloberror.AuthorizationPermissionMismatch, ErrForbidden
		}
		text := fmt.Sprintf("HTTP %d", said.StatusCode)
		if code != "" {
			text = string(code)
		}
		if what := azureRemedies[code]; what != "" {
			text += " (" + what + ")"
		}
		return answer{text, kind}
	}
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err // its URL names parts of what is written, and nothing that anybody knows
	}
	return err
}
