package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func sh(t *testing.T, script string) Command {
	t.Helper()
	return Command{Name: "program", Path: "/bin/sh", Args: []string{"-c", script}, Dir: t.TempDir()}
}

func TestRun(t *testing.T) {
	t.Run("When a program leaves a process behind in a session of its own it should end that, too", func(t *testing.T) {
		g := NewWithT(t)
		if _, err := exec.LookPath("setsid"); err != nil {
			t.Fatal("setsid of util-linux is needed")
		}
		c := sh(t, "setsid sh -c 'echo $$ > left; exec sleep 3600' > /dev/null 2>&1 & while [ ! -s left ]; do :; done")
		g.Expect(Runner{Orphans: true}.Run(t.Context(), c)).To(Succeed())
		g.Expect(family(processes(), os.Getpid(), false)).To(HaveLen(1), "only this process is left")
	})
	t.Run("When the caller gives up it should end the program", func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		p, err := Runner{}.Start(ctx, sh(t, "sleep 3600"))
		g.Expect(err).NotTo(HaveOccurred())
		cancel(errors.New("nobody waits"))
		<-p.Done()
		g.Expect(p.Err()).To(MatchError("program was ended: nobody waits"))
		g.Expect(syscall.Kill(p.cmd.Process.Pid, 0)).To(MatchError(syscall.ESRCH))
	})
	t.Run("When a server is stopped that should be no error", func(t *testing.T) {
		g := NewWithT(t)
		p, err := Runner{}.Start(t.Context(), sh(t, "sleep 3600"))
		g.Expect(err).NotTo(HaveOccurred())
		p.Stop()
		g.Expect(p.Err()).NotTo(HaveOccurred())
	})
	for name, tc := range map[string]struct {
		command Command
		want    string
		refused bool
	}{
		"When a program refuses its input it should say what it said":   {sh(t, "echo bad >&2; exit 3"), "program exited with code 3; it said: bad", true},
		"When a program crashes it should not be taken for its verdict": {sh(t, "kill -SEGV $$"), "was ended by the system: signal: segmentation fault", false},
		"When there is no such program it should say what may lack":     {Command{Name: "program", Path: "/no/such", Dir: t.TempDir()}, "is not in this image", false},
		"When a file is no program it should say so":                    {Command{Name: "program", Path: "/etc/passwd", Dir: t.TempDir()}, "it may not be run", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := Runner{Limits: Limits{Time: time.Minute}}.Run(t.Context(), tc.command)
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			var ended *Error
			g.Expect(errors.As(err, &ended)).To(BeTrue())
			g.Expect(ended.Refused).To(Equal(tc.refused))
		})
	}
	t.Run("When this process has credentials in its environment the program should not see them", func(t *testing.T) {
		t.Setenv("AWS_SECRET_ACCESS_KEY", "precious")
		NewWithT(t).Expect(Runner{}.Run(t.Context(), sh(t, `test -z "$AWS_SECRET_ACCESS_KEY"`))).To(Succeed())
	})
}

func TestRedact(t *testing.T) {
	key := strings.Repeat("aB3d", 12)
	for name, tc := range map[string]struct{ said, want string }{
		"When a secret is said it should be hidden":              {"login with hunter22 failed", "login with [hidden] failed"},
		"When a key is said it should be hidden":                 {"x\n-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\ny", "x [hidden] y"},
		"When a key's end was not said it should be hidden":      {"x -----BEGIN EC PRIVATE KEY-----\nMII", "x [hidden]"},
		"When something like base64 is said it should be hidden": {"data " + key + " end", "data [hidden] end"},
		"When a password is named it should be hidden":           {`{"password": "abc"}`, `{"password": "[hidden]"}`},
		"When an image is said it should stay":                   {"quay.io/x@sha256:" + strings.Repeat("0a", 32), "quay.io/x@sha256:" + strings.Repeat("0a", 32)},
		"When a path or a name is said it should stay":           {"config/cluster-infrastructure-02-config.yaml rendered-master-0123456789abcdef0123456789abcdef", "config/cluster-infrastructure-02-config.yaml rendered-master-0123456789abcdef0123456789abcdef"},
		"When control characters are said they should be spaces": {"a\x1b[31mb\x00c", "a [31mb c"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(redact(tc.said, 1000, false, []string{"hunter22", "x1"})).To(Equal(tc.want))
		})
	}
	t.Run("When much is said the end should stay", func(t *testing.T) {
		g := NewWithT(t)
		w := &tail{limit: 10}
		for range 1000 {
			_, _ = w.Write([]byte("0123456789"))
		}
		_, _ = w.Write([]byte("the end"))
		text, limit, cut := w.text()
		g.Expect(redact(text, limit, cut, nil)).To(Equal("…789the end"))
	})
}
