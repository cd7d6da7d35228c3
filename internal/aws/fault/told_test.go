package fault

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"
)

func TestTold(t *testing.T) {
	for code, want := range map[string]string{
		"VpcEndpointLimitExceeded": "quota", "UnauthorizedOperation": "hypershift create iam aws", "RequestLimitExceeded": "tries again automatically", "InvalidSubnetID.NotFound": "spec.platform.aws.subnet",
		"EntityAlreadyExists": "tries again automatically", "NoSuchThing": "code: NoSuchThing",
	} {
		t.Run("When AWS answers "+code+" it should tell code and remedy, and no more", func(t *testing.T) {
			g := NewWithT(t)
			err := Told("failed to do it", fmt.Errorf("x: %w", &smithy.GenericAPIError{Code: code, Message: "request 1234"}))
			g.Expect(err).To(MatchError(And(HavePrefix("failed to do it, code: "+code), ContainSubstring(want), Not(ContainSubstring("1234")))))
			g.Expect(err.Error()).NotTo(ContainSubstring("--"), "flags are for those who ran a command")
			g.Expect(Is(err, code)).To(BeTrue())
		})
	}
	t.Run("When AWS could not be asked it should say so", func(t *testing.T) {
		NewWithT(t).Expect(Told("failed", errors.New("dial tcp 192.0.2.1: refused"))).To(MatchError("failed: AWS could not be asked"))
	})
	t.Run("When nothing failed it should be nil", func(t *testing.T) { NewWithT(t).Expect(Told("x", nil)).To(Succeed()) })
}
