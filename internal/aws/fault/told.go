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
const byItself = "the operator tries again by itself"

// advice is Remedy's for people who look at a condition, where that is other than for whoever ran a command.
var advice = map[string]string{
	"UnauthorizedOperation":       "let the role make this call: `hypershift create iam aws` makes roles that may",
	"AccessDenied":                "let the role make this call, and trust the cluster's tokens: `hypershift create iam aws` makes roles that do",
	"AccessDeniedException":       "let the role make this call: `hypershift create iam aws` makes roles that may",
	"ExpiredToken":                "the token was not renewed in time: " + byItself,
	"ExpiredTokenException":       "the token was not renewed in time: " + byItself,
	"VpcEndpointLimitExceeded":    "remove an endpoint or ask AWS for a higher quota \"Interface VPC endpoints per VPC\"",
	"AddressLimitExceeded":        "release an address, or ask AWS for a higher quota \"EC2-VPC Elastic IPs\"",
	"InvalidSubnetID.NotFound":    "name subnets of the cluster's VPC by spec.platform.aws.subnet of the NodePools",
	"InvalidSubnetId.NotFound":    "name subnets of the cluster's VPC by spec.platform.aws.subnet of the NodePools",
	"InvalidVpcID.NotFound":       "name the VPC of the machines by spec.platform.aws.cloudProviderConfig.vpc",
	"InvalidServiceName":          "the endpoint service is gone or lets nobody in yet: " + byItself,
	"InvalidServiceName.NotFound": "the endpoint service is gone or lets nobody in yet: " + byItself,
	"NoSuchHostedZone":            "the zone is looked for by its name: `hypershift create infra aws` makes it",
	"ConcurrentModification":      "somebody else changes the same object: " + byItself,
	"PriorRequestNotComplete":     "an earlier change takes its time: " + byItself,
	"NatGatewayLimitExceeded":     "ask AWS for a higher quota \"NAT gateways per Availability Zone\"",
	"ConflictingDomainExists":     "a zone of that name is on this VPC already: delete it",
	"InvalidSubnet":               "the subnet was just made or is gone: " + byItself,
	"InvalidElasticIpID.NotFound": "the address was just made or is gone: " + byItself,
	"InvalidGroup.Duplicate":      "a security group of that name came meanwhile: " + byItself,
	"InvalidKeyPair.Duplicate":    "a key of that name came meanwhile: " + byItself,
	"InvalidParameter":            "check what spec.platform.aws of the HostedCluster and its NodePools names",
	"InvalidParameterValue":       "check what spec.platform.aws of the HostedCluster and its NodePools names",
	"NotFoundException":           "the KMS key does not exist: name one of the region by spec.secretEncryption.kms.aws.activeKey.arn",
	"DisabledException":           "enable the KMS key: nothing that it encrypted can be read meanwhile",
	"KMSInvalidStateException":    "the KMS key is about to be deleted or incomplete: cancel its deletion",
	"KeyUnavailableException":     "the KMS key is unavailable for the moment: " + byItself,
	"InvalidKeyUsageException":    "name a symmetric KMS key for encryption",
}

// Advice is what to do about a code that a condition shows; empty when nothing is known.
func Advice(code string) string {
	if text := advice[code]; text != "" {
		return text
	}
	if Is(&smithy.GenericAPIError{Code: code}, throttled...) {
		return "the account is asked too often, or the service has trouble: " + byItself
	}
	if text := cmp.Or(Remedy(code), remedy.Launch(code)); text != "" {
		return strings.Replace(text, "run the command again", byItself, 1)
	}
	switch err := (&smithy.GenericAPIError{Code: code}); {
	case Gone(err):
		return "it does not exist, or not any more: " + byItself
	case Later(err):
		return "something else has to go first: " + byItself
	}
	return ""
}
