package openshift

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

// Namespaces of operators that use the cloud, and the Secrets that they read.
const (
	openshiftConfig    = "openshift-config"
	csiDrivers         = "openshift-cluster-csi-drivers"
	ingressOperator    = "openshift-ingress-operator"
	registryNamespace  = "openshift-image-registry"
	cloudCredentials   = "cloud-credentials"
	installCredentials = "installer-cloud-credentials"
	// identityToken is where programs in the hosted cluster have the token of their ServiceAccount that a cloud takes for an identity.
	identityToken = "/var/run/secrets/openshift/serviceaccount/token"
)

// credential is a Secret for one program.
type credential struct {
	namespace, name string
	data            map[string][]byte
	// capability without which the program isn't there.
	capability hyperv1.OptionalCapability
}

// credentials let programs in the hosted cluster act on the platform: where it can, as identities without a secret.
func credentials(in Input) ([]Action, error) {
	var all []credential
	var err error
	switch p := in.HCP.Spec.Platform; {
	case in.on(hyperv1.AWSPlatform) && p.AWS != nil:
		all = awsCredentials(p.AWS)
	case in.on(hyperv1.AzurePlatform) && p.Azure != nil:
		all, err = azureCredentials(in)
	case in.on(hyperv1.OpenStackPlatform) && p.OpenStack != nil:
		all, err = openStackCredentials(in)
	case in.on(hyperv1.PowerVSPlatform) && p.PowerVS != nil:
		all, err = powerVSCredentials(in)
	case in.on(hyperv1.GCPPlatform) && p.GCP != nil:
		all, err = gcpCredentials(p.GCP)
	}
	var actions []Action
	for _, c := range all {
		if c.capability != "" && !in.has(c.capability) {
			continue
		}
		for _, a := range apply(secret(c.namespace, c.name, "Opaque", c.data)) {
			a.AwaitsNamespace = true // the operator's namespace comes with the operator
			actions = append(actions, a)
		}
	}
	config, configErr := cloudConfig(in)
	return append(actions, config...), errors.Join(err, configErr)
}

func awsCredentials(aws *hyperv1.AWSPlatformSpec) []credential {
	of := func(namespace, name, role string, capability hyperv1.OptionalCapability) credential {
		return credential{namespace, name, map[string][]byte{"credentials": []byte(payload.AWSCredentials(role) + "region = " + aws.Region + "\n")}, capability}
	}
	return []credential{
		of(csiDrivers, "ebs-cloud-credentials", aws.RolesRef.StorageARN, ""),
		of(ingressOperator, cloudCredentials, aws.RolesRef.IngressARN, hyperv1.IngressCapability),
		of(registryNamespace, installCredentials, aws.RolesRef.ImageRegistryARN, hyperv1.ImageRegistryCapability),
	}
}

func azureCredentials(in Input) ([]credential, error) {
	azure := in.HCP.Spec.Platform.Azure
	auth := azure.AzureAuthenticationConfig
	var ingress, registry, disk, file string
	switch {
	case auth.ManagedIdentities != nil:
		// The ingress operator of Azure Red Hat OpenShift runs in the control plane, where it has another identity; it asks for a value all the same.
		ids := auth.ManagedIdentities.DataPlane
		ingress, registry, disk, file = "fakeClientID", ids.ImageRegistryMSIClientID, ids.DiskMSIClientID, ids.FileMSIClientID
	case auth.WorkloadIdentities != nil:
		ids := auth.WorkloadIdentities
		ingress, registry = string(ids.Ingress.ClientID), string(ids.ImageRegistry.ClientID)
		disk, file = string(ids.Disk.ClientID), string(ids.File.ClientID)
	default:
		return nil, errors.New("spec.platform.azure.azureAuthenticationConfig has neither managedIdentities nor workloadIdentities")
	}
	of := func(namespace, name, client string, capability hyperv1.OptionalCapability) credential {
		return credential{namespace, name, map[string][]byte{
			"azure_federated_token_file": []byte(identityToken), "azure_region": []byte(azure.Location), "azure_resource_prefix": []byte(in.HCP.Name + "-" + in.HCP.Spec.InfraID),
			"azure_resourcegroup": []byte(azure.ResourceGroupName), "azure_subscription_id": []byte(azure.SubscriptionID), "azure_tenant_id": []byte(azure.TenantID),
			"azure_client_id": []byte(client),
		}, capability}
	}
	return []credential{
		of(ingressOperator, cloudCredentials, ingress, hyperv1.IngressCapability),
		of(registryNamespace, installCredentials, registry, hyperv1.ImageRegistryCapability),
		of(csiDrivers, "azure-disk-credentials", disk, ""), of(csiDrivers, "azure-file-credentials", file, ""),
	}, nil
}

func openStackCredentials(in Input) ([]credential, error) {
	name := in.HCP.Spec.Platform.OpenStack.IdentityRef.Name
	identity := in.secret(name)
	if identity == nil {
		return nil, fmt.Errorf("secret %s, which spec.platform.openstack.identityRef names, is not in the control plane namespace", name)
	}
	data := map[string][]byte{} // the Secret may be empty
	maps.Copy(data, identity.Data)
	data["cloud.conf"] = []byte(in.configMap(openStackConfig, "cloud.conf"))
	if ca := identity.Data["cacert"]; len(ca) > 0 {
		data["ca-bundle.pem"] = ca
	}
	var all []credential
	for _, at := range [][2]string{
		{csiDrivers, "openstack-cloud-credentials"}, {csiDrivers, "manila-cloud-credentials"}, {"openshift-manila-csi-driver", "manila-cloud-credentials"},
		{registryNamespace, installCredentials}, {"openshift-cloud-network-config-controller", cloudCredentials},
	} {
		all = append(all, credential{namespace: at[0], name: at[1], data: data})
	}
	return all, nil
}

func powerVSCredentials(in Input) ([]credential, error) {
	p := in.HCP.Spec.Platform.PowerVS
	var all []credential
	var errs []error
	for _, c := range []struct {
		from            string
		namespace, name string
		capability      hyperv1.OptionalCapability
	}{
		{p.IngressOperatorCloudCreds.Name, ingressOperator, cloudCredentials, hyperv1.IngressCapability},
		{p.StorageOperatorCloudCreds.Name, csiDrivers, "ibm-powervs-cloud-credentials", ""},
		{p.ImageRegistryOperatorCloudCreds.Name, registryNamespace, installCredentials, hyperv1.ImageRegistryCapability},
	} {
		s := in.secret(c.from)
		if s == nil {
			errs = append(errs, fmt.Errorf("secret %s, which spec.platform.powervs names for %s, is not in the control plane namespace", c.from, c.namespace))
			continue
		}
		const key = "ibmcloud_api_key"
		all = append(all, credential{c.namespace, c.name, map[string][]byte{key: s.Data[key]}, c.capability})
	}
	return all, errors.Join(errs...)
}

// gcpCredentials say how to trade the token of a ServiceAccount of the hosted cluster for one of Google's.
func gcpCredentials(gcp *hyperv1.GCPPlatformSpec) ([]credential, error) {
	w := gcp.WorkloadIdentity
	raw, err := json.Marshal(map[string]any{
		"type":                              "external_account",
		"audience":                          fmt.Sprintf("//iam.googleapis.com/projects/%s/locations/global/workloadIdentityPools/%s/providers/%s", w.ProjectNumber, w.PoolID, w.ProviderID),
		"subject_token_type":                "urn:ietf:params:oauth:token-type:jwt",
		"token_url":                         "https://sts.googleapis.com/v1/token",
		"service_account_impersonation_url": fmt.Sprintf("https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/%s:generateAccessToken", w.ServiceAccountsEmails.ImageRegistry),
		"credential_source":                 map[string]any{"file": identityToken, "format": map[string]any{"type": "text"}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding credentials for GCP: %w", err)
	}
	return []credential{{registryNamespace, installCredentials, map[string][]byte{"service_account.json": raw}, hyperv1.ImageRegistryCapability}}, nil
}

// ConfigMaps of the control plane namespace with the configuration of its cloud controller manager.
const (
	azureConfig     = "azure-cloud-config"
	openStackConfig = "openstack-cloud-config"
)

// cloudConfig is that configuration, for operators of the hosted cluster.
func cloudConfig(in Input) ([]Action, error) {
	switch {
	case in.on(hyperv1.AzurePlatform):
		conf := in.configMap(azureConfig, "cloud.conf")
		if conf == "" {
			return nil, fmt.Errorf("ConfigMap %s of the control plane namespace has no cloud.conf yet", azureConfig)
		}
		return apply(configMap(openshiftConfig, cloudProviderConfig, map[string]string{"config": conf})), nil
	case in.on(hyperv1.OpenStackPlatform):
		cm := in.Control.ConfigMaps[openStackConfig]
		if cm == nil {
			return nil, fmt.Errorf("ConfigMap %s is not in the control plane namespace yet", openStackConfig)
		}
		return apply(configMap(openshiftConfig, cloudProviderConfig, cm.Data), configMap(managedConfig, "kube-cloud-config", cm.Data)), nil
	}
	return nil, nil
}

// credentialSources are the Secrets and ConfigMaps that these are made of.
func credentialSources(hcp *hyperv1.HostedControlPlane) (configMaps, secrets []string) {
	switch p := hcp.Spec.Platform; {
	case p.Type == hyperv1.AzurePlatform:
		configMaps = []string{azureConfig}
	case p.Type == hyperv1.OpenStackPlatform && p.OpenStack != nil:
		configMaps, secrets = []string{openStackConfig}, []string{p.OpenStack.IdentityRef.Name}
	case p.Type == hyperv1.PowerVSPlatform && p.PowerVS != nil:
		secrets = []string{p.PowerVS.IngressOperatorCloudCreds.Name, p.PowerVS.StorageOperatorCloudCreds.Name, p.PowerVS.ImageRegistryOperatorCloudCreds.Name}
	}
	return configMaps, slices.Compact(secrets)
}
