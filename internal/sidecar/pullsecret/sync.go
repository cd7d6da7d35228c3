package pullsecret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"hcp.internal/platform/internal/atomicfile"
	"hcp.internal/platform/internal/bounded"
)

const (
	// maxFile bounds what is read: a Secret holds no more than 1 MiB.
	maxFile = 2 << 20
	// attempts to restart the kubelet, with one more second before each next.
	attempts = 3
	// restartTimeout bounds one of them.
	restartTimeout = time.Minute
	kubeletUnit    = "kubelet.service"
)

// syncer keeps one node's file.
type syncer struct {
	// original, global and kubelet are paths of files.
	original, global, kubelet string
	// restart has the kubelet start anew: it reads the file once.
	restart func(context.Context) error
	// pause is sleep.For; tests have their own.
	pause func(context.Context, time.Duration) error
	log   io.Writer
}

// sync makes the kubelet's file what it should be. When the kubelet doesn't start with it, the file is as it was.
func (s syncer) sync(ctx context.Context) error {
	wanted, err := s.wanted()
	if err != nil {
		return err
	}
	present, err := read(s.kubelet)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading the kubelet's pull secret: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(present), bytes.TrimSpace(wanted)) {
		return nil
	}
	missing := errors.Is(err, os.ErrNotExist)
	if err := atomicfile.Write(s.kubelet, wanted, 0o600); err != nil {
		return err
	}
	for attempt := range attempts {
		if attempt > 0 && s.pause(ctx, time.Duration(attempt)*time.Second) != nil {
			break
		}
		if err = s.restart(ctx); err == nil {
			s.say("the kubelet has a new pull secret and was started anew")
			return nil
		}
	}
	back := func() error { return atomicfile.Write(s.kubelet, present, 0o600) }
	if missing {
		back = func() error { return os.Remove(s.kubelet) }
	}
	if backErr := back(); backErr != nil {
		return errors.Join(fmt.Errorf("starting the kubelet anew: %w", err), fmt.Errorf("putting its old pull secret back: %w", backErr))
	}
	return fmt.Errorf("starting the kubelet anew failed %d times, so it has its old pull secret: %w", attempts, err)
}

// wanted is the merged pull secret, or the control plane's where there is none. What a kubelet couldn't read is refused.
func (s syncer) wanted() ([]byte, error) {
	path := s.global
	content, err := read(path)
	if errors.Is(err, os.ErrNotExist) {
		path = s.original
		content, err = read(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pull secret that the hosted cluster gives: %w", err)
	}
	var parsed struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if err := json.Unmarshal(content, &parsed); err != nil || len(parsed.Auths) == 0 {
		return nil, fmt.Errorf("%s is no pull secret: JSON with auths is expected; the kubelet keeps what it has", path)
	}
	return content, nil
}

func read(path string) ([]byte, error) { return bounded.ReadFile(path, maxFile) }

// restartKubelet asks systemd over the system bus of the node, and waits until it's done.
func restartKubelet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	bus, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return fmt.Errorf("reaching systemd over the system bus: %w", err)
	}
	defer bus.Close()
	done := make(chan string, 1)
	if _, err := bus.RestartUnitContext(ctx, kubeletUnit, "replace", done); err != nil {
		return fmt.Errorf("asking systemd to restart %s: %w", kubeletUnit, err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("systemd says that restarting %s is %q", kubeletUnit, result)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for systemd to restart %s: %w", kubeletUnit, ctx.Err())
	}
}
