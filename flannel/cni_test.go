package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/lease"
)

func TestWriteCNI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "net.d", "10-flannel.conflist")
	l := &lease.Lease{EnableIPv4: true, Subnet: ip.IP4Net{IP: ip.MustParseIP4("10.132.3.0"), PrefixLen: 24}}

	t.Run("When there is no file it should write one that the runtime can read", func(t *testing.T) {
		if err := writeCNI(path, l, 1500); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var conf struct {
			Plugins []struct {
				Type   string
				MTU    int
				IPMasq bool
				IPAM   struct{ Ranges [][]struct{ Subnet string } }
			}
		}
		if err := json.Unmarshal(data, &conf); err != nil {
			t.Fatal(err)
		}
		if p := conf.Plugins[0]; p.Type != "bridge" || p.MTU != 1500 || p.IPMasq || p.IPAM.Ranges[0][0].Subnet != "10.132.3.0/24" {
			t.Errorf("unexpected bridge: %+v", p)
		}
	})
	t.Run("When the file is right it should not touch it", func(t *testing.T) {
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeCNI(path, l, 1500); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(before, after) {
			t.Error("the file was replaced")
		}
	})
	t.Run("When the lease has no subnet it should refuse", func(t *testing.T) {
		if _, err := cniConfig(&lease.Lease{}, 1500); err == nil {
			t.Error("no error")
		}
	})
}
