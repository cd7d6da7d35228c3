package privatelink

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/kube/memory"
)

// ingress are rules that let the networks of machines in which have lacks.
func ingress(hcp *hyperv1.HostedControlPlane, endpoint string, have []types.IpPermission) []types.IpPermission {
	known := map[string]bool{}
	p := port(endpoint)
	for _, rule := range have {
		if aws.ToString(rule.IpProtocol) != "tcp" || aws.ToInt32(rule.FromPort) != p || aws.ToInt32(rule.ToPort) != p {
			continue
		}
		for _, r := range rule.IpRanges {
			known[aws.ToString(r.CidrIp)] = true
		}
		for _, r := range rule.Ipv6Ranges {
			known[aws.ToString(r.CidrIpv6)] = true
		}
	}
	set := map[string]bool{}
	for _, n := range hcp.Spec.Networking.MachineNetwork {
		set[string(n.CIDR)] = !known[string(n.CIDR)]
	}
	var rules []types.IpPermission
	for _, cidr := range slices.Sorted(maps.Keys(set)) {
		if !set[cidr] {
			continue
		}
		rule := types.IpPermission{IpProtocol: aws.String("tcp"), FromPort: aws.Int32(p), ToPort: aws.Int32(p)}
		if strings.Contains(cidr, ":") {
			rule.Ipv6Ranges = []types.Ipv6Range{{CidrIpv6: aws.String(cidr), Description: aws.String("Control plane service")}}
		} else {
			rule.IpRanges = []types.IpRange{{CidrIp: aws.String(cidr), Description: aws.String("Control plane service")}}
		}
		rules = append(rules, rule)
	}
	return rules
}

// state is one of AWS's, which come in upper and lower case.
func state(s string) string { return strings.ToLower(s) }

// gone tells that an endpoint exists by name alone, or that nothing will ever come of it.
func gone(s types.State) bool {
	return slices.Contains([]string{"deleted", "deleting", "rejected", "failed", "expired"}, state(string(s)))
}

// mayBeDropped tells that an endpoint has to be deleted before another one takes its place.
func mayBeDropped(s types.State) bool {
	return slices.Contains([]string{"rejected", "failed", "expired"}, state(string(s)))
}

// disconnect says which connections of an endpoint service are to be rejected, and whether others are about to end by themselves.
func disconnect(list []types.VpcEndpointConnection) (reject []string, ending bool) {
	for _, c := range list {
		switch state(string(c.VpcEndpointState)) {
		case "pendingacceptance", "pending", "available":
			reject = append(reject, aws.ToString(c.VpcEndpointId))
		case "deleted", "failed", "expired":
		default: // deleting, rejected, partial, and what AWS may come up with
			ending = true
		}
	}
	return reject, ending
}

// Times between passes.
const (
	// lookAgain is how often what is there is compared with AWS; half of it more for some, so that objects don't do so at once.
	lookAgain = 5 * time.Minute
	// firstRetry and lastRetry are after AWS refused, and growing; throttled is after it was asked too often.
	firstRetry, lastRetry = 15 * time.Second, 2 * time.Minute
	throttled             = 2 * time.Minute
	// goesOn is while something in AWS comes or goes.
	goesOn = 5 * time.Second
	// callTimeout bounds one pass.
	callTimeout = 2 * time.Minute
)

// again is lookAgain with its spread.
func again() time.Duration { return lookAgain + rand.N(lookAgain/2) }

// patience counts failures in a row, by object. The zero value is ready for use.
type patience struct {
	count memory.Of[int]
}

// after is how long to wait after a pass that ended with err, never in step with others: a second's tenth to ten seconds more than the pause.
func (p *patience) after(key client.ObjectKey, err error) time.Duration {
	if err == nil {
		p.count.Forget(key)
		return again()
	}
	failures := p.count.Update(key, func(n int) int { return n + 1 })
	pause := min(lastRetry, firstRetry<<min(failures-1, 8))
	if fault.Passing(err) {
		pause = throttled
	}
	return pause + time.Second + rand.N(9*time.Second)
}

// forget drops what is known of an object that is gone.
func (p *patience) forget(key client.ObjectKey) { p.count.Forget(key) }

// waiting is an error that says that something in AWS comes or goes and is looked at again soon; it is no failure.
type waiting struct{ what string }

// Error implements error.
func (w *waiting) Error() string { return w.what }

func waitFor(format string, args ...any) error { return &waiting{fmt.Sprintf(format, args...)} }
