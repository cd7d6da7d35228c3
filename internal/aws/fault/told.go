package fault

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"hcp.internal/platform/internal/aws/remedy"
)

// told is an error of which only the code is shown.
type told struct {
	what, code, remedy string
	err                error
}

// Told is what a condition says of an error: what failed, the code, and what to do. Texts of AWS's are left out: the numbers of requests in them would
// change the condition with each pass. Code, Is and so on still see the error. nil stays nil.
func Told(what string, err error) error {
	if err == nil {
		return nil
	}
	t := &told{what: what, code: Code(err), err: err}
	var answer *smithyhttp.ResponseError
	var op *smithy.OperationError
	switch {
	case t.code != "":
		t.remedy = Advice(t.code)
	case errors.As(err, &answer) && errors.As(err, &op):
		t.code = fmt.Sprintf("HTTP %d from %s", answer.HTTPStatusCode(), op.Service())
	}
	return t
}

// Coded is Told for a code that comes as part of an answer.
func Coded(what, code string) error { return Told(what, &smithy.GenericAPIError{Code: code}) }

// Error implements error.
func (t *told) Error() string {
	switch {
	case t.code == "":
		return t.what + ": AWS could not be asked"
	case t.remedy == "":
		return t.what + ", code: " + t.code
	}
	return t.what + ", code: " + t.code + " (" + t.remedy + ")"
}

// Unwrap implements errors.Unwrap.
func (t *told) Unwrap() error { return t.err }

// byItself is said of what an operator repeats until it works.
const byItself = "the operator tries again automatically"

// advice is Remedy's for people who look at a condition, where that is other than for whoever ran a command.
var advice = map[string]string{
	"UnauthorizedOperation":       "give the role the permission for this call: `hypershift create iam aws` creates roles that have it",
	"AccessDenied":                "let the role make this call, and trust the cluster's tokens: `hypershift create iam aws` creates such roles",
	"AccessDeniedException":       "give the role the permission for this call: `hypershift create iam aws` creates roles that have it",
	"ExpiredToken":                "the token was not renewed in time: " + byItself,
	"ExpiredTokenException":       "the token was not renewed in time: " + byItself,
	"VpcEndpointLimitExceeded":    "remove an endpoint or ask AWS for a higher quota \"Interface VPC endpoints per VPC\"",
	"AddressLimitExceeded":        "release an address, or ask AWS for a higher quota \"EC2-VPC Elastic IPs\"",
	"InvalidSubnetID.NotFound":    "name subnets of the cluster's VPC in spec.platform.aws.subnet of the NodePools",
	"InvalidSubnetId.NotFound":    "name subnets of the cluster's VPC in spec.platform.aws.subnet of the NodePools",
	"InvalidVpcID.NotFound":       "name the VPC of the machines in spec.platform.aws.cloudProviderConfig.vpc",
	"InvalidServiceName":          "the endpoint service is gone, or doesn't accept connections yet: " + byItself,
	"InvalidServiceName.NotFound": "the endpoint service is gone, or doesn't accept connections yet: " + byItself,
	"NoSuchHostedZone":            "there is no zone of this name: `hypershift create infra aws` creates it",
	"ConcurrentModification":      "someone else is changing the same object: " + byItself,
	"PriorRequestNotComplete":     "an earlier change is still in progress: " + byItself,
	"NatGatewayLimitExceeded":     "ask AWS for a higher quota \"NAT gateways per Availability Zone\"",
	"ConflictingDomainExists":     "this VPC already has a zone of that name: delete it",
	"InvalidSubnet":               "the subnet was just created, or is gone: " + byItself,
	"InvalidElasticIpID.NotFound": "the address was just created, or is gone: " + byItself,
	"InvalidGroup.Duplicate":      "a security group of that name was created in the meantime: " + byItself,
	"InvalidKeyPair.Duplicate":    "a key of that name was created in the meantime: " + byItself,
	"InvalidParameter":            "check what spec.platform.aws of the HostedCluster and its NodePools names",
	"InvalidParameterValue":       "check what spec.platform.aws of the HostedCluster and its NodePools names",
	"NotFoundException":           "the KMS key does not exist: name one of the region in spec.secretEncryption.kms.aws.activeKey.arn",
	"DisabledException":           "enable the KMS key: until then, nothing that it encrypted can be read",
	"KMSInvalidStateException":    "the KMS key is about to be deleted or incomplete: cancel its deletion",
	"KeyUnavailableException":     "the KMS key is temporarily unavailable: " + byItself,
	"InvalidKeyUsageException":    "name a symmetric KMS key for encryption",
}

// Advice is what to do about a code that a condition shows; empty when nothing is known.
func Advice(code string) string {
	if text := advice[code]; text != "" {
		return text
	}
	if Is(&smithy.GenericAPIError{Code: code}, throttled...) {
		return "the account has reached AWS's limit of requests, or the service has a problem: " + byItself
	}
	if text := cmp.Or(Remedy(code), remedy.Launch(code)); text != "" {
		return strings.Replace(text, "run the command again", byItself, 1)
	}
	switch err := (&smithy.GenericAPIError{Code: code}); {
	case Gone(err):
		return "the object does not exist, or no longer exists: " + byItself
	case Later(err):
		return "another object has to be deleted first: " + byItself
	}
	return ""
}
