package privatelink

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Variables of the environment, besides those that the SDK knows.
const (
	// EnvCredentials is a file of credentials in JSON: subscriptionId, tenantId, clientId and clientSecret.
	EnvCredentials = "AZURE_CREDENTIALS_FILE"
	// EnvSubscription and EnvGroup say where the management cluster's load balancers are.
	EnvSubscription = "AZURE_SUBSCRIPTION_ID"
	EnvGroup        = "AZURE_RESOURCE_GROUP"
)

// configuration is a cloud by its name in spec.platform.azure.cloud.
func configuration(name string) (cloud.Configuration, error) {
	switch name {
	case "", "AzurePublicCloud":
		return cloud.AzurePublic, nil
	case "AzureUSGovernmentCloud":
		return cloud.AzureGovernment, nil
	case "AzureChinaCloud":
		return cloud.AzureChina, nil
	}
	return cloud.Configuration{}, fmt.Errorf("spec.platform.azure.cloud is %q: write AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud", name)
}

type credentialsFile struct {
	SubscriptionID string `json:"subscriptionId"`
	TenantID       string `json:"tenantId"`
	ClientID       string `json:"clientId"`
	ClientSecret   string `json:"clientSecret"`
}

// Location is where an operator works, and as whom.
type Location struct {
	Subscription, Group string
	Token               azcore.TokenCredential
	Options             *arm.ClientOptions
}

// OpenManagement reads from the environment as whom the hypershift-operator works in a cloud, and where. It makes no request. No error says what is in the file.
func OpenManagement(cloudName string) (Location, error) {
	c, err := configuration(cloudName)
	if err != nil {
		return Location{}, err
	}
	common := azcore.ClientOptions{Cloud: c}
	at := Location{Subscription: os.Getenv(EnvSubscription), Group: os.Getenv(EnvGroup), Options: &arm.ClientOptions{ClientOptions: common}}
	switch path := os.Getenv(EnvCredentials); {
	case path != "":
		raw, err := os.ReadFile(path)
		if err != nil {
			return Location{}, errors.New("the operator's credentials for Azure can't be read: install with --azure-private-creds or --azure-private-secret")
		}
		var f credentialsFile
		if json.Unmarshal(raw, &f) != nil || f.TenantID == "" || f.ClientID == "" || f.ClientSecret == "" {
			return Location{}, errors.New("the operator's credentials for Azure must be JSON with subscriptionId, tenantId, clientId and clientSecret")
		}
		at.Subscription = cmp.Or(at.Subscription, f.SubscriptionID)
		secret, err := azidentity.NewClientSecretCredential(f.TenantID, f.ClientID, f.ClientSecret, &azidentity.ClientSecretCredentialOptions{ClientOptions: common})
		if err != nil {
			return Location{}, errors.New("the operator's credentials for Azure name no tenant, client or secret that could be one")
		}
		at.Token = bySecret{secret}
	case os.Getenv("AZURE_FEDERATED_TOKEN_FILE") != "":
		at.Token, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: common})
	default:
		at.Token, err = azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ClientOptions: common, ID: azidentity.ClientID(os.Getenv("AZURE_CLIENT_ID"))})
	}
	if err == nil && (at.Subscription == "" || at.Group == "") {
		err = fmt.Errorf("%s and %s must say where the management cluster's load balancers are: install with --azure-pls-subscription-id and --azure-pls-resource-group", EnvSubscription, EnvGroup)
	}
	return at, err
}

// bySecret is a credential by the secret of a client.
type bySecret struct{ azcore.TokenCredential }

// GetToken implements azcore.TokenCredential.
func (b bySecret) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := b.TokenCredential.GetToken(ctx, o)
	if err != nil {
		err = &secretRefused{err}
	}
	return token, err
}

// secretRefused is an error of a credential by the secret of a client, for which another remedy helps than for others.
type secretRefused struct{ cause error }

// Error implements error.
func (s *secretRefused) Error() string { return s.cause.Error() }

// Unwrap gives the SDK's error.
func (s *secretRefused) Unwrap() error { return s.cause }

// OpenControlPlane is as whom the control-plane-operator works in a hosted cluster's subscription: by the tokens of its pod.
func OpenControlPlane(cloudName, subscription string) (Location, error) {
	c, err := configuration(cloudName)
	if err != nil {
		return Location{}, err
	}
	common := azcore.ClientOptions{Cloud: c}
	token, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: common})
	if err != nil {
		return Location{}, errors.New("the control-plane-operator has no identity in Azure: " +
			"spec.platform.azure.azureAuthenticationConfig.workloadIdentities.controlPlaneOperator of the HostedCluster names it")
	}
	return Location{Subscription: subscription, Token: token, Options: &arm.ClientOptions{ClientOptions: common}}, nil
}
