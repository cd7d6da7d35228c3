package privatelink

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Times between passes.
const (
	// lookAgain is how often what is there is compared with Azure; half of it more for some, so that objects don't do so at once.
	lookAgain = 5 * time.Minute
	// prerequisite is while something of others is missing; goesOn while something of ours comes or goes.
	prerequisite = 30 * time.Second
	goesOn       = 10 * time.Second
	// refused is after Azure refused; throttled is after it was asked too often.
	refused, throttled = time.Minute, 5 * time.Minute
	// serviceTimeout and endpointTimeout bound a pass. What takes longer goes on in Azure, and the next pass finds it.
	serviceTimeout, endpointTimeout = 2 * time.Minute, 2 * time.Minute
	// settleTimeout is how long a pass waits for one operation.
	settleTimeout = 40 * time.Second
)

// waiting is an error that says that something in Azure comes or goes, or is somebody else's to do; it is no failure.
type waiting struct {
	what string
	// after is when to look again.
	after time.Duration
}

// Error implements error.
func (w *waiting) Error() string { return w.what }

func waitFor(format string, args ...any) error { return &waiting{fmt.Sprintf(format, args...), goesOn} }

// refusal is what Azure said, in words that are the same each time.
type refusal struct {
	text   string
	status int
	cause  error
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// Unwrap gives the SDK's error.
func (r *refusal) Unwrap() error { return r.cause }

// remedies are what to do about codes of Azure.
var remedies = map[string]string{
	"AuthorizationFailed":                                 "grant the operator's identity the role Network Contributor, and Private DNS Zone Contributor for zones, in that resource group",
	"LinkedAuthorizationFailed":                           "grant the operator's identity the role Network Contributor where the subnet is",
	"ResourceGroupNotFound":                               "the resource group doesn't exist: make it, or name another",
	"SubscriptionNotFound":                                "the subscription doesn't exist, or the identity has no role in it",
	"QuotaExceeded":                                       "ask Azure for a greater quota of this kind of resource",
	"RequestDisallowedByPolicy":                           "a policy of the subscription forbids it: allow it, or make an exception",
	"ScopeLocked":                                         "a lock forbids it: remove the lock",
	"NetcfgSubnetRangesOverlap":                           "somebody else took that range; another one is tried",
	"NetcfgInvalidSubnet":                                 "the range isn't in the virtual network; another one is tried",
	"PrivateLinkServiceIdInvalid":                         "the Private Link service is gone, and made anew",
	"PrivateLinkServiceNotVisible":                        "name the subscription in spec.platform.azure.private.privateLink.additionalAllowedSubscriptions",
	"PrivateEndpointQuotaExceeded":                        "ask Azure for more private endpoints",
	"PrivateLinkServiceNetworkPoliciesAreEnabledInSubnet": "disable network policies for Private Link services in the subnet for address translation",
}

// told says what failed, Azure's code, and what to do. It leaves out what differs each time, such as IDs of requests.
func told(what string, err error) error {
	var w *waiting
	var r *refusal
	if err == nil || errors.As(err, &w) || errors.As(err, &r) {
		return err
	}
	var answer *azcore.ResponseError
	var identity *azidentity.AuthenticationFailedError
	switch {
	case errors.As(err, &answer):
		code := answer.ErrorCode
		if code == "" {
			code = http.StatusText(answer.StatusCode)
		}
		text := fmt.Sprintf("%s: Azure says %s (HTTP %d)", what, code, answer.StatusCode)
		if remedy := remedies[code]; remedy != "" {
			text += ": " + remedy
		}
		return &refusal{text, answer.StatusCode, err}
	case errors.As(err, &identity):
		remedy := "check its client ID, tenant and federated credential"
		if secret := new(secretRefused); errors.As(err, &secret) {
			remedy = "check clientId, tenantId and clientSecret in the Secret that --azure-private-creds made or --azure-private-secret names: the client secret may have expired"
		}
		return &refusal{what + ": Azure takes no token of the operator's identity: " + remedy, http.StatusUnauthorized, err}
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{what + ": Azure doesn't answer in time", 0, err}
	}
	return &refusal{what + ": Azure isn't reached: check the network of the management cluster, and its proxy", 0, err}
}

// gone tells that what was asked for doesn't exist.
func gone(err error) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// changed tells that what was to be written is not what was read any more.
func changed(err error) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == http.StatusPreconditionFailed
}

// is tells whether Azure answered with one of these codes.
func is(err error, codes ...string) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && slices.Contains(codes, answer.ErrorCode)
}

// settle waits for an operation that was begun. One that takes long goes on without us.
func settle[T any](ctx context.Context, what string, poller *runtime.Poller[T], err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	limited, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	out, err := poller.PollUntilDone(limited, &runtime.PollUntilDoneOptions{Frequency: 2 * time.Second})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return none, waitFor("%s goes on in Azure", what)
	}
	return out, err
}

// pauseAfter is how long to wait after a pass that ended with err, never in step with others.
func pauseAfter(ctx context.Context, err error) time.Duration {
	var w *waiting
	var r *refusal
	switch {
	case err == nil:
		return lookAgain + rand.N(lookAgain/2)
	case errors.As(err, &w):
		return w.after
	case errors.As(err, &r) && r.status == http.StatusTooManyRequests:
		return throttled + rand.N(throttled/4)
	case errors.As(err, &r):
		ctrl.LoggerFrom(ctx).Info("Azure refuses; it is tried again", "error", r.cause.Error())
	}
	return refused + rand.N(refused/4)
}
