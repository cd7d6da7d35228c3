package settings

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/auditlogs"
)

// Keys of a ConfigMap that holds an audit policy.
const (
	AuditPolicyKey  = "policy.yaml"
	AuditProfileKey = "profile"
)

// WriteAuditConfig makes a ConfigMap that of an audit profile: the policy that it stands for, and its name.
func WriteAuditConfig(hcp *hyperv1.HostedControlPlane, cm *corev1.ConfigMap) error {
	policy, err := auditPolicy(APIServer(hcp).Audit)
	if err != nil {
		return err
	}
	raw, err := yaml.Marshal(policy)
	if err != nil {
		return fmt.Errorf("encoding the audit policy: %w", err)
	}
	cm.Data = map[string]string{AuditPolicyKey: string(raw), AuditProfileKey: string(AuditProfile(hcp))}
	return nil
}

// AuditProfile is spec.configuration.apiServer.audit.profile; Default when it is unset.
func AuditProfile(hcp *hyperv1.HostedControlPlane) configv1.AuditProfileType {
	return profileOf(APIServer(hcp).Audit)
}

func profileOf(audit configv1.Audit) configv1.AuditProfileType {
	if audit.Profile == "" {
		return configv1.DefaultAuditProfileType
	}
	return audit.Profile
}

// PersistentAuditLogs says how audit logs outlive their Pods; nil: they don't, or there are none.
func PersistentAuditLogs(hcp *hyperv1.HostedControlPlane) (*auditlogs.Settings, error) {
	if !Auditing(hcp) {
		return nil, nil
	}
	return auditlogs.Parse(hcp.Annotations)
}

// Auditing says whether anything is logged at all.
func Auditing(hcp *hyperv1.HostedControlPlane) bool {
	audit := APIServer(hcp).Audit
	for _, rule := range audit.CustomRules {
		if rule.Profile != configv1.NoneAuditProfileType {
			return true
		}
	}
	return profileOf(audit) != configv1.NoneAuditProfileType
}

// auditPolicy is the base, then the rules of each group with a profile of its own, then those of the profile for all others:
// the first rule that matches a request decides.
func auditPolicy(audit configv1.Audit) (*auditv1.Policy, error) {
	policy := &auditv1.Policy{
		TypeMeta:          metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		OmitManagedFields: true,
		OmitStages:        []auditv1.Stage{auditv1.StageRequestReceived},
		Rules: []auditv1.PolicyRule{
			{
				Level:           auditv1.LevelNone,
				UserGroups:      []string{"system:authenticated", "system:unauthenticated"},
				NonResourceURLs: []string{"/api*", "/version", "/healthz", "/readyz", "/livez"},
			},
			{
				Level:     auditv1.LevelNone,
				Users:     []string{"system:apiserver"},
				Resources: []auditv1.GroupResources{resources("apiserver.openshift.io", "apirequestcounts", "apirequestcounts/*")},
			},
		},
	}
	for _, custom := range audit.CustomRules {
		rules, err := profileRules(custom.Profile)
		if err != nil {
			return nil, fmt.Errorf("audit rule of group %s: %w", custom.Group, err)
		}
		for i := range rules {
			rules[i].UserGroups = []string{custom.Group}
		}
		policy.Rules = append(policy.Rules, rules...)
	}
	rules, err := profileRules(profileOf(audit))
	if err != nil {
		return nil, err
	}
	policy.Rules = append(policy.Rules, rules...)
	return policy, nil
}

var writeVerbs = []string{"update", "patch", "create", "delete", "deletecollection"}

// profileRules are the rules of a profile. Bodies of what holds credentials are never logged.
func profileRules(profile configv1.AuditProfileType) ([]auditv1.PolicyRule, error) {
	everything := func(level auditv1.Level) auditv1.PolicyRule { return auditv1.PolicyRule{Level: level} }
	switch profile {
	case configv1.NoneAuditProfileType:
		return []auditv1.PolicyRule{everything(auditv1.LevelNone)}, nil
	case configv1.DefaultAuditProfileType:
		return []auditv1.PolicyRule{
			{Level: auditv1.LevelRequestResponse, Verbs: writeVerbs, Resources: []auditv1.GroupResources{
				resources("user.openshift.io", "identities"),
				resources("oauth.openshift.io", "oauthaccesstokens", "oauthauthorizetokens"),
			}},
			everything(auditv1.LevelMetadata),
		}, nil
	case configv1.WriteRequestBodiesAuditProfileType:
		return []auditv1.PolicyRule{
			sensitive(),
			{Level: auditv1.LevelRequestResponse, Verbs: writeVerbs},
			everything(auditv1.LevelMetadata),
		}, nil
	case configv1.AllRequestBodiesAuditProfileType:
		return []auditv1.PolicyRule{sensitive(), everything(auditv1.LevelRequestResponse)}, nil
	}
	return nil, fmt.Errorf("unknown audit profile %q: must be Default, WriteRequestBodies, AllRequestBodies or None", profile)
}

// sensitive is what holds credentials: that it was touched is logged, its content is not.
func sensitive() auditv1.PolicyRule {
	return auditv1.PolicyRule{Level: auditv1.LevelMetadata, Resources: []auditv1.GroupResources{
		resources("route.openshift.io", "routes", "routes/status"),
		resources("", "secrets", "serviceaccounts/token"),
		resources("authentication.k8s.io", "tokenreviews", "tokenrequests"),
		resources("oauth.openshift.io", "oauthclients", "tokenreviews"),
		resources("machineconfiguration.openshift.io", "machineconfigs"),
	}}
}

func resources(group string, names ...string) auditv1.GroupResources {
	return auditv1.GroupResources{Group: group, Resources: names}
}
