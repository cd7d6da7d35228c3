package workers

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
)

// TestRenew has the SDK's own client ask an STS that takes tokens until it doesn't, and gives credentials that are good for very long.
func TestRenew(t *testing.T) {
	var refuses atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		switch {
		case !strings.Contains(string(raw), "AssumeRoleWithWebIdentity"):
			_, _ = io.WriteString(w, `<DescribeVpcEndpointsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><vpcEndpointSet/></DescribeVpcEndpointsResponse>`)
		case refuses.Load():
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code><Message>no</Message></Error></ErrorResponse>`)
		default:
			_, _ = io.WriteString(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
				<SessionToken>s</SessionToken><SecretAccessKey>k</SecretAccessKey><Expiration>2099-01-01T00:00:00Z</Expiration><AccessKeyId>ASIA</AccessKeyId>
				</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
		}
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "credentials")
	g := NewWithT(t)
	g.Expect(os.WriteFile(token, []byte("jwt"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(file, fmt.Appendf(nil, "[default]\nrole_arn = arn:aws:iam::123456789012:role/r\nweb_identity_token_file = %s\nregion = eu-central-1\n", token), 0o600)).To(Succeed())
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_CONFIG_FILE", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_SDK_LOAD_CONFIG", "true")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	r := &Reconciler{NewAPI: NewAPI}
	hcp := &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{Platform: hyperv1.PlatformSpec{Type: hyperv1.AWSPlatform, AWS: &hyperv1.AWSPlatformSpec{Region: "eu-central-1"}}}}
	hcp.Status.Conditions = []metav1.Condition{conditions.True(hyperv1.KubeAPIServerAvailable, hyperv1.AsExpectedReason, "")}
	t.Run("When AWS takes tokens it should say so", func(t *testing.T) {
		NewWithT(t).Expect(r.identity(t.Context(), hcp).Status).To(Equal(metav1.ConditionTrue))
	})
	t.Run("When it takes the next one no longer it should say so, though credentials of before are good", func(t *testing.T) {
		refuses.Store(true)
		NewWithT(t).Expect(r.identity(t.Context(), hcp)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", "InvalidIdentityToken")))
	})
	t.Run("When it takes them again it should say so", func(t *testing.T) {
		refuses.Store(false)
		NewWithT(t).Expect(r.identity(t.Context(), hcp).Status).To(Equal(metav1.ConditionTrue))
	})
}
