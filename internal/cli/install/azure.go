package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
)

const (
	azureCredentials = "hypershift-operator-azure-credentials" // Secret and volume
	azureFolder      = "/etc/azure"
	// azureUse on pods and azureClientID on service accounts are what Azure's webhook for workload identities looks at.
	azureUse      = "azure.workload.identity/use"
	azureClientID = "azure.workload.identity/client-id"
)

// Azure says what the operator does in Azure. The zero value: nothing.
type Azure struct {
	// Private says that private hosted clusters are supported, whose load balancers are in ResourceGroup of Subscription, the management cluster's.
	Private                     bool
	Subscription, ResourceGroup string
	// Credentials is the content of a file for a Secret that the installation makes.
	Credentials []byte
	// Secret is an existing one, SecretKey its key.
	Secret, SecretKey string
	// ClientID is that of a managed identity.
	ClientID string
}

// ways is how many ways to call Azure are given.
func (a Azure) ways() int { return count(len(a.Credentials) > 0, a.Secret != "", a.ClientID != "") }

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (a Azure) validate() (errs []error) {
	if !a.Private {
		if a.ways() > 0 || a.Subscription != "" || a.ResourceGroup != "" {
			errs = append(errs, errors.New("--azure-private-… and --azure-pls-…: give --private-platform Azure, too"))
		}
		return errs
	}
	if a.ways() != 1 {
		errs = append(errs, errors.New("--azure-private-creds, --azure-private-secret and --azure-pls-managed-identity-client-id: give exactly one of them"))
	}
	if a.ResourceGroup == "" {
		errs = append(errs, errors.New("--azure-pls-resource-group: name the resource group that the management cluster's internal load balancers are in"))
	}
	if a.Subscription == "" && len(a.Credentials) == 0 {
		errs = append(errs, errors.New("--azure-pls-subscription-id: name the subscription of the management cluster"))
	}
	for _, f := range [][2]string{{"--azure-pls-subscription-id", a.Subscription}, {"--azure-pls-managed-identity-client-id", a.ClientID}} {
		if f[1] != "" && !uuid.MatchString(f[1]) {
			errs = append(errs, fmt.Errorf("%s %q: must be a UUID", f[0], f[1]))
		}
	}
	return errs
}

func addAzureFlags(fs *pflag.FlagSet, a *Azure, credentials *string) {
	fs.StringVar(credentials, "azure-private-creds", "", "File with credentials as whom the operator makes Private Link services of private clusters, in JSON: subscriptionId, tenantId, clientId, clientSecret; with --private-platform Azure")
	fs.StringVar(&a.Secret, "azure-private-secret", a.Secret, "Existing Secret with Azure credentials")
	fs.StringVar(&a.SecretKey, "azure-private-secret-key", credentialsFile, "Key of that Secret")
	fs.StringVar(&a.ClientID, "azure-pls-managed-identity-client-id", a.ClientID, "Client ID of a managed identity that may create Private Link services, instead of credentials")
	fs.StringVar(&a.Subscription, "azure-pls-subscription-id", a.Subscription, "Subscription of the management cluster's load balancers (default: that of --azure-private-creds)")
	fs.StringVar(&a.ResourceGroup, "azure-pls-resource-group", a.ResourceGroup, "Resource group of the management cluster's load balancers, in which Private Link services are created")
}

// loadAzure reads the file. No error repeats what is in it.
func loadAzure(path string, a *Azure) error {
	if path == "" {
		return nil
	}
	raw, err := connect.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--azure-private-creds: %w", err)
	}
	var f struct{ SubscriptionID, TenantID, ClientID, ClientSecret string } // names are compared without their case
	if json.Unmarshal(raw, &f) != nil || f.SubscriptionID == "" || f.TenantID == "" || f.ClientID == "" || f.ClientSecret == "" {
		return errors.New("--azure-private-creds: the file must be JSON with subscriptionId, tenantId, clientId and clientSecret")
	}
	a.Credentials = raw
	return nil
}

// azureObjects are the Secret with credentials.
func azureObjects(o Options) (objs []client.Object) {
	if len(o.Azure.Credentials) > 0 {
		objs = append(objs, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: azureCredentials, Namespace: o.Namespace}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{credentialsFile: o.Azure.Credentials},
		})
	}
	return objs
}

// addAzure gives the operator what it needs for Azure.
func addAzure(template *corev1.PodTemplateSpec, o Options) {
	a := o.Azure
	if !a.Private {
		return
	}
	pod := &template.Spec
	main := &pod.Containers[0]
	main.Args = append(main.Args, "--private-platform=Azure")
	set := func(name, value string) {
		if value != "" {
			main.Env = append(main.Env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	set("AZURE_SUBSCRIPTION_ID", a.Subscription)
	set("AZURE_RESOURCE_GROUP", a.ResourceGroup)
	set("AZURE_CLIENT_ID", a.ClientID)
	if a.ClientID != "" {
		metav1.SetMetaDataLabel(&template.ObjectMeta, azureUse, "true")
		return
	}
	secret, key := azureCredentials, credentialsFile
	if a.Secret != "" {
		secret, key = a.Secret, a.SecretKey
	}
	set("AZURE_CREDENTIALS_FILE", azureFolder+"/"+key)
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: azureCredentials, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To[int32](0o640)}}})
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: azureCredentials, MountPath: azureFolder, ReadOnly: true})
}
