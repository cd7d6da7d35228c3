// Package fault knows the errors of AWS: which mean that something is gone, which pass by themselves, and what a person can do.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// maxText bounds what is shown of an answer's text, in bytes: some of AWS's hold a kilobyte of encoded context.
const maxText = 400

// Code is the API's error code; empty when the answer had none.
func Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// Is tells whether the code of err is one of codes. EC2 writes some codes in two ways, so case doesn't count.
func Is(err error, codes ...string) bool {
	code := Code(err)
	return code != "" && slices.ContainsFunc(codes, func(c string) bool { return strings.EqualFold(c, code) })
}

// gone are codes of requests about something that doesn't exist.
var gone = []string{
	"InvalidVpcID.NotFound", "InvalidSubnetID.NotFound", "InvalidGroup.NotFound", "InvalidGroupId.NotFound", "InvalidRouteTableID.NotFound",
	"InvalidRoute.NotFound", "InvalidAssociationID.NotFound", "InvalidInternetGatewayID.NotFound", "Gateway.NotAttached", "NatGatewayNotFound",
	"InvalidNatGatewayID.NotFound", "InvalidAllocationID.NotFound", "InvalidDhcpOptionID.NotFound", "InvalidDhcpOptionsID.NotFound",
	"InvalidInstanceID.NotFound", "InvalidVpcEndpointId.NotFound", "InvalidVpcEndpoint.NotFound", "InvalidVpcEndpointService.NotFound",
	"InvalidVpcEndpointServiceId.NotFound", "InvalidKeyPair.NotFound", "InvalidPermission.NotFound",
	"LoadBalancerNotFound", "TargetGroupNotFound", "NoSuchHostedZone", "NoSuchBucket", "NoSuchKey", "NoSuchUpload", "NoSuchEntity",
	"UnknownResourceException",
}

// Gone tells that what the request was about doesn't exist.
func Gone(err error) bool { return Is(err, gone...) }

// GoneCode is Gone for a code that comes as part of an answer.
func GoneCode(code string) bool {
	return slices.ContainsFunc(gone, func(c string) bool { return strings.EqualFold(c, code) })
}

// later are codes that pass when something else has gone or come.
var later = []string{
	"DependencyViolation", "ResourceInUse", "ExistingVpcEndpointConnections", "HostedZoneNotEmpty", "PriorRequestNotComplete",
	"BucketNotEmpty", "DeleteConflict", "ConcurrentModification", "InvalidStateTransitionException", "InvalidChangeBatch",
	"InvalidIPAddress.InUse", "AuthFailure.InUse",
}

// Later tells that the request is right, but something else has to go first.
func Later(err error) bool { return Is(err, later...) }

// throttled are codes of services that are asked too often or have trouble, besides those that the SDK knows.
var throttled = []string{
	"Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException", "ServiceUnavailable", "InternalError",
	"InternalFailure", "Unavailable", "SlowDown",
}

// Passing tells that the same request may succeed in a moment: throttling, a lost connection, a server's own trouble.
func Passing(err error) bool {
	if err == nil {
		return false
	}
	return Is(err, throttled...) || retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary
}

// denied are codes of requests that this identity may not make.
var denied = []string{
	"UnauthorizedOperation", "AuthFailure", "InvalidClientTokenId", "OptInRequired", "PendingVerification", "AccessDenied",
	"AccessDeniedException", "SignatureDoesNotMatch", "InvalidAccessKeyId", "ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException",
}

// Denied tells that this identity may not make the request; to repeat it is of no use.
func Denied(err error) bool { return Is(err, denied...) }

// remedies say what to do about a code.
var remedies = map[string]string{
	"VpcLimitExceeded":                      "remove a VPC or ask AWS for a higher quota \"VPCs per Region\"",
	"AddressLimitExceeded":                  "release an address, use --single-nat-gateway, or ask AWS for a higher quota \"EC2-VPC Elastic IPs\"",
	"NatGatewayLimitExceeded":               "use --single-nat-gateway or ask AWS for a higher quota \"NAT gateways per Availability Zone\"",
	"SubnetLimitExceeded":                   "ask AWS for a higher quota \"Subnets per VPC\"",
	"InternetGatewayLimitExceeded":          "remove an internet gateway or ask AWS for a higher quota \"Internet gateways per Region\"",
	"VpcEndpointLimitExceeded":              "remove an endpoint or ask AWS for a higher quota \"Gateway VPC endpoints per Region\"",
	"RouteTableLimitExceeded":               "ask AWS for a higher quota \"Route tables per VPC\"",
	"SecurityGroupLimitExceeded":            "ask AWS for a higher quota \"VPC security groups per Region\"",
	"InstanceLimitExceeded":                 "ask AWS for a higher quota of running instances",
	"VcpuLimitExceeded":                     "ask AWS for a higher quota \"Running On-Demand Standard instances\"",
	"InsufficientInstanceCapacity":          "the zone has no capacity left for this instance type: wait, or use another zone or instance type",
	"TooManyHostedZones":                    "remove a hosted zone or ask AWS for a higher quota \"Hosted zones\"",
	"LimitExceeded":                         "remove what isn't needed or ask AWS for a higher quota of this kind",
	"UnauthorizedOperation":                 "give this identity the permission: `hypershift create iam cli-role` creates a role that has it",
	"AccessDenied":                          "give this identity the permission: `hypershift create iam cli-role` creates a role that has it",
	"AccessDeniedException":                 "give this identity the permission: `hypershift create iam cli-role` creates a role that has it",
	"AuthFailure":                           "check the credentials, and that the region is enabled for the account",
	"InvalidClientTokenId":                  "the access key doesn't exist or isn't active: check the credentials",
	"InvalidAccessKeyId":                    "the access key doesn't exist or isn't active: check the credentials",
	"UnrecognizedClientException":           "the access key doesn't exist or isn't active: check the credentials",
	"SignatureDoesNotMatch":                 "the secret key doesn't belong to the access key: check the credentials",
	"ExpiredToken":                          "get new credentials with `aws sts get-session-token`",
	"ExpiredTokenException":                 "get new credentials with `aws sts get-session-token`",
	"OptInRequired":                         "subscribe the account to the service, or enable the region in the account's settings",
	"PendingVerification":                   "AWS still verifies the account in this region: wait for its mail",
	"InvalidVpcRange":                       "choose another --vpc-cidr with a mask of 16",
	"InvalidSubnet.Conflict":                "the VPC has a subnet in this range: keep the order of --zones of the first run",
	"InvalidParameterValue":                 "check the value that the message names",
	"InvalidAMIID.NotFound":                 "name an image of this region",
	"ConflictingDomainExists":               "this VPC already has a zone of that name: delete it, or choose another --base-domain",
	"HostedZoneAlreadyExists":               "run the command again",
	"MalformedPolicyDocument":               "a principal that was just created may not be known yet: run the command again",
	"InvalidIdentityToken":                  "the OIDC provider or the issuer's documents are wrong: `hypershift create iam aws` corrects the provider",
	"IDPCommunicationError":                 "AWS can't read the issuer's documents: make the bucket publicly readable",
	"IDPRejectedClaim":                      "the token's issuer or audience isn't the provider's",
	"NoSuchBucket":                          "create the bucket, or name the right one",
	"EntityAlreadyExists":                   "run the command again",
	"ConcurrentModification":                "someone else is changing the same object: run the command again",
	"InvalidPermission.Duplicate":           "run the command again",
	"InvalidAvailabilityZone":               "name zones of the region in --zones",
	"InvalidServiceName":                    "check --proxy-vpc-endpoint-service-name",
	"RequestLimitExceeded":                  "the account has reached AWS's limit of requests: run the command again later",
	"Throttling":                            "the account has reached AWS's limit of requests: run the command again later",
	"ThrottlingException":                   "the account has reached AWS's limit of requests: run the command again later",
	"TooManyRequestsException":              "the account has reached AWS's limit of requests: run the command again later",
	"ServiceUnavailable":                    "run the command again later",
	"InternalError":                         "run the command again later",
	"DependencyViolation":                   "something else still uses it",
	"ReservationCapacityExceeded":           "the capacity reservation is used up",
	"InvalidCapacityReservationId.NotFound": "name a capacity reservation of this region",
}

// Explained is an error in words for people: service, call, code, text, what to do. It has no request IDs.
type Explained struct {
	Text string
	err  error
}

// Error implements error.
func (e *Explained) Error() string { return e.Text }

// Unwrap gives the SDK's error, so that Code and Is still work.
func (e *Explained) Unwrap() error { return e.err }

// Explain puts an error of the SDK into words. Other errors stay as they are.
func Explain(err error) error {
	var op *smithy.OperationError
	var done *Explained
	if errors.As(err, &done) || !errors.As(err, &op) {
		return err
	}
	where := op.Service() + " " + op.Operation()
	var api smithy.APIError
	var answer *smithyhttp.ResponseError
	switch {
	case errors.As(err, &api):
		text := where + ": " + api.ErrorCode()
		if message := api.ErrorMessage(); message != "" {
			text += ": " + clip(message)
		}
		if remedy := Remedy(api.ErrorCode()); remedy != "" {
			text += " (" + remedy + ")"
		}
		return &Explained{Text: text, err: err}
	case errors.As(err, &answer):
		return &Explained{Text: fmt.Sprintf("%s: HTTP %d from %s", where, answer.HTTPStatusCode(), op.Service()), err: err}
	}
	return &Explained{Text: where + ": " + clip(op.Unwrap().Error()), err: err}
}

// Remedy is what to do about a code; empty when nothing is known.
func Remedy(code string) string { return remedies[code] }

func clip(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
