package session

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	. "github.com/onsi/gomega"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "creds")
	NewWithT(t).Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

func TestLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		o    func(t *testing.T) Options
		want aws.Credentials
		err  string
	}{
		"When a file is given it should be read": {
			o: func(t *testing.T) Options {
				return Options{CredentialsFile: write(t, "[default]\naws_access_key_id=AK\naws_secret_access_key=SK\n")}
			},
			want: aws.Credentials{AccessKeyID: "AK", SecretAccessKey: "SK"},
		},
		"When keys are at hand they should be used": {
			o: func(*testing.T) Options {
				return Options{Keys: &Keys{AccessKeyID: "AK", SecretAccessKey: "SK", SessionToken: "ST"}}
			},
			want: aws.Credentials{AccessKeyID: "AK", SecretAccessKey: "SK", SessionToken: "ST"},
		},
		"When the file is empty it should say so": {
			o: func(t *testing.T) Options { return Options{CredentialsFile: write(t, " \n")} }, err: "the file is empty",
		},
		"When the file is missing it should name the flag": {
			o: func(*testing.T) Options { return Options{CredentialsFile: "/nowhere/creds"} }, err: "--aws-creds: open /nowhere/creds",
		},
		"When a session token comes without a role it should ask for it": {
			o: func(*testing.T) Options { return Options{STSFile: "x"} }, err: "name the role with --role-arn",
		},
		"When a file and a role are given it should refuse": {
			o: func(*testing.T) Options { return Options{CredentialsFile: "x", RoleARN: "arn:aws:iam::1:role/a"} }, err: "use it alone",
		},
		"When the session's file has no token it should name what is missing without quoting the rest": {
			o: func(t *testing.T) Options {
				return Options{STSFile: write(t, `{"Credentials":{"AccessKeyId":"AK","SecretAccessKey":"hidden"}}`), RoleARN: "arn:aws:iam::1:role/a"}
			},
			err: "must have Credentials with AccessKeyId",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, env := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"} {
				t.Setenv(env, "")
			}
			o := tc.o(t)
			o.Agent, o.Region = "test", "eu-central-1"
			cfg, err := Load(t.Context(), o)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				g.Expect(err.Error()).NotTo(ContainSubstring("hidden"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cfg.Region).To(Equal("eu-central-1"))
			got, err := cfg.Credentials.Retrieve(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.AccessKeyID).To(Equal(tc.want.AccessKeyID))
			g.Expect(got.SecretAccessKey).To(Equal(tc.want.SecretAccessKey))
			g.Expect(got.SessionToken).To(Equal(tc.want.SessionToken))
		})
	}
	t.Run("When the endpoint is no URL it should say so before any request", func(t *testing.T) {
		t.Setenv("AWS_ENDPOINT_URL", "localhost:5000")
		_, err := Load(t.Context(), Options{Agent: "test"})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("AWS_ENDPOINT_URL in the environment")))
	})
}

func TestParseSTS(t *testing.T) {
	t.Run("When it is what the AWS CLI prints it should be read", func(t *testing.T) {
		g := NewWithT(t)
		keys, err := parseSTS([]byte(`{"Credentials":{"AccessKeyId":"AK","SecretAccessKey":"SK","SessionToken":"ST","Expiration":"2026-01-01T00:00:00Z"}}`))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(keys).To(Equal(Keys{AccessKeyID: "AK", SecretAccessKey: "SK", SessionToken: "ST"}))
	})
}

func TestRetryer(t *testing.T) {
	t.Run("When it is throttled it should wait longer each time, never past the bound, and not in step with others", func(t *testing.T) {
		g := NewWithT(t)
		r := Retryer()
		g.Expect(r.MaxAttempts()).To(Equal(11))
		seen := map[time.Duration]bool{}
		for range 50 {
			delay, err := r.RetryDelay(10, errors.New("throttled"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(delay).To(BeNumerically("<=", maxBackoff))
			seen[delay] = true
		}
		g.Expect(len(seen)).To(BeNumerically(">", 1), "jitter")
	})
}
