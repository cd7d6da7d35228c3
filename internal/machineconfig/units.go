package machineconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	types "github.com/coreos/ignition/v2/config/v3_5/types"
	"golang.org/x/sys/unix"

	"hcp.internal/platform/internal/atomicfile"
	"hcp.internal/platform/internal/bounded"
	"hcp.internal/platform/internal/machine/boot"
	"hcp.internal/platform/internal/machine/systemd"
)

const (
	// enabledPath, below the root of a machine that systemd runs, holds the units that the configuration enables; during a change also those of the one before.
	enabledPath = "var/lib/machine-config-daemon/enabled"
	// maxEnabled bounds that file. A configuration has at most 10,000 units, whose names have at most 207 bytes; changes that fail add up.
	maxEnabled = 32 << 20
)

// setUnits has the machine run the units of the configuration from its next boot on, and those no more that only the configuration before enables. enabled are
// those that the present one does.
func (d *Daemon) setUnits(cfg *types.Config, enabled []string) error {
	disk := filepath.Join(d.Root, "var")
	switch _, err := boot.Marked(disk); {
	case err == nil:
		return boot.Mark(disk, enabled) // a machine of platform Local: its first process reads this list
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	before, err := d.enabledBefore()
	if err != nil {
		return err
	}
	along, err := systemd.WithAlso(d.Root, enabled, d.Say)
	if err != nil {
		return err
	}
	// Until all links are as they should be, the file names every unit that may have some: a change that goes on after a crash must find those that have to go.
	if err := d.noteEnabled(slices.Concat(before, along)); err != nil {
		return err
	}
	units := systemd.Units{Enabled: enabled, Before: before}
	for _, u := range cfg.Systemd.Units {
		if u.Enabled != nil && !*u.Enabled {
			units.Disabled = append(units.Disabled, u.Name)
		}
	}
	for _, l := range cfg.Storage.Links {
		units.Links = append(units.Links, l.Path)
	}
	if err := systemd.Set(d.Root, units, d.Say); err != nil {
		return err
	}
	unix.Sync() // the links, before the file stops naming those that have gone
	return d.noteEnabled(along)
}

// enabledBefore are the units that earlier configurations have enabled: by a change in place, or at the first boot.
func (d *Daemon) enabledBefore() ([]string, error) {
	data, err := bounded.ReadFile(filepath.Join(d.Root, enabledPath), maxEnabled)
	if errors.Is(err, fs.ErrNotExist) {
		return systemd.FirstBoot(d.Root, d.Say)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which units are enabled: %w", err)
	}
	return strings.Fields(string(data)), nil
}

func (d *Daemon) noteEnabled(units []string) error {
	path := filepath.Join(d.Root, enabledPath)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("noting which units are enabled: %w", err)
	}
	slices.Sort(units)
	return atomicfile.Write(path, []byte(strings.Join(slices.Compact(units), "\n")+"\n"), 0o600)
}
