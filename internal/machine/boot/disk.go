package boot

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Places on the disk, below /var.
const (
	// stateDir holds what makes a machine the same machine after a reboot.
	stateDir = "lib/machine"
	// markFile says that Ignition has been applied.
	markFile = stateDir + "/ignition-applied"
	// etcDir is what /etc is while the machine runs.
	etcDir = stateDir + "/etc"
)

// folders of a disk that was empty; their modes.
var folders = []struct {
	path string
	mode fs.FileMode
}{
	{"lib", 0o755}, {"log", 0o755}, {"log/units", 0o755}, {"log/pods", 0o755}, {"cache", 0o755}, {"tmp", 0o777 | fs.ModeSticky}, {"opt", 0o755}, {"opt/cni", 0o755}, {"home", 0o755},
	{"roothome", 0o700}, {"usrlocal", 0o755}, {"usrlocal/bin", 0o755}, {"usrlocal/sbin", 0o755}, {"usrlocal/lib", 0o755},
	{"usrlocal/etc", 0o755}, {"usrlocal/share", 0o755}, {stateDir, 0o700},
}

// fromOutside are files of /etc that the pod's own kubelet keeps: they follow the pod, not the disk.
var fromOutside = []string{"hosts", "hostname", "resolv.conf"}

// prepareDisk makes an empty disk one that can be booted from, and tells whether Ignition has still to be applied. A disk whose
// first boot was interrupted is emptied, so that a first boot always begins with nothing. disk is /var, image the /etc of the image.
func prepareDisk(disk, image string) (first bool, err error) {
	_, err = os.Stat(filepath.Join(disk, markFile))
	if err == nil {
		return false, follow(disk, image)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("looking for the mark of the first boot: %w", err)
	}
	entries, err := os.ReadDir(disk)
	if err != nil {
		return false, fmt.Errorf("reading the disk: %w", err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(disk, e.Name())); err != nil {
			return false, fmt.Errorf("emptying the disk: %w", err)
		}
	}
	for _, f := range folders {
		path := filepath.Join(disk, f.path)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return false, fmt.Errorf("preparing the disk: %w", err)
		}
		if err := os.Chmod(path, f.mode); err != nil {
			return false, fmt.Errorf("preparing the disk: %w", err)
		}
	}
	for link, target := range map[string]string{"run": "../run", "lock": "../run/lock", "opt/cni/bin": "/usr/lib/cni"} {
		if err := os.Symlink(target, filepath.Join(disk, link)); err != nil {
			return false, fmt.Errorf("preparing the disk: %w", err)
		}
	}
	if err := copyTree(image, filepath.Join(disk, etcDir)); err != nil {
		return false, fmt.Errorf("copying the image's /etc: %w", err)
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return false, fmt.Errorf("making a machine ID: %w", err)
	}
	if err := os.WriteFile(filepath.Join(disk, etcDir, "machine-id"), []byte(hex.EncodeToString(id)+"\n"), 0o444); err != nil {
		return false, fmt.Errorf("writing the machine ID: %w", err)
	}
	return true, follow(disk, image)
}

// resolvers keeps the name servers of a resolv.conf alone: the pod's search domains are the management cluster's, and would be those
// of every pod on the machine.
func resolvers(data []byte) []byte {
	var out []byte
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("nameserver")) {
			out = append(out, line...)
		}
	}
	return out
}

// follow copies what the pod's kubelet keeps in /etc.
func follow(disk, image string) error {
	for _, name := range fromOutside {
		data, err := os.ReadFile(filepath.Join(image, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			if name == "resolv.conf" {
				data = resolvers(data)
			}
			err = os.WriteFile(filepath.Join(disk, etcDir, name), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("following the pod's %s: %w", name, err)
		}
	}
	return nil
}

// copyTree copies folders, files and links with their modes and owners.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case info.Mode().IsRegular():
			if err := copyFile(path, target); err != nil {
				return err
			}
		default:
			return nil
		}
		return os.Chmod(target, info.Mode())
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Mark notes on a disk, which is the machine's /var, that Ignition was applied and which units are to run from the next boot on. The rename makes it whole,
// or what it was before.
func Mark(disk string, units []string) error {
	path := filepath.Join(disk, markFile)
	if err := os.WriteFile(path+".new", []byte(strings.Join(units, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("noting that Ignition was applied: %w", err)
	}
	// What was written must be there before the mark is, should power fail.
	unix.Sync()
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("noting that Ignition was applied: %w", err)
	}
	return nil
}

// Marked returns the units that Mark noted; fs.ErrNotExist: the disk is of no machine of platform Local, or its first boot hasn't ended.
func Marked(disk string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(disk, markFile))
	if err != nil {
		return nil, fmt.Errorf("reading which units are to run: %w", err)
	}
	return strings.Fields(string(data)), nil
}
