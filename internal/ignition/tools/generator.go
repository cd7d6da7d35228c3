package tools

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/ignition/child"
	"hcp.internal/platform/internal/ignition/imagefiles"
	"hcp.internal/platform/internal/ignition/payload"
)

// maxPayload of bytes; the same as for Kubernetes releases.
const maxPayload = 8 << 20

// Bounds of time. The zero value of a field of Generator means these.
const (
	// generateTime bounds one payload without the time for its images: three programs that take seconds, and a server.
	generateTime = 5 * time.Minute
	// serveTime bounds the wait for the server's answer: it reads what is there already.
	serveTime = 2 * time.Minute
	// retryFirst and retryLast are how long a failure of the same inputs is repeated without trying again: a payload costs minutes of CPU.
	retryFirst, retryLast = 30 * time.Second, 10 * time.Minute
)

// Ports of the machine-config-server, on which nobody else is asked for the payload.
const (
	securePort   = 22625
	insecurePort = 22626
)

// Generator implements payload.Generator. Work is required.
type Generator struct {
	// Work is a folder that is the generator's alone: payloads in the making, and what was made.
	Work string
	// Images has files of the release's images.
	Images *imagefiles.Store
	Runner child.Runner
	Clock  clock.PassiveClock
	// SecurePort and InsecurePort of the machine-config-server; default 22625 and 22626.
	SecurePort, InsecurePort int
	// Time bounds one payload; default 5 minutes. ServeTime bounds the wait for the machine-config-server in it; default 2 minutes: others wait for their turn.
	Time, ServeTime time.Duration
	// HostRHEL is the major version of RHEL that this program runs on; empty: another system.
	HostRHEL string

	mu       sync.Mutex // one payload at a time
	identity identity
	failures failures
	tidied   bool
	askEvery time.Duration // default 1 s; tests have no time
}

// MissingImagesError says that a release lacks images that machines can't be made without.
type MissingImagesError struct {
	Version string
	Tags    []string
}

func (e *MissingImagesError) Error() string {
	return fmt.Sprintf("release %s has no image %s, so no machine can be made of it: name another release", e.Version, strings.Join(e.Tags, ", "))
}

// Generate implements payload.Generator. The same inputs are never given to the programs again while what they made is there.
func (g *Generator) Generate(ctx context.Context, in payload.Inputs) ([]byte, error) {
	if in.OpenShift == nil {
		return nil, errors.New("the inputs are not those of an OpenShift release")
	}
	m, err := minorOf(in.Version)
	if err != nil {
		return nil, &payload.InvalidError{Err: err}
	}
	if lacking := missing(m, in.Images); len(lacking) > 0 {
		return nil, &payload.InvalidError{Err: &MissingImagesError{Version: in.Version, Tags: lacking}}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.tidy(); err != nil {
		return nil, err
	}
	key := in.Key()
	if data := g.cached(key); data != nil {
		return data, nil
	}
	if err := g.failures.known(key, g.now()); err != nil {
		return nil, err
	}
	data, err := g.generate(ctx, in, m)
	if err != nil {
		if ctx.Err() == nil { // otherwise nothing is known but that this process ends
			g.failures.note(key, err, g.now())
		}
		return nil, err
	}
	g.failures.forget(key)
	g.keep(key, data)
	return data, nil
}

func (g *Generator) now() time.Time {
	if g.Clock == nil {
		return time.Now()
	}
	return g.Clock.Now()
}

// generate makes a payload in a folder that goes in any case.
func (g *Generator) generate(ctx context.Context, in payload.Inputs, m minor) ([]byte, error) {
	files, err := g.images(ctx, in, m)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(g.Time, generateTime)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("making the payload took longer than %s", limit))
	defer cancel()
	dir, err := os.MkdirTemp(g.Work, workPrefix)
	if err != nil {
		return nil, fmt.Errorf("making a folder for the payload: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is removed by the next start
	r := request{
		version: in.Version, release: in.OpenShift.Release, images: in.Images, cloudConfig: len(in.OpenShift.CloudConfig) > 0,
		securePort: cmp.Or(g.SecurePort, securePort), insecurePort: cmp.Or(g.InsecurePort, insecurePort),
	}
	w := &work{place: place{dir}, in: in, request: r, minor: m, images: files, runner: g.Runner, secrets: secretsOf(in), askEvery: cmp.Or(g.askEvery, askEvery),
		serveTime: cmp.Or(g.ServeTime, serveTime)}
	if w.pair, err = g.identity.pair(g.now()); err != nil {
		return nil, err
	}
	data, err := w.run(ctx)
	if err != nil {
		return nil, err
	}
	if err := payload.Check(data); err != nil {
		return nil, fmt.Errorf("the machine-config-server of release %s: %w", in.Version, err)
	}
	return data, nil
}

// work is one payload in the making.
type work struct {
	place               place
	in                  payload.Inputs
	request             request
	minor               minor
	images              imageFolders
	runner              child.Runner
	pair                certificate
	secrets             []string
	askEvery, serveTime time.Duration
}

func (w *work) run(ctx context.Context) ([]byte, error) {
	gates, operator, controller, server, err := stagesFor(w.request, w.place)
	if err != nil {
		return nil, &payload.InvalidError{Err: err}
	}
	if err := w.prepare(); err != nil {
		return nil, err
	}
	for _, step := range []struct {
		stage
		after func() error
	}{{gates, nil}, {operator, w.between}, {controller, nil}} {
		if err := w.runner.Run(ctx, w.command(step.stage)); err != nil {
			return nil, w.failed(err)
		}
		if step.after == nil {
			continue
		}
		if err := step.after(); err != nil {
			return nil, err
		}
	}
	return w.serve(ctx, server)
}

func (w *work) command(s stage) child.Command {
	return child.Command{Name: s.name, Path: w.place.at(dirBin, s.program), Args: s.args, Dir: w.place.dir, Secrets: w.secrets}
}

// failed says of which release a program was. One that refused what it was given has users look at their configuration; anything else may pass.
func (w *work) failed(err error) error {
	var ended *child.Error
	if !errors.As(err, &ended) {
		return err
	}
	err = fmt.Errorf("release %s: %w", w.in.Version, err)
	if ended.Refused {
		return &payload.InvalidError{Err: err}
	}
	return err
}

// failures are what went wrong with inputs, by their keys, so that they are not tried again at once.
type failures struct{ byKey map[string]failure }

type failure struct {
	err   error
	again time.Time
	wait  time.Duration
}

// maxFailures bounds them; of more the programs are tried again earlier.
const maxFailures = 200

// known is the error of inputs that are not to be tried yet.
func (f *failures) known(key string, now time.Time) error {
	if known, ok := f.byKey[key]; ok && now.Before(known.again) {
		return known.err
	}
	return nil
}

func (f *failures) note(key string, err error, now time.Time) {
	if f.byKey == nil || len(f.byKey) >= maxFailures {
		f.byKey = map[string]failure{}
	}
	wait := min(max(2*f.byKey[key].wait, retryFirst), retryLast)
	f.byKey[key] = failure{err: err, again: now.Add(wait), wait: wait}
}

func (f *failures) forget(key string) { delete(f.byKey, key) }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func nonEmpty(data []byte) bool { return len(bytes.TrimSpace(data)) > 0 }
