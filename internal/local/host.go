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

// hostSettings are kernel settings that the kubelet (and, for pods' way out, we) change, so that "down" can restore them.
var hostSettings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	"net/ipv4/ip_forward",
}

// hostState is what was before "up" changed it.
type hostState struct {
	Sysctls map[string]string `json:"sysctls"`
}

// rememberHost writes down the settings once per state folder, before the first change.
func rememberHost(p components.Paths) error {
	if _, err := os.Stat(p.HostState()); err == nil {
		return nil
	}
	h := hostState{Sysctls: map[string]string{}}
	for _, key := range hostSettings {
		value, err := os.ReadFile(filepath.Join("/proc/sys", key))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the kernel setting %s: %w", key, err)
		}
		h.Sysctls[key] = strings.TrimSpace(string(value))
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

// restoreHost puts back what differs and says which settings these were.
func restoreHost(p components.Paths) ([]string, error) {
	data, err := os.ReadFile(p.HostState())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading kernel settings: %w", err)
	}
	h := hostState{}
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", p.HostState(), err)
	}
	var restored []string
	var errs []error
	for _, key := range hostSettings {
		was, known := h.Sysctls[key]
		path := filepath.Join("/proc/sys", key)
		now, err := os.ReadFile(path)
		if !known || err != nil || strings.TrimSpace(string(now)) == was {
			continue
		}
		if err := os.WriteFile(path, []byte(was), 0o644); err != nil {
			errs = append(errs, fmt.Errorf("restoring the kernel setting %s: %w", key, err))
			continue
		}
		restored = append(restored, strings.ReplaceAll(key, "/", "."))
	}
	return restored, errors.Join(errs...)
}
