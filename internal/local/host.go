package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hcp.internal/platform/internal/atomicfile"
	"hcp.internal/platform/internal/local/components"
)

const (
	kernelSettings = "/proc/sys"
	bootID         = "kernel/random/boot_id"
	ipForward      = "net/ipv4/ip_forward"
)

// hostSettings are kernel settings that the kubelet (and, for pods' way out, we) change, with the value that they get, so that "down" can restore them.
var hostSettings = []struct{ key, ours string }{
	{"vm/overcommit_memory", "1"}, {"vm/panic_on_oom", "0"}, {"kernel/panic", "10"}, {"kernel/panic_on_oops", "1"}, {"kernel/keys/root_maxkeys", "1000000"}, {"kernel/keys/root_maxbytes", "25000000"},
	{ipForward, "1"},
}

// hostState is what was before "up" changed it.
type hostState struct {
	// BootID is when that was: a machine that starts anew has its own settings again. Empty in files of versions that didn't write it down.
	BootID  string            `json:"bootID,omitempty"`
	Sysctls map[string]string `json:"sysctls"`
}

// rememberHost writes down the settings once per state folder and start of the machine, before the first change. ip_forward is among them from when pods may
// reach beyond, as it is not changed before. root is the folder of kernel settings.
func rememberHost(p components.Paths, root string, podEgress bool) error {
	boot, err := readSetting(root, bootID)
	if err != nil {
		return err
	}
	h, err := readHost(p)
	if err != nil {
		return err
	}
	if h.BootID != "" && h.BootID != boot || h.Sysctls == nil {
		h.Sysctls = map[string]string{}
	}
	h.BootID = boot
	for _, s := range hostSettings {
		if _, known := h.Sysctls[s.key]; known || s.key == ipForward && !podEgress {
			continue
		}
		value, err := readSetting(root, s.key)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		h.Sysctls[s.key] = value
	}
	data, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding kernel settings: %w", err)
	}
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return fmt.Errorf("creating the state folder: %w", err)
	}
	return atomicfile.Write(p.HostState(), data, 0o600)
}

func readSetting(root, key string) (string, error) {
	value, err := os.ReadFile(filepath.Join(root, key))
	if err != nil {
		return "", fmt.Errorf("reading the kernel setting %s: %w", key, err)
	}
	return strings.TrimSpace(string(value)), nil
}

// readHost reads what was written down; nothing when there is no file.
func readHost(p components.Paths) (hostState, error) {
	h := hostState{}
	data, err := os.ReadFile(p.HostState())
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("reading kernel settings: %w", err)
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("decoding %s: %w", p.HostState(), err)
	}
	if h.BootID == "" {
		delete(h.Sysctls, ipForward) // it was always written down, so it isn't known who changed it
	}
	return h, nil
}

// restoreHost puts back what still is as it was changed to, and says which settings these were. What differs from that is somebody else's by now.
func restoreHost(p components.Paths, root string) ([]string, error) {
	h, err := readHost(p)
	if err != nil || len(h.Sysctls) == 0 {
		return nil, err
	}
	boot, err := readSetting(root, bootID)
	if err != nil {
		return nil, err
	}
	if h.BootID != "" && h.BootID != boot {
		return nil, nil // nothing has been changed since the machine started
	}
	var restored []string
	var errs []error
	for _, s := range hostSettings {
		was, known := h.Sysctls[s.key]
		now, err := readSetting(root, s.key)
		if !known || err != nil || now != s.ours || now == was {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, s.key), []byte(was), 0o644); err != nil {
			errs = append(errs, fmt.Errorf("restoring the kernel setting %s: %w", s.key, err))
			continue
		}
		restored = append(restored, strings.ReplaceAll(s.key, "/", "."))
	}
	return restored, errors.Join(errs...)
}
