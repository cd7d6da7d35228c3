// Package session makes configurations of the AWS SDK: credentials, region, endpoint, patience, and who is calling.
//
// The endpoint of all services is set by AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_{SERVICE} in the environment, or endpoint_url in the
// credentials file, as the SDK reads them everywhere.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithymiddleware "github.com/aws/smithy-go/middleware"
)

// Patience with a service that refuses or doesn't answer. Route53 takes five requests a second of a whole account.
const (
	attempts        = 11
	maxBackoff      = 5 * time.Second
	route53Attempts = 21
	route53Backoff  = 30 * time.Second
)

// maxCredentials bounds a credentials file, in bytes.
const maxCredentials = 64 << 10

// Options say as whom and where to call. The zero value but for Agent and Region uses what the environment offers.
type Options struct {
	// Agent is the program's part that calls, such as cli-create-infra; it is in the account's audit log, and the name of a role's session.
	Agent  string
	Region string

	// CredentialsFile is a file in the SDK's format. It is read as configuration as well: files that operators get hold a role and a token's path.
	CredentialsFile string
	// STSFile is what `aws sts get-session-token` printed.
	STSFile string
	// Keys are credentials that are at hand, such as those of a Secret.
	Keys *Keys
	// RoleARN is a role that is taken on with these credentials.
	RoleARN string
}

// Keys are an access key, and the token that goes with it when it is a temporary one.
type Keys struct {
	AccessKeyID, SecretAccessKey string
	SessionToken                 string
}

// Validate tells whether the options go together. Flags are named as commands have them.
func (o Options) Validate() error {
	var errs []error
	if o.CredentialsFile != "" && (o.STSFile != "" || o.RoleARN != "") {
		errs = append(errs, errors.New("--aws-creds: use it alone, or --sts-creds with --role-arn"))
	}
	if o.STSFile != "" && o.RoleARN == "" {
		errs = append(errs, errors.New("--sts-creds: name the role with --role-arn"))
	}
	if o.RoleARN != "" && !strings.HasPrefix(o.RoleARN, "arn:") {
		errs = append(errs, fmt.Errorf("--role-arn %q: must be a role's ARN, arn:aws:iam::ACCOUNT:role/NAME", o.RoleARN))
	}
	return errors.Join(errs...)
}

// Load makes a configuration. It makes no request, but for a role that is taken on at the first call.
func Load(ctx context.Context, o Options) (aws.Config, error) {
	if err := errors.Join(o.Validate(), checkEndpoint(os.Getenv("AWS_ENDPOINT_URL"))); err != nil {
		return aws.Config{}, err
	}
	load := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer { return Retryer() }),
		config.WithAPIOptions([]func(*smithymiddleware.Stack) error{middleware.AddUserAgentKeyValue("openshift.io hypershift", o.Agent)}),
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	more, err := source(o)
	if err != nil {
		return aws.Config{}, err
	}
	// The SDK makes the client that trades a token for credentials before it has read the endpoint.
	late := &tokenTrader{}
	load = append(load, config.WithWebIdentityRoleCredentialOptions(func(w *stscreds.WebIdentityRoleOptions) { w.Client = late }))
	cfg, err := config.LoadDefaultConfig(ctx, append(load, more...)...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("reading the configuration of AWS: %w", err)
	}
	late.Client = sts.NewFromConfig(cfg)
	if o.RoleARN != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), o.RoleARN,
			func(a *stscreds.AssumeRoleOptions) { a.RoleSessionName = o.Agent }))
	}
	return cfg, nil
}

// tokenTrader is a client of STS that is made after who uses it.
type tokenTrader struct{ *sts.Client }

// source are the SDK's options for where credentials come from.
func source(o Options) ([]func(*config.LoadOptions) error, error) {
	switch {
	case o.CredentialsFile != "":
		if _, err := readSmall("--aws-creds", o.CredentialsFile); err != nil {
			return nil, err
		}
		return bothFiles(o.CredentialsFile), nil
	case o.STSFile != "":
		raw, err := readSmall("--sts-creds", o.STSFile)
		if err != nil {
			return nil, err
		}
		keys, err := parseSTS(raw)
		if err != nil {
			return nil, fmt.Errorf("--sts-creds %s: %w", o.STSFile, err)
		}
		return static(keys), nil
	case o.Keys != nil:
		return static(*o.Keys), nil
	}
	if file := os.Getenv("AWS_SHARED_CREDENTIALS_FILE"); file != "" && os.Getenv("AWS_CONFIG_FILE") == "" {
		return bothFiles(file), nil
	}
	return nil, nil
}

func bothFiles(file string) []func(*config.LoadOptions) error {
	return []func(*config.LoadOptions) error{
		config.WithSharedConfigFiles([]string{file}), config.WithSharedCredentialsFiles([]string{file}),
	}
}

func static(keys Keys) []func(*config.LoadOptions) error {
	return []func(*config.LoadOptions) error{config.WithCredentialsProvider(
		credentials.NewStaticCredentialsProvider(keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken))}
}

// parseSTS reads what the AWS CLI prints. Errors don't quote it.
func parseSTS(raw []byte) (Keys, error) {
	var file struct{ Credentials Keys }
	if err := json.Unmarshal(raw, &file); err != nil {
		return Keys{}, errors.New("must be JSON as `aws sts get-session-token` prints it")
	}
	keys := file.Credentials
	if keys.AccessKeyID == "" || keys.SecretAccessKey == "" || keys.SessionToken == "" {
		return Keys{}, errors.New("must have Credentials with AccessKeyId, SecretAccessKey and SessionToken, as `aws sts get-session-token` prints them")
	}
	return keys, nil
}

// readSmall reads a file of credentials.
func readSmall(flag, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxCredentials+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	case len(raw) > maxCredentials:
		return nil, fmt.Errorf("%s %s: more than %d bytes are no credentials", flag, path, maxCredentials)
	case strings.TrimSpace(string(raw)) == "":
		return nil, fmt.Errorf("%s %s: the file is empty", flag, path)
	}
	return raw, nil
}

// checkEndpoint says what the SDK would only say at the first request, and less clearly.
func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("AWS_ENDPOINT_URL in the environment: must be a URL with http or https and a host, or not be set")
	}
	return nil
}

// Retryer is the patience with every service but Route53: exponential, with jitter.
func Retryer() aws.Retryer { return standard(attempts, maxBackoff) }

func standard(attempts int, backoff time.Duration) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = attempts, backoff
		o.Backoff = Backoff(backoff)
		// The SDK's bucket of retries runs dry under throttling that our attempts would outlast.
		o.RateLimiter = ratelimit.None
	})
}

// Backoff is how long to wait before an attempt: exponential, at most longest, never in step with others. The SDK's own has no jitter at the bound.
func Backoff(longest time.Duration) retry.BackoffDelayer {
	exponential := retry.NewExponentialJitterBackoff(longest)
	return retry.BackoffDelayerFunc(func(attempt int, err error) (time.Duration, error) {
		delay, failed := exponential.BackoffDelay(attempt, err)
		if delay >= longest {
			delay = longest/2 + rand.N(longest/2)
		}
		return delay, failed
	})
}

// Route53 is a client of Route53 with the patience that its low limits need.
func Route53(cfg aws.Config) *route53.Client {
	return route53.NewFromConfig(cfg, func(o *route53.Options) {
		o.Retryer = standard(route53Attempts, route53Backoff)
		if o.Region == "" {
			o.Region = "us-east-1"
		}
	})
}

// S3 is a client of S3 that works with endpoints of one's own, too: those have no host name for each bucket, and some don't know
// the checksums that the SDK adds to bodies.
func S3(cfg aws.Config) *s3.Client {
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		if o.BaseEndpoint != nil || os.Getenv("AWS_ENDPOINT_URL") != "" || os.Getenv("AWS_ENDPOINT_URL_S3") != "" {
			o.UsePathStyle = true
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		}
	})
}

// Caller is the ARN and account of whose credentials these are.
func Caller(ctx context.Context, cfg aws.Config) (arn, account string, err error) {
	out, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", "", err
	}
	return aws.ToString(out.Arn), aws.ToString(out.Account), nil
}
