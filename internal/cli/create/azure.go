package create

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/refuse"
)

var azureTexts = texts{
	short: "Create a hosted cluster on Microsoft Azure",
	long: `Create a hosted cluster on Microsoft Azure.

Resource group, network and identities must exist: this version makes none in the cloud. Identities are either workload
identities (--workload-identities-file), or managed identities whose credentials are in a key vault (--managed-identities-file
and --data-plane-identities-file). The files hold, as JSON or YAML, what the fields workloadIdentities, controlPlane and
dataPlane of spec.platform.azure.azureAuthenticationConfig hold.`,
	example: `  hypershift create cluster azure --name demo --location eastus --base-domain example.com --pull-secret pull-secret.json \
    --azure-creds azure.json --resource-group-name demo --vnet-id /subscriptions/… --subnet-id /subscriptions/… \
    --network-security-group-id /subscriptions/… --workload-identities-file identities.json \
    --release-image registry.example.com/ocp/release:4.22 --render`,
	poolExample: `  hypershift create nodepool azure --cluster-name demo --name demo-large --replicas 3 --instance-type Standard_D8s_v5 \
    --nodepool-subnet-id /subscriptions/…`,
}

// objectEncoding is how credentials of managed identities are stored in the key vault.
const objectEncoding hyperv1.ObjectEncodingFormat = "utf-8"

// azureInfra is what may describe the network instead of flags.
type azureInfra struct {
	BaseDomain        string `json:"baseDomain"`
	PublicZoneID      string `json:"publicZoneID"`
	PrivateZoneID     string `json:"privateZoneID"`
	InfraID           string `json:"infraID"`
	Location          string `json:"region"`
	ResourceGroupName string `json:"resourceGroupName"`
	VNetID            string `json:"vnetID"`
	SubnetID          string `json:"subnetID"`
	SecurityGroupID   string `json:"securityGroupID"`
	BootImageID       string `json:"bootImageID"`
	NATSubnetID       string `json:"natSubnetID"`
	// Identities: managed ones of both planes, or workload identities.
	ControlPlane json.RawMessage                     `json:"controlPlaneMIs"`
	DataPlane    *hyperv1.DataPlaneManagedIdentities `json:"dataPlaneIdentities"`
	Workload     *hyperv1.AzureWorkloadIdentities    `json:"workloadIdentities"`
	KMSClientID  string                              `json:"kmsClientID"`
}

// azureCreds are credentials.
type azureCreds struct {
	SubscriptionID string `json:"subscriptionId"`
	TenantID       string `json:"tenantId"`
	ClientID       string `json:"clientId"`
	ClientSecret   string `json:"clientSecret"`
}

// azure is platform Azure.
type azure struct {
	machines *azureMachines
	refused  refuse.Flags

	credsPath, location, resourceGroup, vnetID, subnetID, securityGroupID, cloud string
	keyID, kmsSecret                                                             string
	managedPath, dataPlanePath, workloadPath                                     string
	issuer, signingKeyPath, oauth, endpointAccess, natSubnetID                   string
	allowedSubscriptions                                                         []string
	zones                                                                        []string

	infra azureInfra
	creds azureCreds
	auth  hyperv1.AzureAuthenticationConfiguration
	key   hyperv1.AzureKMSKey
}

func newAzure() *azure { return &azure{machines: newAzureMachines()} }

func (a *azure) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.credsPath, "azure-creds", "", "File with subscriptionId, tenantId, clientId and clientSecret; they end up in Secret {name}-cloud-credentials (required)")
	fs.StringVar(&a.location, "location", "", "Region of the cluster (required, or in --infra-json)")
	fs.StringVar(&a.cloud, "cloud", "AzurePublicCloud", "Azure cloud, for example AzureUSGovernmentCloud")
	fs.StringVar(&a.resourceGroup, "resource-group-name", "", "Resource group of the cluster (required, or in --infra-json)")
	fs.StringVar(&a.vnetID, "vnet-id", "", "Resource ID of the virtual network (required, or in --infra-json)")
	fs.StringVar(&a.subnetID, "subnet-id", "", "Resource ID of the subnet of machines (required, or in --infra-json)")
	fs.StringVar(&a.securityGroupID, "network-security-group-id", "", "Resource ID of the network security group (required, or in --infra-json)")
	fs.StringVar(&a.keyID, "encryption-key-id", "", "Key that encrypts Secrets in etcd, as https://{vault}.vault.azure.net/keys/{key}/{version}")
	fs.StringVar(&a.kmsSecret, "kms-credentials-secret-name", "", "Name, in the key vault of managed identities, of the credentials that may use the key")
	fs.StringVar(&a.managedPath, "managed-identities-file", "", "File that describes managed identities of control plane components")
	fs.StringVar(&a.dataPlanePath, "data-plane-identities-file", "", "File that describes managed identities of components in the cluster")
	fs.StringVar(&a.workloadPath, "workload-identities-file", "", "File that describes workload identities")
	fs.StringVar(&a.issuer, "oidc-issuer-url", "", "Issuer of service account tokens; needed with workload identities")
	fs.StringVar(&a.signingKeyPath, "sa-token-issuer-private-key-path", "", "File with the PEM private key that signs service account tokens")
	fs.StringVar(&a.oauth, "oauth-publishing-strategy", string(hyperv1.Route), "How the OAuth server is published: Route or LoadBalancer")
	fs.StringVar(&a.endpointAccess, "endpoint-access", string(hyperv1.AzureTopologyPublic), "From where the API can be reached: Public, PublicAndPrivate or Private")
	fs.StringVar(&a.natSubnetID, "endpoint-access-private-nat-subnet-id", "", "Resource ID of the subnet for the Private Link service's address translation (default: one is made)")
	fs.StringSliceVar(&a.allowedSubscriptions, "endpoint-access-private-additional-allowed-subscriptions", nil, "Subscriptions, in addition to the cluster's, that may connect to the Private Link service")
	fs.StringSliceVar(&a.zones, "availability-zones", nil, "Availability zones; each gets a NodePool")
	a.machines.addMachineFlags(fs)
	a.refused.Values(fs, noInfrastructure, azureShapes[:2]...)
	a.refused.Switches(fs, noInfrastructure, azureShapes[2:]...)
}

// azureShapes are flags that shape infrastructure that is made: two with values, then switches. Beside a description of
// infrastructure that was made they mean nothing.
var azureShapes = []string{"resource-group-tags", "dns-zone-rg-name", "assign-custom-hcp-roles", "assign-service-principal-roles", "auto-assign-roles"}

func (a *azure) load(fs *pflag.FlagSet, o *Options) error {
	errs := []error{a.machines.validate()}
	if o.infraJSON == "" {
		errs = append(errs, a.refused.Check(fs))
	} else {
		o.notes = append(o.notes, given(fs, "--infra-json describes what it would shape", azureShapes...)...)
		errs = append(errs, readJSON("--infra-json", o.infraJSON, &a.infra))
		a.useInfra(o)
	}
	a.machines.subnetID, a.machines.bootImageID = a.subnetID, a.infra.BootImageID
	errs = append(errs, required(map[string]string{
		"azure-creds": a.credsPath, "location": a.location, "resource-group-name": a.resourceGroup, "vnet-id": a.vnetID,
		"subnet-id": a.subnetID, "network-security-group-id": a.securityGroupID,
	}, "azure-creds", "location", "resource-group-name", "vnet-id", "subnet-id", "network-security-group-id"))
	if a.credsPath != "" {
		errs = append(errs, a.readCreds())
	}
	var err error
	o.SigningKey, err = readSigningKey(a.signingKeyPath)
	errs = append(errs, err, a.readIdentities(), a.readKey())
	o.IssuerURL = a.issuer
	workload := a.auth.AzureAuthenticationConfigType == hyperv1.AzureAuthenticationTypeWorkloadIdentities
	if workload && a.issuer == "" {
		errs = append(errs, errors.New("workload identities need --oidc-issuer-url, which they trust"))
	}
	if len(o.SigningKey) > 0 && a.issuer == "" {
		errs = append(errs, errors.New("--sa-token-issuer-private-key-path needs --oidc-issuer-url"))
	}
	if !slices.Contains([]string{string(hyperv1.Route), string(hyperv1.LoadBalancer)}, a.oauth) {
		errs = append(errs, fmt.Errorf("--oauth-publishing-strategy %q: must be Route or LoadBalancer", a.oauth))
	}
	if a.oauth == string(hyperv1.LoadBalancer) && !workload {
		errs = append(errs, errors.New("--oauth-publishing-strategy LoadBalancer needs --workload-identities-file, or workloadIdentities in --infra-json: with managed identities the API takes a Route only"))
	}
	access := []string{string(hyperv1.AzureTopologyPublic), string(hyperv1.AzureTopologyPublicAndPrivate), string(hyperv1.AzureTopologyPrivate)}
	if !slices.Contains(access, a.endpointAccess) {
		errs = append(errs, fmt.Errorf("--endpoint-access %q: must be one of %s", a.endpointAccess, strings.Join(access, ", ")))
	}
	o.Private = a.endpointAccess != string(hyperv1.AzureTopologyPublic)
	if o.Private && a.natSubnetID == "" && len(a.allowedSubscriptions) == 0 {
		errs = append(errs, errors.New("--endpoint-access other than Public needs --endpoint-access-private-nat-subnet-id or --endpoint-access-private-additional-allowed-subscriptions"))
	}
	if !o.Private && (a.natSubnetID != "" || len(a.allowedSubscriptions) > 0) {
		errs = append(errs, errors.New("--endpoint-access-private-… flags need --endpoint-access PublicAndPrivate or Private"))
	}
	return errors.Join(errs...)
}

// privateOnly is a value that means something only when the API is reached by a private connection.
func (a *azure) privateOnly(value string) string {
	if a.endpointAccess == string(hyperv1.AzureTopologyPublic) {
		return ""
	}
	return value
}

// useInfra takes from the description what flags don't say.
func (a *azure) useInfra(o *Options) {
	for _, field := range []struct {
		into *string
		from string
	}{
		{&a.location, a.infra.Location}, {&a.resourceGroup, a.infra.ResourceGroupName}, {&a.vnetID, a.infra.VNetID},
		{&a.subnetID, a.infra.SubnetID}, {&a.securityGroupID, a.infra.SecurityGroupID},
		{&a.natSubnetID, a.privateOnly(a.infra.NATSubnetID)}, {&o.InfraID, a.infra.InfraID}, {&o.BaseDomain, a.infra.BaseDomain},
	} {
		if *field.into == "" {
			*field.into = field.from
		}
	}
}

func (a *azure) readCreds() error {
	raw, err := connect.ReadFile(a.credsPath)
	if err != nil {
		return fmt.Errorf("--azure-creds: %w", err)
	}
	// The parser's error may quote the content, and the content may hold a password.
	if yaml.Unmarshal(raw, &a.creds) != nil || a.creds.SubscriptionID == "" || a.creds.TenantID == "" {
		return fmt.Errorf("--azure-creds %s: must be JSON or YAML with subscriptionId and tenantId", a.credsPath)
	}
	return nil
}

func (a *azure) readIdentities() error {
	switch managed := a.managedPath != "" && a.dataPlanePath != ""; {
	case a.workloadPath+a.managedPath+a.dataPlanePath == "" && a.infra.hasIdentities():
		return a.infra.identities(&a.auth)
	case a.workloadPath != "" && a.managedPath == "" && a.dataPlanePath == "":
		a.auth.AzureAuthenticationConfigType = hyperv1.AzureAuthenticationTypeWorkloadIdentities
		a.auth.WorkloadIdentities = &hyperv1.AzureWorkloadIdentities{}
		return readYAML("--workload-identities-file", a.workloadPath, a.auth.WorkloadIdentities)
	case managed && a.workloadPath == "":
		a.auth.AzureAuthenticationConfigType = hyperv1.AzureAuthenticationTypeManagedIdentities
		a.auth.ManagedIdentities = &hyperv1.AzureResourceManagedIdentities{}
		err := errors.Join(
			readYAML("--managed-identities-file", a.managedPath, &a.auth.ManagedIdentities.ControlPlane),
			readYAML("--data-plane-identities-file", a.dataPlanePath, &a.auth.ManagedIdentities.DataPlane))
		encodeObjects(&a.auth.ManagedIdentities.ControlPlane)
		return err
	}
	return errors.New("give either --workload-identities-file, or both of --managed-identities-file and --data-plane-identities-file, or name them in --infra-json: this version makes no identities in the cloud")
}

// hasIdentities says whether the description names identities: the published tool writes empty ones, too.
func (i azureInfra) hasIdentities() bool {
	given := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" && string(raw) != "{}" }
	return i.Workload != nil && *i.Workload != (hyperv1.AzureWorkloadIdentities{}) || given(i.ControlPlane)
}

// identities takes those of the description.
func (i azureInfra) identities(auth *hyperv1.AzureAuthenticationConfiguration) error {
	if i.Workload != nil && *i.Workload != (hyperv1.AzureWorkloadIdentities{}) {
		auth.AzureAuthenticationConfigType, auth.WorkloadIdentities = hyperv1.AzureAuthenticationTypeWorkloadIdentities, i.Workload
		return nil
	}
	managed := &hyperv1.AzureResourceManagedIdentities{}
	// Both planes, as spec.platform.azure.azureAuthenticationConfig.managedIdentities has them, or the control plane alone.
	if err := json.Unmarshal(i.ControlPlane, managed); err != nil {
		return fmt.Errorf("--infra-json: controlPlaneMIs: %w", err)
	}
	if managed.ControlPlane == (hyperv1.ControlPlaneManagedIdentities{}) {
		_ = json.Unmarshal(i.ControlPlane, &managed.ControlPlane)
	}
	if i.DataPlane != nil {
		managed.DataPlane = *i.DataPlane
	}
	encodeObjects(&managed.ControlPlane)
	auth.AzureAuthenticationConfigType, auth.ManagedIdentities = hyperv1.AzureAuthenticationTypeManagedIdentities, managed
	return nil
}

// encodeObjects says how credentials are stored in the key vault, where the description doesn't.
func encodeObjects(plane *hyperv1.ControlPlaneManagedIdentities) {
	for _, identity := range []*hyperv1.ManagedIdentity{
		&plane.CloudProvider, &plane.NodePoolManagement, &plane.ControlPlaneOperator, plane.ImageRegistry, &plane.Ingress, &plane.Network,
		&plane.Disk, &plane.File,
	} {
		if identity != nil && identity.ObjectEncoding == "" {
			identity.ObjectEncoding = objectEncoding
		}
	}
}

// readKey takes the URL of a key apart.
func (a *azure) readKey() error {
	if a.keyID == "" {
		if a.kmsSecret != "" {
			return errors.New("--kms-credentials-secret-name needs --encryption-key-id")
		}
		return nil
	}
	key, err := url.Parse(a.keyID)
	var parts []string
	if err == nil {
		parts = strings.Split(strings.Trim(key.Path, "/"), "/")
	}
	vault, _, dotted := strings.Cut(hostOf(key), ".")
	if len(parts) != 3 || parts[0] != "keys" || !dotted || vault == "" {
		return fmt.Errorf("--encryption-key-id %q: must look like https://{vault}.vault.azure.net/keys/{key}/{version}", a.keyID)
	}
	a.key = hyperv1.AzureKMSKey{KeyVaultName: vault, KeyName: parts[1], KeyVersion: parts[2]}
	if a.kmsSecret == "" && a.infra.KMSClientID == "" {
		return errors.New("--encryption-key-id needs --kms-credentials-secret-name, or a kmsClientID in --infra-json")
	}
	return nil
}

func hostOf(u *url.URL) string {
	if u == nil {
		return ""
	}
	return u.Host
}

func (a *azure) cluster(_ Options, _ Generated, hc *hyperv1.HostedCluster) {
	spec := &hyperv1.AzurePlatformSpec{
		Cloud:                     a.cloud,
		Location:                  a.location,
		ResourceGroupName:         a.resourceGroup,
		VnetID:                    a.vnetID,
		SubnetID:                  a.subnetID,
		SubscriptionID:            a.creds.SubscriptionID,
		SecurityGroupID:           a.securityGroupID,
		TenantID:                  a.creds.TenantID,
		AzureAuthenticationConfig: a.auth,
	}
	if a.endpointAccess != string(hyperv1.AzureTopologyPublic) {
		spec.Topology = hyperv1.AzureTopologyType(a.endpointAccess)
		link := &hyperv1.AzurePrivateLinkSpec{NATSubnetID: hyperv1.AzureSubnetResourceID(a.natSubnetID)}
		for _, id := range a.allowedSubscriptions {
			link.AdditionalAllowedSubscriptions = append(link.AdditionalAllowedSubscriptions, hyperv1.AzureSubscriptionID(id))
		}
		spec.Private = &hyperv1.AzurePrivateSpec{Type: hyperv1.AzurePrivateTypePrivateLink, PrivateLink: link}
	}
	hc.Spec.Platform.Azure = spec
	hc.Spec.DNS.PublicZoneID, hc.Spec.DNS.PrivateZoneID = a.infra.PublicZoneID, a.infra.PrivateZoneID
	if a.keyID != "" {
		kms := &hyperv1.AzureKMSSpec{ActiveKey: a.key}
		if a.kmsSecret != "" {
			kms.KMS = &hyperv1.ManagedIdentity{CredentialsSecretName: a.kmsSecret, ObjectEncoding: objectEncoding}
		} else {
			kms.WorkloadIdentity = &hyperv1.WorkloadIdentity{ClientID: hyperv1.AzureClientID(a.infra.KMSClientID)}
		}
		hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.KMS, KMS: &hyperv1.KMSSpec{Provider: hyperv1.Azure, Azure: kms}}
	}
	if a.oauth == string(hyperv1.LoadBalancer) {
		for i := range hc.Spec.Services {
			if s := &hc.Spec.Services[i]; s.Service == hyperv1.OAuthServer {
				strategy := hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
				if s.ServicePublishingStrategy.Route != nil {
					strategy.LoadBalancer = &hyperv1.LoadBalancerPublishingStrategy{Hostname: s.ServicePublishingStrategy.Route.Hostname}
				}
				s.ServicePublishingStrategy = strategy
			}
		}
	}
}

// objects are the credentials. No field names them: they are for whoever removes the cluster's infrastructure.
func (a *azure) objects(o Options, g Generated) []client.Object {
	return []client.Object{&corev1.Secret{
		ObjectMeta: secretMeta(o, g, cloudCredentialsName(o.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			"AZURE_SUBSCRIPTION_ID": []byte(a.creds.SubscriptionID), "AZURE_TENANT_ID": []byte(a.creds.TenantID),
			"AZURE_CLIENT_ID": []byte(a.creds.ClientID), "AZURE_CLIENT_SECRET": []byte(a.creds.ClientSecret),
		},
	}}
}

// pools are one, or one for each availability zone, all of the same size.
func (a *azure) pools(o Options, _ Generated, shared *hyperv1.NodePool) []*hyperv1.NodePool {
	zones := a.zones
	if len(zones) == 0 {
		zones = []string{a.machines.zone}
	}
	var pools []*hyperv1.NodePool
	for _, zone := range zones {
		np := shared.DeepCopy()
		if len(a.zones) > 0 {
			np.Name = o.Name + "-" + zone
		}
		machines := *a.machines
		machines.zone = zone
		machines.fill(np)
		pools = append(pools, np)
	}
	return pools
}

// readYAML reads a file whose every field must be known: a misspelt identity would be a cluster that can't log in.
func readYAML(flag, path string, into any) error {
	raw, err := connect.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("%s %s: %w", flag, path, err)
	}
	return nil
}
