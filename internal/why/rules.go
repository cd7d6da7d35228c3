package why

import (
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

// rules are all of them. Of one kind, those that somebody has to repair first stand first.
var rules = slices.Concat(deletionRules, finalizerRules(), clusterRules, controlPlaneRules, workloadRules, poolRules, machineRules, packageRules, fleetRules)

// textRule knows an error by what it says, wherever it stands. It replaces what to do of the rule that found the text.
type textRule struct {
	ID    string
	Says  *regexp.Regexp
	Do    string
	State State
}

// texts are tried in this order.
var texts = []textRule{
	{"webhook-down", regexp.MustCompile(`failed calling webhook`), "repair the service behind the webhook that the message names, or delete its webhook configuration", Broken},
	{"webhook-refuses", regexp.MustCompile(`admission webhook "[^"]*" denied|denied the request`), "meet the webhook's requirements, or change its rules: it is not ours", Broken},
	{"definition-missing", regexp.MustCompile(`no matches for kind|could not find the requested resource|no kind is registered|not registered on the api server`), "install the missing CRD; `hypershift install` installs those of HyperShift", Broken},
	{"quota-exceeded", regexp.MustCompile(`exceeded quota`), "raise the ResourceQuota of that namespace, or make room in it", Broken},
	{"object-too-large", regexp.MustCompile(`[Rr]equest entity too large|request is too large|[Tt]oo long: (may not|must)|must have at most`), "make the object that the message names smaller: split ConfigMaps, shorten lists", Broken},
	{"disk-full", regexp.MustCompile(`no space left on device|database space exceeded`), "make room on the volume that the message names", Broken},
	{"certificate-expired", regexp.MustCompile(`certificate has expired|x509: certificate (has expired|is not yet valid)`), "renew the certificate; if it belongs to the control plane, check that the control-plane-operator runs and that clocks are right", Broken},
	{"certificate-untrusted", regexp.MustCompile(`certificate signed by unknown authority|certificate is valid for`), "add the authority that signed it to the trust bundle that the message is about", Broken},
	{"forbidden", regexp.MustCompile(`is forbidden: User|cannot (get|list|watch|create|patch|update|delete) resource`), "restore the operator's permissions: run `hypershift install` of the running version", Broken},
	{"owned-by-other", regexp.MustCompile(`belongs to (another hosted cluster|HostedCluster |somebody else)|is owned by|already exists and is not`), "rename or remove the other object: two of them want the same name", Broken},
	{"unknown-field", regexp.MustCompile(`unknown field|strict decoding error|field not declared in schema`), "update the CRDs: they are older than the running program. Run `hypershift install` of its version", Broken},
	{"api-overloaded", regexp.MustCompile(`TooManyRequests|[Tt]oo many requests|\b429\b|rate limit|client rate limiter`), "wait; if it continues, find out who sends so many requests: apiserver_flowcontrol_rejected_requests_total", Waiting},
	{"api-away", regexp.MustCompile(`connection refused|no route to host|i/o timeout|TLS handshake timeout|Client\.Timeout|context deadline exceeded|etcdserver: (leader changed|request timed out)|ServiceUnavailable`), "check why the API server in the message doesn't answer; the operators continue when it does", Waiting},
	{"lost-race", regexp.MustCompile(`the object has been modified|Operation cannot be fulfilled`), "nothing: it is retried with the newest version", Waiting},
	{"answer-lost", regexp.MustCompile(`unexpected EOF|connection reset by peer|http2: client connection lost|already exists`), "nothing: it is retried, and finds what was already written", Waiting},
}

// classify finds the rule for an error; nil: it is none that is known.
func classify(text string) *textRule {
	for i := range texts {
		if texts[i].Says.MatchString(text) {
			return &texts[i]
		}
	}
	return nil
}
