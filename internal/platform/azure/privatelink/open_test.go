package privatelink

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	. "github.com/onsi/gomega"
)

// noToken is a credential that Azure refuses.
type noToken struct{}

func (noToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, &azidentity.AuthenticationFailedError{}
}

func TestRotatedSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	write := func(g Gomega, secret string) {
		g.Expect(os.WriteFile(file, fmt.Appendf(nil, `{"subscriptionId":%q,"tenantId":%q,"clientId":%q,"clientSecret":%q}`, management, management, guest, secret), 0o600)).To(Succeed())
	}
	t.Setenv(EnvCredentials, file)
	t.Setenv(EnvGroup, "mgmt")
	r := &Services{Credentials: file, Open: func(cloudName string) (*Provider, error) {
		at, err := OpenManagement(cloudName)
		if err != nil {
			return nil, err
		}
		return NewProvider(at)
	}}
	t.Run("When the client's secret is rotated another client should take the new one", func(t *testing.T) {
		g := NewWithT(t)
		write(g, "old")
		first, err := r.open(nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.open(nil)).To(BeIdenticalTo(first))
		write(g, "new")
		second, err := r.open(nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(second == first).To(BeFalse())
		g.Expect(r.open(nil)).To(BeIdenticalTo(second))
		g.Expect(second.Token).To(BeAssignableToTypeOf(bySecret{}))
	})
	t.Run("When Azure refuses the client's secret it should name where that is", func(t *testing.T) {
		g := NewWithT(t)
		_, err := bySecret{noToken{}}.GetToken(t.Context(), policy.TokenRequestOptions{})
		g.Expect(told("failed to x", err)).To(MatchError(And(HavePrefix("failed to x: Azure takes no token"), ContainSubstring("--azure-private-secret"), Not(ContainSubstring("federated")))))
		_, err = noToken{}.GetToken(t.Context(), policy.TokenRequestOptions{})
		g.Expect(told("failed to x", err)).To(MatchError(ContainSubstring("federated credential")))
	})
}
