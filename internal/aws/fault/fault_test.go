package fault

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	. "github.com/onsi/gomega"
)

func failed(code, text string) error {
	return &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateVpc", Err: &smithy.GenericAPIError{Code: code, Message: text}}
}

func TestExplain(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"When a quota is used up it should name the quota": {
			err:  failed("VpcLimitExceeded", "The maximum number of VPCs has been reached."),
			want: `EC2 CreateVpc: VpcLimitExceeded: The maximum number of VPCs has been reached. (remove a VPC or ask AWS for a higher quota "VPCs per Region")`,
		},
		"When the answer has no code it should say who answered": {
			err: &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateVpc", Err: &smithyhttp.ResponseError{
				Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusInternalServerError}}, Err: errors.New("<html>")}},
			want: "EC2 CreateVpc: HTTP 500 from EC2",
		},
		"When it is no error of AWS it should stay as it is": {err: errors.New("no such file"), want: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Explain(tc.err)).To(MatchError(tc.want))
		})
	}
	t.Run("When an answer is long it should be cut, and stay an error with a code", func(t *testing.T) {
		g := NewWithT(t)
		err := Explain(fmt.Errorf("making: %w", failed("UnauthorizedOperation", strings.Repeat("x", 5000))))
		g.Expect(len(err.Error())).To(BeNumerically("<", 700))
		g.Expect(Denied(err)).To(BeTrue())
		g.Expect(Explain(err)).To(BeIdenticalTo(err))
	})
}

func TestKinds(t *testing.T) {
	t.Run("When a code is known it should be of its kind whatever its case", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(Gone(failed("InvalidRouteTableId.NotFound", ""))).To(BeTrue())
		g.Expect(Later(failed("DependencyViolation", ""))).To(BeTrue())
		g.Expect(Passing(failed("RequestLimitExceeded", ""))).To(BeTrue())
		g.Expect(Passing(failed("VpcLimitExceeded", ""))).To(BeFalse())
		g.Expect(Denied(failed("AuthFailure", ""))).To(BeTrue())
		g.Expect(Gone(errors.New("NoSuchBucket"))).To(BeFalse())
		g.Expect(Passing(nil)).To(BeFalse())
	})
}

func TestRemedies(t *testing.T) {
	// Codes of requests that nobody repeats by hand without doing something first.
	for _, code := range append([]string{
		"VpcLimitExceeded", "AddressLimitExceeded", "NatGatewayLimitExceeded", "SubnetLimitExceeded", "InternetGatewayLimitExceeded",
		"VpcEndpointLimitExceeded", "InstanceLimitExceeded", "VcpuLimitExceeded", "InsufficientInstanceCapacity", "LimitExceeded",
	}, denied...) {
		t.Run("When AWS answers "+code+" it should say what to do", func(t *testing.T) {
			NewWithT(t).Expect(Remedy(code)).NotTo(BeEmpty())
		})
	}
}
