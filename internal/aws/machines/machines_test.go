package machines

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"
)

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"worker-1": "worker-1", "../../etc/passwd": ".._.._etc_passwd", "..": "i-1", "": "i-1", "a b/c": "a_b_c",
	} {
		t.Run("When a machine is called "+name+" its file should be "+want, func(t *testing.T) {
			NewWithT(t).Expect(fileName(types.Instance{InstanceId: aws.String("i-1"), Tags: []types.Tag{{Key: aws.String("Name"), Value: &name}}})).To(Equal(want))
		})
	}
}

func TestBastionValidate(t *testing.T) {
	t.Run("When all is wrong it should name each", func(t *testing.T) {
		NewWithT(t).Expect(Bastion{AllowCIDR: "x"}.Validate()).To(MatchError(And(ContainSubstring("--infra-id"), ContainSubstring("--allow-cidr"), ContainSubstring("SSH key"))))
	})
}
