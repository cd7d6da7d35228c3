package cloud

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/companion"
)

// cloudProgram has the libraries of clouds; see decision 57.
const cloudProgram = "hcp-cloud"

// Flags say what the operator does in clouds, which the program beside it does.
type Flags struct {
	Bucket, bucketRegion, bucketCredentials string
	privatePlatform                         string
}

// Add adds the flags to a command.
func (c *Flags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&c.Bucket, "oidc-storage-provider-s3-bucket-name", "", "bucket that the OIDC documents of hosted clusters on AWS are published in; empty: none are")
	fs.StringVar(&c.bucketRegion, "oidc-storage-provider-s3-region", "", "region of that bucket")
	fs.StringVar(&c.bucketCredentials, "oidc-storage-provider-s3-credentials", "", "file with credentials for that bucket, in the format of the AWS command line; empty: what the environment offers")
	fs.StringVar(&c.privatePlatform, "private-platform", string(hyperv1.NonePlatform), "platform whose private clusters are supported: AWS or Azure, with credentials and region or resource group of the management cluster in the environment, or None")
}

// envRegion is the variable by which SDKs of AWS learn of their region.
const envRegion = "AWS_REGION"

// envGroup is the variable that names the resource group of the management cluster's load balancers on Azure.
const envGroup = "AZURE_RESOURCE_GROUP"

// Validate says which flags do not fit together.
func (c Flags) Validate() error {
	var errs []error
	if (c.Bucket == "") != (c.bucketRegion == "") {
		errs = append(errs, errors.New("--oidc-storage-provider-s3-bucket-name and --oidc-storage-provider-s3-region: give both or none"))
	}
	if c.bucketCredentials != "" && c.Bucket == "" {
		errs = append(errs, errors.New("--oidc-storage-provider-s3-credentials: give --oidc-storage-provider-s3-bucket-name, too"))
	}
	switch {
	case c.privatePlatform == string(hyperv1.AWSPlatform) && os.Getenv(envRegion) == "":
		errs = append(errs, fmt.Errorf("--private-platform: %s in the environment must name the region of the management cluster", envRegion))
	case c.AzureLink() && os.Getenv(envGroup) == "":
		errs = append(errs, fmt.Errorf("--private-platform: %s in the environment must name the resource group of the management cluster's load balancers", envGroup))
	case !c.PrivateLink() && !c.AzureLink() && c.privatePlatform != string(hyperv1.NonePlatform):
		errs = append(errs, fmt.Errorf("--private-platform %q: must be AWS, Azure or None", c.privatePlatform))
	}
	return errors.Join(errs...)
}

// PrivateLink says whether VPC endpoint services are made.
func (c Flags) PrivateLink() bool { return c.privatePlatform == string(hyperv1.AWSPlatform) }

// AzureLink says whether Private Link services are made.
func (c Flags) AzureLink() bool { return c.privatePlatform == string(hyperv1.AzurePlatform) }

// Setup adds the programs that work in clouds, if there is something for them to do.
func (c Flags) Setup(mgr manager.Manager, kubeconfig string, privateCAPI bool) error {
	var programs [][]string
	if c.Bucket != "" || c.PrivateLink() {
		programs = append(programs, c.arguments(kubeconfig, privateCAPI))
	}
	if c.AzureLink() {
		programs = append(programs, azureArguments(kubeconfig, privateCAPI))
	}
	for _, args := range programs {
		path, err := companion.Beside(cloudProgram)
		if err != nil {
			return err
		}
		if err := mgr.Add(&companion.Program{Path: path, Args: args}); err != nil {
			return fmt.Errorf("adding %s %s: %w", cloudProgram, args[0], err)
		}
	}
	return nil
}

func azureArguments(kubeconfig string, privateCAPI bool) []string {
	args := []string{"azure-management", fmt.Sprintf("--private-capi-types=%t", privateCAPI)}
	if kubeconfig != "" {
		args = append(args, "--kubeconfig="+kubeconfig)
	}
	return args
}

func (c Flags) arguments(kubeconfig string, privateCAPI bool) []string {
	args := []string{"management", fmt.Sprintf("--private-capi-types=%t", privateCAPI)}
	if c.PrivateLink() {
		args = append(args, "--private-link")
	}
	for _, f := range [][2]string{
		{"kubeconfig", kubeconfig}, {"oidc-storage-provider-s3-bucket-name", c.Bucket}, {"oidc-storage-provider-s3-region", c.bucketRegion},
		{"oidc-storage-provider-s3-credentials", c.bucketCredentials},
	} {
		if f[1] != "" {
			args = append(args, "--"+f[0]+"="+f[1])
		}
	}
	return args
}
