package privatelink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestFreeSubnet(t *testing.T) {
	for name, c := range map[string]struct {
		ranges, taken []string
		want          string
	}{
		"is empty":                         {[]string{"10.0.0.0/16"}, nil, "10.0.1.0/24"},
		"has subnets":                      {[]string{"10.0.0.0/16"}, []string{"10.0.0.0/24", "10.0.1.0/25", "10.0.2.0/23"}, "10.0.4.0/24"},
		"is elsewhere":                     {[]string{"172.20.4.0/22"}, []string{"172.20.4.0/24", "172.20.5.0/24"}, "172.20.6.0/24"},
		"is as large as the subnet":        {[]string{"192.168.7.0/24"}, nil, "192.168.7.0/24"},
		"has a range of another family":    {[]string{"fd00::/48", "10.8.0.0/16"}, []string{"fd00::/64"}, "10.8.1.0/24"},
		"has a second range, and no room":  {[]string{"10.0.0.0/23", "10.9.0.0/16"}, []string{"10.0.1.0/24"}, "10.9.1.0/24"},
		"is larger than 16 bits":           {[]string{"10.0.0.0/8"}, []string{"10.0.1.0/24"}, "10.0.2.0/24"},
		"is full":                          {[]string{"10.0.0.0/16"}, []string{"10.0.0.0/16"}, ""},
		"has no range that is long enough": {[]string{"10.0.0.0/28"}, nil, ""},
	} {
		t.Run("When a virtual network "+name+" it should find room or none", func(t *testing.T) {
			g := NewWithT(t)
			got, err := freeSubnet(c.ranges, c.taken)
			g.Expect(got).To(Equal(c.want))
			g.Expect(err != nil).To(Equal(c.want == ""))
		})
	}
}

func TestAllowed(t *testing.T) {
	spec := hyperv1.AzurePrivateLinkServiceSpec{SubscriptionID: "B", AdditionalAllowedSubscriptions: []hyperv1.AzureSubscriptionID{"a", "b"}}
	t.Run("When subscriptions are named twice, or in another case, they should be one", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(allowed(spec)).To(Equal([]string{"a", "b"}))
		g.Expect(same(to.SliceOfPtrs("B", "A"), allowed(spec))).To(BeTrue())
		g.Expect(same(to.SliceOfPtrs("a"), allowed(spec))).To(BeFalse())
		g.Expect(same(nil, allowed(spec))).To(BeFalse())
	})
}

func TestTold(t *testing.T) {
	t.Run("When Azure refuses it should say the code and what to do, and nothing that differs each time", func(t *testing.T) {
		err := told("failed to x", fmt.Errorf("wrapped: %w", &azcore.ResponseError{ErrorCode: "ScopeLocked", StatusCode: http.StatusConflict}))
		NewWithT(t).Expect(err).To(MatchError("failed to x: Azure says ScopeLocked (HTTP 409): a lock forbids it: remove the lock"))
	})
	t.Run("When Azure isn't reached it should not repeat addresses", func(t *testing.T) {
		NewWithT(t).Expect(told("failed to x", errors.New("dial tcp 192.0.2.1:4711: refused"))).To(MatchError("failed to x: Azure isn't reached: check the network of the management cluster, and its proxy"))
	})
	t.Run("When Azure asks for patience it should get more", func(t *testing.T) {
		g := NewWithT(t)
		busy := told("x", &azcore.ResponseError{ErrorCode: "TooManyRequests", StatusCode: http.StatusTooManyRequests})
		g.Expect(pauseAfter(context.Background(), busy)).To(BeNumerically(">=", throttled))
		g.Expect(pauseAfter(context.Background(), waitFor("x"))).To(Equal(goesOn))
		g.Expect(pauseAfter(context.Background(), nil)).To(BeNumerically(">=", lookAgain))
		g.Expect(pauseAfter(context.Background(), errors.New("x"))).To(BeNumerically("<", 2*time.Minute))
	})
}
