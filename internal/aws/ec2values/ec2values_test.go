package ec2values

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/aws/tags"
)

func TestTags(t *testing.T) {
	t.Run("When a set becomes EC2's tags it should be in order, and read back as it was", func(t *testing.T) {
		g := NewWithT(t)
		set := tags.Set{"b": "2", "a": "", "c": "3"}
		tagged := Tagged(types.ResourceTypeInstance, set)
		g.Expect(tagged).To(HaveLen(1))
		g.Expect(tagged[0].Tags).To(Equal([]types.Tag{{Key: aws.String("a"), Value: aws.String("")}, {Key: aws.String("b"), Value: aws.String("2")}, {Key: aws.String("c"), Value: aws.String("3")}}))
		g.Expect(Set(tagged[0].Tags)).To(Equal(set))
	})
}
