package settings

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestAuditPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		audit  configv1.Audit
		rules  int
		logged bool
		err    string
	}{
		"When no profile is named it should be Default":                 {rules: 4, logged: true},
		"When it is None it should log nothing":                         {audit: configv1.Audit{Profile: configv1.NoneAuditProfileType}, rules: 3},
		"When it is None but a group has a profile it should log":       {audit: configv1.Audit{Profile: configv1.NoneAuditProfileType, CustomRules: []configv1.AuditCustomRule{{Group: "g", Profile: configv1.DefaultAuditProfileType}}}, rules: 5, logged: true},
		"When it is None also for a group it should log nothing":        {audit: configv1.Audit{Profile: configv1.NoneAuditProfileType, CustomRules: []configv1.AuditCustomRule{{Group: "g", Profile: configv1.NoneAuditProfileType}}}, rules: 4},
		"When write requests are wanted it should keep credentials out": {audit: configv1.Audit{Profile: configv1.WriteRequestBodiesAuditProfileType}, rules: 5, logged: true},
		"When all requests are wanted it should keep credentials out":   {audit: configv1.Audit{Profile: configv1.AllRequestBodiesAuditProfileType}, rules: 4, logged: true},
		"When the profile of a group is unknown it should name it":      {audit: configv1.Audit{CustomRules: []configv1.AuditCustomRule{{Group: "g", Profile: "Loud"}}}, logged: true, err: `group g: unknown audit profile "Loud"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hcp := &hyperv1.HostedControlPlane{}
			hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{APIServer: &configv1.APIServerSpec{Audit: tc.audit}}
			g.Expect(Auditing(hcp)).To(Equal(tc.logged))
			cm := &corev1.ConfigMap{}
			err := WriteAuditConfig(hcp, cm)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			policy := auditv1.Policy{}
			g.Expect(yaml.Unmarshal([]byte(cm.Data[AuditPolicyKey]), &policy)).To(Succeed())
			g.Expect(policy.Rules).To(HaveLen(tc.rules))
			g.Expect(cm.Data).To(HaveKeyWithValue(AuditProfileKey, string(AuditProfile(hcp))))
		})
	}
}
