package infra

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/ram"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/aws/tags"
	"hcp.internal/platform/internal/sleep"
)

// Account is an AWS account's services in a region.
type Account struct {
	config  aws.Config
	ec2     *ec2.Client
	route53 *route53.Client
	ram     *ram.Client
	s3      *s3.Client
	elb     *elasticloadbalancing.Client
	elbv2   *elasticloadbalancingv2.Client
}

// NewAccount makes an account's clients. It makes no request.
func NewAccount(cfg aws.Config) *Account {
	return &Account{
		config: cfg, ec2: ec2.NewFromConfig(cfg), route53: session.Route53(cfg), ram: ram.NewFromConfig(cfg), s3: session.S3(cfg),
		elb: elasticloadbalancing.NewFromConfig(cfg), elbv2: elasticloadbalancingv2.NewFromConfig(cfg),
	}
}

// Accounts are where the cluster is, and where its VPC is.
type Accounts struct {
	Cluster *Account
	// Owner has the VPC when that is another account's; otherwise nil.
	Owner *Account
}

func (a Accounts) network() *Account {
	if a.Owner != nil {
		return a.Owner
	}
	return a.Cluster
}

// zones is the account of private zones.
func (a Accounts) zones(inCluster bool) *Account {
	if inCluster {
		return a.Cluster
	}
	return a.network()
}

// Surroundings are what a run needs besides AWS.
type Surroundings struct {
	// Log takes a line for people.
	Log func(format string, args ...any)
	// Wait is how time passes; nil: as it does.
	Wait func(context.Context, time.Duration) error
}

func (s Surroundings) filled() Surroundings {
	if s.Log == nil {
		s.Log = func(string, ...any) {}
	}
	if s.Wait == nil {
		s.Wait = sleep.For
	}
	return s
}

// run is one making.
type run struct {
	Surroundings
	o      Options
	a      Accounts
	tags   tags.Set
	net    *ec2.Client // of the account that has the VPC
	output *Output
}

// Patience with what was made a moment ago and isn't known everywhere yet.
const (
	visibleTries = 10
	visibleWait  = 3 * time.Second
	freshTries   = 5
	freshFactor  = 3
	makeTries    = 11
	maxWait      = 5 * time.Second
)

// once makes a client ask only once: whether a lost answer made something is found out by looking, not by asking again.
func once(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }

// ensure gives what find gives, or else makes it. After a failure that passes it looks again before it makes another one. Fresh are
// codes that mean that something this depends on was made a moment ago.
func ensure[T any](ctx context.Context, r *run, what string, find, create func() (*T, error), fresh ...string) (*T, error) {
	for attempt := 1; ; attempt++ {
		found, err := find()
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", what, err)
		}
		if found != nil {
			r.Log("%s is there", what)
			return found, nil
		}
		made, err := create()
		if err == nil {
			r.Log("%s made", what)
			return made, nil
		}
		delay, again := patience(err, attempt, fresh)
		if !again {
			return nil, fmt.Errorf("making %s: %w", what, err)
		}
		r.Log("%s: %s; trying again", what, fault.Explain(err))
		if err := r.Wait(ctx, delay); err != nil {
			return nil, err
		}
	}
}

// patience says whether and when to try again after an error of the attempt, counted from 1.
func patience(err error, attempt int, fresh []string) (time.Duration, bool) {
	switch {
	case fault.Is(err, fresh...):
		return jitter(time.Duration(float64(visibleWait) * math.Pow(freshFactor, float64(attempt-1)))), attempt < freshTries
	case fault.Passing(err):
		delay, _ := session.Backoff(maxWait).BackoffDelay(attempt, err)
		return delay, attempt < makeTries
	}
	return 0, false
}

// jitter adds up to a tenth.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/10+1) }

// visible waits until look finds what was made.
func (r *run) visible(ctx context.Context, what string, tries int, every time.Duration, look func() (bool, error)) error {
	for range tries {
		ok, err := look()
		if err != nil && !fault.Gone(err) {
			return fmt.Errorf("looking for %s: %w", what, err)
		}
		if ok && err == nil {
			return nil
		}
		if err := r.Wait(ctx, jitter(every)); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s was made, but isn't found: run the command again", what)
}

// named finds the cluster's object of that name.
func (r *run) named(name string) []types.Filter {
	return ec2values.Owned(r.o.InfraID, ec2values.Named(name))
}

// tagged gives a request of EC2 the tags of what it makes.
func (r *run) tagged(kind types.ResourceType, more ...string) []types.TagSpecification {
	return ec2values.Tagged(kind, r.tags.With(more...))
}

// first is a pointer to the first of a list, or nil.
func first[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}
