package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"hcp.internal/platform/internal/machine/ignite"
	"hcp.internal/platform/internal/machine/reaper"
	"hcp.internal/platform/internal/machine/unit"
)

const (
	socketDir  = "/run/machine/notify"
	disk       = "/var"
	unitLogs   = disk + "/log/units"
	searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
	stopBound  = 4 * time.Second // of one unit; the pod has 10 s in all
	lastWait   = time.Second     // between the last SIGTERM and SIGKILL
)

// errReboot is how a run ends that was asked to reboot. The exit code makes the kubelet start the container again.
var errReboot = errors.New("rebooting")

// Init is the first process of a machine.
type Init struct {
	Clock    clock.Clock
	UserData string // file with the user data
	Getenv   func(string) string

	console *console
	reaper  reaper.Reaper
}

// Run boots, runs units until SIGTERM or SIGINT, and powers off. It may only run as process 1 of a machine: it mounts, and ends
// every other process.
func (i *Init) Run(ctx context.Context) error {
	if os.Getpid() != 1 {
		return errors.New("machine-init mounts folders and ends processes: it only runs as process 1 of a machine's container")
	}
	i.console = newConsole(os.Stdout, i.Clock)
	say := i.console.say
	// The caller's context ends at either signal without saying which.
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		if s := <-signals; s == syscall.SIGINT {
			stop(errReboot)
		} else {
			stop(nil)
		}
	}()
	go i.reaper.Run(context.WithoutCancel(ctx))

	err := i.boot(ctx)
	if err != nil && ctx.Err() == nil {
		say("boot failed: %v", err)
	} else {
		err = nil
	}
	say("ending what still runs")
	i.endAll()
	if errors.Is(context.Cause(ctx), errReboot) {
		err = errReboot
	}
	say("power off")
	return err
}

func (i *Init) boot(ctx context.Context) error {
	say := i.console.say
	meta, err := ReadMetadata(i.Getenv)
	if err != nil {
		return err
	}
	say("machine %s, address %s, provider ID %s", meta.NodeName, meta.NodeIP, meta.ProviderID)
	if err := mountSystem(); err != nil {
		return err
	}
	if err := meta.Bounds.show(); err != nil {
		return err
	}
	version, err := prepareCgroups(cgroupRoot)
	if err != nil {
		return err
	}
	first, err := prepareDisk(disk, "/etc")
	if err != nil {
		return err
	}
	if err := bind(filepath.Join(disk, etcDir), "/etc"); err != nil {
		return err
	}
	if err := os.WriteFile(MetadataFile, meta.file(), 0o644); err != nil {
		return fmt.Errorf("writing the metadata: %w", err)
	}
	var names []string
	if first {
		say("control groups %s, first boot: fetching the Ignition config", version)
		names, err = provision(ctx, i.UserData, &ignite.Writer{Root: "/", Say: say}, i.Clock, say)
		if err == nil {
			err = Mark(disk, names)
		}
	} else {
		say("control groups %s, booting again", version)
		names, err = Marked(disk)
	}
	if err != nil {
		return err
	}
	applySysctl("/proc/sys", readSysctl("/"), say)
	return i.units(ctx, names)
}

func (i *Init) units(ctx context.Context, names []string) error {
	say := i.console.say
	units, problems := unit.Load("/", names)
	for _, p := range problems {
		say("%v", p)
	}
	for name, u := range units {
		if len(u.Ignored) > 0 {
			say("%s: settings without effect here: %v", name, u.Ignored)
		}
	}
	m := &unit.Manager{
		Reaper: &i.reaper, Clock: i.Clock, Say: say, LogDir: unitLogs, SocketDir: socketDir,
		Environment: []string{searchPath}, StopBound: stopBound,
	}
	if err := m.Run(ctx, units); err != nil {
		return err
	}
	<-ctx.Done() // a machine without units, or whose units have all ended, is on all the same
	return nil
}

// endAll ends every process of the machine but this one.
func (i *Init) endAll() {
	_ = unix.Kill(-1, unix.SIGTERM) // there may be none
	deadline := i.Clock.After(lastWait)
	tick := 20 * time.Millisecond
	for alone := false; !alone; {
		select {
		case <-deadline:
			_ = unix.Kill(-1, unix.SIGKILL)
			return
		case <-i.Clock.After(tick):
			alone = errors.Is(unix.Kill(-1, 0), unix.ESRCH)
		}
	}
}
