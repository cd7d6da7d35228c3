package boot

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mountSystem mounts what a kernel and an init system would have.
func mountSystem() error {
	// Volumes of pods must show up in the mounts of their containers.
	if err := unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("sharing mounts: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=25%"); err != nil {
		return fmt.Errorf("mounting /run: %w", err)
	}
	for _, dir := range []string{"/run/lock", "/run/metadata", "/run/machine", socketDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making folders in /run: %w", err)
		}
	}
	return nil
}

// bind lays one folder over another.
func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("laying %s over %s: %w", from, to, err)
	}
	// A bind mount is private; pods may mount host paths in it.
	if err := unix.Mount("", to, "", unix.MS_SHARED, ""); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("sharing mounts in %s: %w", to, err)
	}
	return nil
}
