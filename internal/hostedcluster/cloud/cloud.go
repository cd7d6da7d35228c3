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
	fs.StringVar(&c.privatePlatform, "private-platform", string(hyperv1.NonePlatform), "platform whose private clusters are supported: AWS, with credentials and region of the management cluster in the environment, or None")
}

// envRegion is the variable by which SDKs of AWS learn of their region.
const envRegion = "AWS_REGION"

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
	case c.privatePlatform != string(hyperv1.AWSPlatform) && c.privatePlatform != string(hyperv1.NonePlatform):
		errs = append(errs, fmt.Errorf("--private-platform %q: must be AWS or None", c.privatePlatform))
	}
	return errors.Join(errs...)
}

// PrivateLink says whether VPC endpoint services are made.
func (c Flags) PrivateLink() bool { return c.privatePlatform == string(hyperv1.AWSPlatform) }

// Setup adds the program that works in clouds, if there is something for it to do.
func (c Flags) Setup(mgr manager.Manager, kubeconfig string, privateCAPI bool) error {
	if c.Bucket == "" && !c.PrivateLink() {
		return nil
	}
	path, err := companion.Beside(cloudProgram)
	if err != nil {
		return err
	}
	return mgr.Add(&companion.Program{Path: path, Args: c.arguments(kubeconfig, privateCAPI)})
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
