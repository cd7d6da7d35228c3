package hcpstatus

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "hcp.internal/api/config/v1"
	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/clip"
)

// Bounds of what is taken over.
const (
	maxHistory   = 100
	maxUpdates   = 100
	maxRisks     = 20
	maxChannels  = 50
	maxRules     = 10
	maxMessage   = 2048
	maxText      = 512
	maxReason    = 256
	maxOIDC      = 20
	maxConsumers = 5
	// maxVersion are the bytes of all that is told of the version. It is a part of an object that may have 1.5 MiB at the most.
	maxVersion = 256 << 10
)

// mirrored are the conditions of the ClusterVersion that are told, and by which name.
var mirrored = []struct{ of, as string }{
	{"Failing", hyperv1.ClusterVersionFailing},
	{"ReleaseAccepted", hyperv1.ClusterVersionReleaseAccepted},
	{"RetrievedUpdates", hyperv1.ClusterVersionRetrievedUpdates},
	{"Progressing", hyperv1.ClusterVersionProgressing},
	{upgradeable, hyperv1.ClusterVersionUpgradeable},
	{"Available", hyperv1.ClusterVersionAvailable},
}

const upgradeable = "Upgradeable"

// clusterVersion is what is read of the status of a ClusterVersion.
type clusterVersion struct {
	Desired            configv1.Release             `json:"desired"`
	History            []configv1.UpdateHistory     `json:"history"`
	ObservedGeneration int64                        `json:"observedGeneration"`
	AvailableUpdates   []configv1.Release           `json:"availableUpdates"`
	ConditionalUpdates []configv1.ConditionalUpdate `json:"conditionalUpdates"`
	Conditions         []metav1.Condition           `json:"conditions"`
}

// Report is what the HostedControlPlane is told.
type Report struct {
	// Version is nil while there is no ClusterVersion: what was told before stays.
	Version    *hyperv1.ClusterVersionStatus
	Conditions []metav1.Condition
	// Completed is the newest rollout that reached every part, nil when none did.
	Completed *configv1.UpdateHistory
}

// reportOf takes over the status of a ClusterVersion; nil: there is none.
func reportOf(status map[string]any, generation int64) Report {
	var cv clusterVersion
	known := decode(status, &cv)
	var report Report
	if known {
		report.Version = fitting(versionOf(cv))
		for i := range report.Version.History {
			if h := &report.Version.History[i]; h.State == configv1.CompletedUpdate {
				report.Completed = h
				break
			}
		}
	}
	report.Conditions = conditionsOf(cv.Conditions, generation)
	return report
}

// decode reads an object field by field, so that one of another type doesn't hide the others. It says whether there was anything.
func decode(status map[string]any, cv *clusterVersion) bool {
	for key, into := range map[string]any{
		"desired": &cv.Desired, "observedGeneration": &cv.ObservedGeneration, "availableUpdates": &cv.AvailableUpdates,
	} {
		one(status[key], into)
	}
	each(status["history"], maxHistory, &cv.History)
	each(status["conditionalUpdates"], maxUpdates, &cv.ConditionalUpdates)
	each(status["conditions"], maxHistory, &cv.Conditions)
	return cv.Desired.Image != "" || cv.Desired.Version != ""
}

// one decodes a value, and leaves into as it is when that is of another type.
func one[T any](value any, into T) {
	raw, err := json.Marshal(value)
	if err == nil {
		_ = json.Unmarshal(raw, into)
	}
}

// each decodes the first items of a list, without those that are of another type.
func each[T any](value any, most int, into *[]T) {
	items, _ := value.([]any)
	for _, item := range items[:min(len(items), most)] {
		var t T
		raw, err := json.Marshal(item)
		if err == nil && json.Unmarshal(raw, &t) == nil {
			*into = append(*into, t)
		}
	}
}

func versionOf(cv clusterVersion) *hyperv1.ClusterVersionStatus {
	v := &hyperv1.ClusterVersionStatus{Desired: releaseOf(cv.Desired), ObservedGeneration: cv.ObservedGeneration}
	for _, h := range cv.History {
		if h.State != configv1.CompletedUpdate && h.State != configv1.PartialUpdate || h.StartedTime.IsZero() {
			continue
		}
		v.History = append(v.History, configv1.UpdateHistory{
			State: h.State, StartedTime: h.StartedTime, CompletionTime: h.CompletionTime, Version: short(h.Version), Image: short(h.Image),
			Verified: h.Verified, AcceptedRisks: plain(h.AcceptedRisks, maxMessage),
		})
	}
	if cv.AvailableUpdates != nil {
		v.AvailableUpdates = []configv1.Release{}
	}
	for _, r := range cv.AvailableUpdates[:min(len(cv.AvailableUpdates), maxUpdates)] {
		v.AvailableUpdates = append(v.AvailableUpdates, releaseOf(r))
	}
	for _, u := range cv.ConditionalUpdates {
		if next, ok := conditional(u); ok {
			v.ConditionalUpdates = append(v.ConditionalUpdates, next)
		}
	}
	return v
}

// fitting is a version without the lists that are too long to tell, the least important first.
func fitting(v *hyperv1.ClusterVersionStatus) *hyperv1.ClusterVersionStatus {
	for _, drop := range []func(){
		func() {},
		func() { v.ConditionalUpdates = nil },
		func() { v.AvailableUpdates = nil },
		func() { v.History = v.History[:min(len(v.History), 10)] },
	} {
		drop()
		if raw, err := json.Marshal(v); err == nil && len(raw) <= maxVersion {
			break
		}
	}
	return v
}

func releaseOf(r configv1.Release) configv1.Release {
	out := configv1.Release{Version: short(r.Version), Image: short(r.Image), URL: short(r.URL)}
	if r.Architecture == configv1.ClusterVersionArchitectureMulti {
		out.Architecture = r.Architecture
	}
	seen := map[string]bool{} // a set
	for _, c := range r.Channels[:min(len(r.Channels), maxChannels)] {
		if c = short(c); !seen[c] {
			seen[c], out.Channels = true, append(out.Channels, c)
		}
	}
	return out
}

// conditional is an update with risks, without what the API of the HostedControlPlane doesn't take; not at all when no risk is left to tell.
func conditional(u configv1.ConditionalUpdate) (configv1.ConditionalUpdate, bool) {
	out := configv1.ConditionalUpdate{Release: releaseOf(u.Release)}
	seen := map[string]bool{}
	for _, r := range u.Risks[:min(len(u.Risks), maxRisks)] {
		risk := configv1.ConditionalUpdateRisk{URL: short(r.URL), Name: short(r.Name), Message: plain(r.Message, maxMessage)}
		for _, rule := range r.MatchingRules[:min(len(r.MatchingRules), maxRules)] {
			if rule.Type != "Always" && rule.Type != "PromQL" {
				continue
			}
			next := configv1.ClusterCondition{Type: rule.Type}
			if rule.PromQL != nil {
				next.PromQL = &configv1.PromQLClusterCondition{PromQL: plain(rule.PromQL.PromQL, maxMessage)}
			}
			risk.MatchingRules = append(risk.MatchingRules, next)
		}
		if seen[risk.Name] || risk.Name == "" || risk.Message == "" || !strings.HasPrefix(risk.URL, "http") || len(risk.MatchingRules) == 0 {
			continue
		}
		seen[risk.Name] = true
		out.Risks = append(out.Risks, risk)
	}
	types := map[string]bool{}
	for _, c := range u.Conditions[:min(len(u.Conditions), maxRules)] {
		if c = sound(c); c.Type != "" && !types[c.Type] && !c.LastTransitionTime.IsZero() {
			types[c.Type], out.Conditions = true, append(out.Conditions, c)
		}
	}
	return out, len(out.Risks) > 0
}

// reasonPattern is what a reason of a condition may be.
var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// sound is a condition that every API takes.
func sound(c metav1.Condition) metav1.Condition {
	out := metav1.Condition{Type: short(c.Type), Status: c.Status, Reason: c.Reason, Message: plain(c.Message, maxMessage), LastTransitionTime: c.LastTransitionTime}
	if c.Status != metav1.ConditionTrue && c.Status != metav1.ConditionFalse {
		out.Status = metav1.ConditionUnknown
	}
	if len(c.Reason) > maxReason || !reasonPattern.MatchString(c.Reason) {
		out.Reason = hyperv1.FromClusterVersionReason
	}
	return out
}

// conditionsOf are those that the HostedControlPlane has.
func conditionsOf(list []metav1.Condition, generation int64) []metav1.Condition {
	var out []metav1.Condition
	for _, m := range mirrored {
		next := metav1.Condition{
			Type: m.as, Status: metav1.ConditionUnknown, Reason: hyperv1.StatusUnknownReason, ObservedGeneration: generation,
			Message: "the ClusterVersion of the hosted cluster doesn't say",
		}
		if m.of == upgradeable { // is told only when something speaks against it
			next.Status, next.Reason, next.Message = metav1.ConditionTrue, hyperv1.FromClusterVersionReason, ""
		}
		for _, c := range list {
			if c.Type == m.of {
				s := sound(c)
				next.Status, next.Reason, next.Message = s.Status, s.Reason, s.Message
				break
			}
		}
		out = append(out, next)
		if m.as == hyperv1.ClusterVersionFailing {
			inverse := next
			inverse.Type = hyperv1.ClusterVersionSucceeding
			switch next.Status {
			case metav1.ConditionTrue:
				inverse.Status = metav1.ConditionFalse
			case metav1.ConditionFalse:
				inverse.Status = metav1.ConditionTrue
			case metav1.ConditionUnknown:
			}
			out = append(out, inverse)
		}
	}
	return out
}

// authenticationOf takes over what the hosted cluster says of clients of its OIDC provider.
func authenticationOf(status map[string]any) configv1.AuthenticationStatus {
	var in configv1.AuthenticationStatus
	one(status["integratedOAuthMetadata"], &in.IntegratedOAuthMetadata)
	each(status["oidcClients"], maxOIDC, &in.OIDCClients)
	out := configv1.AuthenticationStatus{}
	out.IntegratedOAuthMetadata.Name = short(in.IntegratedOAuthMetadata.Name)
	seen := map[string]bool{}
	for _, c := range in.OIDCClients {
		next := configv1.OIDCClientStatus{ComponentName: short(c.ComponentName), ComponentNamespace: short(c.ComponentNamespace)}
		if key := next.ComponentNamespace + "/" + next.ComponentName; seen[key] || next.ComponentName == "" || next.ComponentNamespace == "" {
			continue
		} else {
			seen[key] = true
		}
		for _, r := range c.CurrentOIDCClients[:min(len(c.CurrentOIDCClients), 1)] {
			next.CurrentOIDCClients = append(next.CurrentOIDCClients, configv1.OIDCClientReference{OIDCProviderName: short(r.OIDCProviderName), IssuerURL: short(r.IssuerURL), ClientID: short(r.ClientID)})
		}
		for _, u := range c.ConsumingUsers[:min(len(c.ConsumingUsers), maxConsumers)] {
			next.ConsumingUsers = append(next.ConsumingUsers, configv1.ConsumingUser(short(string(u))))
		}
		types := map[string]bool{}
		for _, k := range c.Conditions[:min(len(c.Conditions), maxRules)] {
			if k = sound(k); k.Type != "" && !types[k.Type] && !k.LastTransitionTime.IsZero() {
				types[k.Type], next.Conditions = true, append(next.Conditions, k)
			}
		}
		out.OIDCClients = append(out.OIDCClients, next)
	}
	return out
}

// tell writes a report into a status.
//
//nolint:staticcheck // because old readers read the fields that are deprecated
func tell(status *hyperv1.HostedControlPlaneStatus, report Report, set func(...metav1.Condition)) {
	if report.Version != nil {
		status.VersionStatus = report.Version
	}
	if c := report.Completed; c != nil && (status.Version != c.Version || status.ReleaseImage != c.Image) {
		status.Version, status.ReleaseImage = c.Version, c.Image
		status.LastReleaseImageTransitionTime = c.CompletionTime
	}
	set(report.Conditions...)
}

func short(s string) string { return plain(s, maxText) }

// plain is a text without control characters, of so many bytes at the most.
func plain(s string, most int) string {
	s = clip.Over(s, most, "...")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, s)
}
