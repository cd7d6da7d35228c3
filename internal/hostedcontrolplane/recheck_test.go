package hostedcontrolplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestRecheckAfter(t *testing.T) {
	encrypted := func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{}}
	}
	active := func(hcp *hyperv1.HostedControlPlane) {
		encrypted(hcp)
		hcp.Status.SecretEncryption.ActiveKey.AESCBC = &hyperv1.AESCBCKeyStatus{DataHash: "old"}
	}
	for name, tc := range map[string]struct {
		mutate func(*hyperv1.HostedControlPlane)
		ready  bool
		renew  time.Duration
		want   time.Duration
	}{
		"When it is not ready it should look soon":                                    {want: recheckUnready},
		"When it is ready it should look seldom":                                      {ready: true, want: recheckReady},
		"When a certificate is due earlier it should look then":                       {ready: true, renew: time.Minute, want: time.Minute},
		"When everything is encrypted with the key of the spec it should look seldom": {mutate: active, ready: true, want: recheckReady},
		"When no status says what is stored it should look until it does":             {mutate: encrypted, ready: true, want: recheckRotation},
		"When a key is to be changed it should look for the end of API servers": {mutate: func(hcp *hyperv1.HostedControlPlane) {
			active(hcp)
			hcp.Status.SecretEncryption.TargetKey.AESCBC = &hyperv1.AESCBCKeyStatus{DataHash: "new"}
		}, ready: true, want: recheckRotation},
	} {
		t.Run(name, func(t *testing.T) {
			hcp := &hyperv1.HostedControlPlane{}
			if tc.mutate != nil {
				tc.mutate(hcp)
			}
			hcp.Status.Ready = tc.ready
			NewWithT(t).Expect(recheckAfter(Observed{HCP: hcp, Renew: tc.renew}, time.Unix(0, 0))).To(Equal(tc.want))
		})
	}
}
