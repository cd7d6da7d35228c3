package uninstall

import (
	"testing"

	. "github.com/onsi/gomega"

	"hcp.internal/platform/internal/aws/infra"
	"hcp.internal/platform/internal/cli/aws"
)

func TestWordsOfDestroyInfra(t *testing.T) {
	t.Run("When a command is printed that removes what is in AWS it should have that command's words", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(ownerFlag).To(Equal(aws.OwnerFlag))
		g.Expect(noPrefix).To(Equal(infra.NoPrefix))
	})
}
