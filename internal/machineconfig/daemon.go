// Package machineconfig is the machine-config-daemon of Kubernetes releases: it changes the node that it runs on to another
// Ignition config, without replacing the machine.
//
//	desired != current ─▶ ask for a drain ─▶ write files ─▶ say which units run ─▶ restart the machine ─▶ ask to be opened again ─▶ Done
//
// The mark below root says which configuration was written in full and in which run of the machine, a file beside it which units it enables, and
// the Node's annotations the rest. So it may be killed anywhere, and is, by the restart. Files that only an older
// configuration has stay; units that only it enables run no more.
package machineconfig

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	types "github.com/coreos/ignition/v2/config/v3_5/types"

	"hcp.internal/platform/internal/atomicfile"
	"hcp.internal/platform/internal/machine/ignite"
)

const (
	prefix           = "machineconfiguration.openshift.io/"
	currentConfig    = prefix + "currentConfig"
	stateAnnotation  = prefix + "state"
	reasonAnnotation = prefix + "reason"
	desiredDrain     = prefix + "desiredDrain"
	lastAppliedDrain = prefix + "lastAppliedDrain"

	stateWorking, stateDone, stateDegraded = "Working", "Done", "Degraded"

	owner = "machine-config-daemon"
	// markPath, below the root, holds VERSION RUN of the last configuration that was written in full.
	markPath = "var/lib/machine-config-daemon/written"
	// maxPacked and maxUnpacked bound a configuration, packed and unpacked; a Secret has at most 1 MiB.
	maxPacked, maxUnpacked = 2 << 20, 32 << 20
	maxReason              = 200
)

// Node is what the daemon reads and writes of its Node.
type Node interface {
	Annotations(ctx context.Context) (map[string]string, error)
	// Annotate sets these annotations, and removes those that an earlier call set and this one lacks.
	Annotate(ctx context.Context, annotations map[string]string) error
}

// Daemon changes one node.
type Daemon struct {
	Node Node
	// Root is where the machine's root folder is mounted, Desired the folder with the desired configuration.
	Root, Desired string
	// Run tells one run of the machine from the next; Restart ends the present one, soon.
	Run     func() (string, error)
	Restart func() error
	// Sleep waits between looks, and fails when the daemon is to end.
	Sleep func(ctx context.Context) error
	Say   func(format string, args ...any)
}

// Start works until the node is at the desired configuration.
func (d *Daemon) Start(ctx context.Context) error {
	for {
		done, err := d.step(ctx)
		if done || ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			d.Say("%v", err)
		}
		if err := d.Sleep(ctx); err != nil {
			return err
		}
	}
}

// step does the next thing that is to be done, and reports what keeps it from being done.
func (d *Daemon) step(ctx context.Context) (done bool, err error) {
	have, err := d.Node.Annotations(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the node: %w", err)
	}
	version, config, err := d.desired()
	if err != nil {
		return false, d.degraded(ctx, have, err)
	}
	if have[currentConfig] == version && have[stateAnnotation] == stateDone {
		return true, nil
	}
	run, err := d.Run()
	if err != nil {
		return false, d.degraded(ctx, have, err)
	}
	written, when := d.mark()
	switch {
	case written == version && restarted(when, run):
		return d.open(ctx, have, version)
	case written == version:
		// The mark of an older daemon may not tell the next run from this one, and the machine would restart for ever.
		if when != run {
			if err := d.setMark(version, run); err != nil {
				return false, d.degraded(ctx, have, err)
			}
		}
		return false, d.Restart()
	}
	drain := "drain-" + version
	if state := have[stateAnnotation]; have[desiredDrain] != drain || state != stateWorking && state != stateDegraded {
		return false, d.say(ctx, have, map[string]string{stateAnnotation: stateWorking, desiredDrain: drain})
	}
	if have[lastAppliedDrain] != drain {
		return false, nil // pods are on their way out
	}
	// From here on the disk holds no configuration in full. Otherwise a return to the one of the mark, after an attempt that failed, would write nothing.
	if err := d.removeMark(); err != nil {
		return false, d.degraded(ctx, have, err)
	}
	if err := d.write(ctx, config); err != nil {
		return false, d.degraded(ctx, have, err)
	}
	if err := d.setMark(version, run); err != nil {
		return false, d.degraded(ctx, have, err)
	}
	d.Say("restarting with configuration %s", version)
	return false, d.Restart()
}

// restarted tells whether a mark is of a run of the machine before the present one. Older daemons have marked the start of process 1 alone.
func restarted(marked, run string) bool {
	if !strings.Contains(marked, runSeparator) {
		run = run[strings.LastIndex(run, runSeparator)+1:]
	}
	return marked != run
}

// open lets pods in again, and then reports the end.
func (d *Daemon) open(ctx context.Context, have map[string]string, version string) (bool, error) {
	uncordon := "uncordon-" + version
	if have[desiredDrain] != uncordon {
		return false, d.say(ctx, have, map[string]string{stateAnnotation: stateWorking, desiredDrain: uncordon})
	}
	if have[lastAppliedDrain] != uncordon {
		return false, nil
	}
	err := d.say(ctx, have, map[string]string{stateAnnotation: stateDone, currentConfig: version, desiredDrain: uncordon})
	return err == nil, err
}

// say keeps what isn't changed, as annotations are written together.
func (d *Daemon) say(ctx context.Context, have, change map[string]string) error {
	all := map[string]string{}
	for _, key := range []string{currentConfig, desiredDrain} {
		if value := have[key]; value != "" {
			all[key] = value
		}
	}
	for key, value := range change {
		all[key] = value
	}
	if err := d.Node.Annotate(ctx, all); err != nil {
		return fmt.Errorf("annotating the node: %w", err)
	}
	return nil
}

func (d *Daemon) degraded(ctx context.Context, have map[string]string, cause error) error {
	reason := cause.Error()
	reason = reason[:min(len(reason), maxReason)]
	if have[stateAnnotation] != stateDegraded || have[reasonAnnotation] != reason {
		if err := d.say(ctx, have, map[string]string{stateAnnotation: stateDegraded, reasonAnnotation: reason}); err != nil {
			return errors.Join(cause, err)
		}
	}
	return cause
}

// desired reads the folder that the Secret is mounted at: hash, and config in gzip and base64.
func (d *Daemon) desired() (version string, config []byte, err error) {
	hash, err := os.ReadFile(filepath.Join(d.Desired, "hash"))
	if err != nil {
		return "", nil, fmt.Errorf("reading the desired version: %w", err)
	}
	if version = strings.TrimSpace(string(hash)); version == "" || len(version) > 63 {
		return "", nil, errors.New("the desired version is empty or too long")
	}
	packed, err := os.ReadFile(filepath.Join(d.Desired, "config"))
	if err != nil {
		return "", nil, fmt.Errorf("reading the desired configuration: %w", err)
	}
	config, err = unpack(packed)
	return version, config, err
}

func unpack(packed []byte) ([]byte, error) {
	if len(packed) > maxPacked {
		return nil, fmt.Errorf("the desired configuration has %d bytes; at most %d are allowed", len(packed), maxPacked)
	}
	reader, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(packed)))
	if err != nil {
		return nil, fmt.Errorf("unpacking the desired configuration: %w", err)
	}
	config, err := io.ReadAll(io.LimitReader(reader, maxUnpacked+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking the desired configuration: %w", err)
	}
	if len(config) > maxUnpacked {
		return nil, fmt.Errorf("the desired configuration unpacks to more than %d bytes", maxUnpacked)
	}
	return config, nil
}

// write applies the configuration below the root: its files, and then which units run. What is there is replaced: most of it is from the configuration before.
func (d *Daemon) write(ctx context.Context, config []byte) error {
	cfg, err := (&ignite.Renderer{Say: d.Say}).Render(ctx, config)
	if err != nil {
		return fmt.Errorf("reading the desired configuration: %w", err)
	}
	if err := replace(cfg); err != nil {
		return err
	}
	result, err := (&ignite.Writer{Root: d.Root, Say: d.Say, KeepFolders: true}).Write(ctx, cfg)
	if err != nil {
		return fmt.Errorf("writing the desired configuration: %w", err)
	}
	return d.setUnits(cfg, result.Units)
}

// replace lets files and links take the place of what is there. A file without contents is the machine's own, and stays. What would be appended to such a file
// would be there twice after the next change, so it isn't: ValidMachineConfig of the NodePool refuses that. A unit that is enabled isn't masked any more, as it
// may be by the configuration before.
func replace(cfg *types.Config) error {
	yes, no := true, false
	for i := range cfg.Storage.Files {
		f := &cfg.Storage.Files[i]
		switch {
		case f.Contents.Source != nil:
			f.Overwrite = &yes
		case len(f.Append) > 0:
			return fmt.Errorf("file %s has append and no contents, which a change in place can't do: give it contents", f.Path)
		}
	}
	for i := range cfg.Storage.Links {
		cfg.Storage.Links[i].Overwrite = &yes
	}
	for i := range cfg.Systemd.Units {
		if u := &cfg.Systemd.Units[i]; u.Mask == nil && u.Enabled != nil && *u.Enabled {
			u.Mask = &no
		}
	}
	return nil
}

func (d *Daemon) mark() (version, run string) {
	data, err := os.ReadFile(filepath.Join(d.Root, markPath))
	if err != nil || len(data) > 1024 {
		return "", ""
	}
	version, run, _ = strings.Cut(strings.TrimSpace(string(data)), " ")
	return version, run
}

// setMark is written in one step, after everything else is on the disk.
func (d *Daemon) setMark(version, run string) error {
	path := filepath.Join(d.Root, markPath)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the folder of the mark: %w", err)
	}
	return atomicfile.Write(path, []byte(version+" "+run+"\n"), 0o600)
}

// removeMark is on the disk before anything else is written: after a power cut the mark must not be back beside new files.
func (d *Daemon) removeMark() error {
	path := filepath.Join(d.Root, markPath)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the mark: %w", err)
	}
	folder, err := os.Open(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing the mark: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("removing the mark: %w", err)
	}
	return nil
}

// pause is how long the daemon waits between looks.
const pause = 3 * time.Second

// patchOf is what is applied to a Node.
func patchOf(name string, annotations map[string]string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name, "annotations": annotations},
	})
}
