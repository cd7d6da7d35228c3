package fault

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/aws/remedy"
)

// outcome is what becomes of a code.
type outcome string

const (
	isGone   outcome = "it is gone: there is nothing to do, or it is made again"
	isLater  outcome = "something else goes first, and then it is tried again"
	isPass   outcome = "it passes by itself, and is tried again after a growing pause"
	isDenied outcome = "this identity may not: somebody has to change that"
	isSaid   outcome = "a person has to change something"
	isHere   outcome = "the caller looks again, or takes what is there: see the place"
)

// known are the codes that the code has to know, by what becomes of them. Where a code is somewhere else told of than by this package, the place is named.
var known = []struct {
	service string
	outcome outcome
	codes   string
	place   string
}{
	{"EC2, when something is destroyed", isGone, "InvalidVpcID.NotFound InvalidSubnetID.NotFound InvalidGroup.NotFound InvalidRouteTableID.NotFound InvalidInternetGatewayID.NotFound " +
		"NatGatewayNotFound InvalidAllocationID.NotFound InvalidDhcpOptionID.NotFound InvalidDhcpOptionsID.NotFound", "infra"},
	{"EC2, right after something is made", isHere, "InvalidSubnet InvalidElasticIpID.NotFound", "infra"},
	{"EC2, right after something is made", isGone, "InvalidRouteTableId.NotFound InvalidNatGatewayID.NotFound", "infra"},
	{"EC2, private access", isGone, "InvalidVpcEndpointId.NotFound InvalidVpcEndpointService.NotFound InvalidVpcEndpointServiceId.NotFound", "privatelink"},
	{"EC2, private access", isLater, "ExistingVpcEndpointConnections", "privatelink"},
	{"EC2, private access", isHere, "InvalidParameter", "privatelink"},
	{"EC2, security groups", isHere, "InvalidPermission.Duplicate InvalidGroup.Duplicate", "workers"},
	{"EC2, bastion", isGone, "InvalidKeyPair.NotFound", "machines"},
	{"EC2, bastion", isHere, "InvalidKeyPair.Duplicate", "machines"},
	{"EC2, when something is destroyed", isLater, "DependencyViolation", ""},
	{"EC2", isDenied, "UnauthorizedOperation AuthFailure InvalidClientTokenId OptInRequired PendingVerification", ""},
	{"EC2", isSaid, "VpcLimitExceeded AddressLimitExceeded NatGatewayLimitExceeded SubnetLimitExceeded InternetGatewayLimitExceeded VpcEndpointLimitExceeded " +
		"InstanceLimitExceeded VcpuLimitExceeded InsufficientInstanceCapacity", ""},
	{"EC2, machines", isSaid, "InvalidAMIID.NotFound InvalidAMIID.Malformed InvalidParameterValue Unsupported MaxSpotInstanceCountExceeded SpotMaxPriceTooLow " +
		"InvalidCapacityReservationId.NotFound ReservationCapacityExceeded", "launch"},
	{"all", isPass, "Throttling ThrottlingException RequestLimitExceeded TooManyRequestsException ServiceUnavailable InternalError", ""},
	{"ELB", isGone, "LoadBalancerNotFound TargetGroupNotFound", ""},
	{"ELB", isLater, "ResourceInUse", ""},
	{"Route53", isGone, "NoSuchHostedZone", ""},
	{"Route53", isLater, "InvalidChangeBatch HostedZoneNotEmpty PriorRequestNotComplete", ""},
	{"Route53", isSaid, "ConflictingDomainExists HostedZoneAlreadyExists", ""},
	{"S3", isGone, "NoSuchBucket NoSuchKey", ""},
	{"S3", isLater, "BucketNotEmpty", ""},
	{"S3", isDenied, "AccessDenied", ""},
	{"IAM", isGone, "NoSuchEntity", ""},
	{"IAM", isHere, "EntityAlreadyExists", "iam"},
	{"IAM", isLater, "DeleteConflict ConcurrentModification", ""},
	{"IAM", isSaid, "LimitExceeded MalformedPolicyDocument", ""},
	{"STS", isSaid, "InvalidIdentityToken IDPCommunicationError IDPRejectedClaim", ""},
	{"STS", isDenied, "ExpiredTokenException AccessDenied", ""},
	{"KMS", isSaid, "NotFoundException DisabledException KMSInvalidStateException KeyUnavailableException", ""},
	{"KMS", isDenied, "AccessDeniedException", ""},
	{"RAM", isGone, "UnknownResourceException", ""},
	{"RAM", isLater, "InvalidStateTransitionException", ""},
}

func TestEachCodeHasAnOutcome(t *testing.T) {
	for _, row := range known {
		for _, code := range strings.Fields(row.codes) {
			t.Run("When "+row.service+" answers "+code+" it should be known what becomes of it, and a condition say what to do", func(t *testing.T) {
				g := NewWithT(t)
				err := &smithy.OperationError{ServiceID: row.service, OperationName: "Call", Err: &smithy.GenericAPIError{Code: code, Message: "Request 1234-5678 failed at 12:00:01"}}
				g.Expect([]bool{Gone(err), Later(err), Denied(err)}).To(Equal([]bool{row.outcome == isGone, row.outcome == isLater, row.outcome == isDenied}), string(row.outcome))
				if row.outcome != isLater { // the SDK repeats some of these, too
					g.Expect(Passing(err)).To(Equal(row.outcome == isPass), string(row.outcome))
				}
				text := Told("failed to do it", err).Error()
				g.Expect(text).To(MatchRegexp(`^failed to do it, code: `+code+` \(.{15,}\)$`), "what a condition says")
				g.Expect(text).NotTo(Or(ContainSubstring("1234"), ContainSubstring("12:00"), ContainSubstring("--")), "what changes with each call, and flags, don't belong there")
				if row.outcome == isPass {
					g.Expect(text).To(ContainSubstring(byItself))
				}
				if row.place == "launch" {
					g.Expect(remedy.Launch(code)).To(MatchRegexp(`spec\.|quota|reservation`), "what a NodePool's condition says")
				}
			})
		}
	}
	t.Run("When an answer has no code it should be told who answered, by number", func(t *testing.T) {
		err := &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateVpc", Err: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusInternalServerError}}}}
		NewWithT(t).Expect(Told("failed to do it", err)).To(MatchError("failed to do it, code: HTTP 500 from EC2"))
	})
}
