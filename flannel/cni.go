package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flannel-io/flannel/pkg/lease"
)

// cniConfig is what the container runtime needs to put pods on this node's bridge. Masquerading isn't the bridge's: its rule
// would hide pods from pods of other nodes, too.
func cniConfig(l *lease.Lease, mtu int) ([]byte, error) {
	var ranges []any
	if !l.Subnet.Empty() {
		ranges = append(ranges, []any{map[string]any{"subnet": l.Subnet.String()}})
	}
	if !l.IPv6Subnet.Empty() {
		ranges = append(ranges, []any{map[string]any{"subnet": l.IPv6Subnet.String()}})
	}
	if len(ranges) == 0 {
		return nil, fmt.Errorf("the lease has no subnet")
	}
	return json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0",
		"name":       "cbr0",
		"plugins": []any{
			map[string]any{
				"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "hairpinMode": true, "ipMasq": false, "mtu": mtu,
				"ipam": map[string]any{"type": "host-local", "ranges": ranges, "dataDir": "/var/lib/cni/networks"},
			},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}, "", "  ")
}

// writeCNI replaces the file in one step, and only when it differs: the runtime reads it at every event in its folder.
func writeCNI(path string, l *lease.Lease, mtu int) error {
	want, err := cniConfig(l, mtu)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, want) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("creating the folder of %s: %w", path, err)
	}
	// The runtime ignores names that don't end in .conf, .conflist or .json.
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, want, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", tmp, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("putting %s in place: %w", path, err)
	}
	return nil
}
