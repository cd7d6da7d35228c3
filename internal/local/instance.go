package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// instanceFile and lockFile are outside of any state folder, because there is one instance per machine.
const (
	instanceFile = "/run/hypershift-local.json"
	lockFile     = "/run/hypershift-local.lock"
)

// Instance says which state folder the machine's instance uses.
type Instance struct {
	StateDir string `json:"stateDir"`
}

// CurrentInstance returns nil when there is none.
func CurrentInstance() (*Instance, error) {
	data, err := os.ReadFile(instanceFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the instance file: %w", err)
	}
	i := &Instance{}
	if err := json.Unmarshal(data, i); err != nil || !filepath.IsAbs(i.StateDir) {
		return nil, fmt.Errorf("the instance file %s is damaged; remove it and run \"hypershift local down\"", instanceFile)
	}
	i.StateDir = RealPath(i.StateDir) // earlier versions wrote down that of a link
	return i, nil
}

func writeInstance(i Instance) error {
	data, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encoding the instance file: %w", err)
	}
	if err := os.WriteFile(instanceFile, data, 0o600); err != nil {
		return fmt.Errorf("writing the instance file: %w", err)
	}
	return nil
}

// lock is held by the supervisor for as long as it lives; the kernel drops it with the process.
func lock() (*os.File, error) {
	f, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("another supervisor holds %s: %w", lockFile, err)
	}
	return f, nil
}
