package network

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// look is how often the bridge, the packet filter and the settings are looked after.
	look = 10 * time.Second
	// lookAtFirewall is how many of these looks it takes until the machine's firewall is looked at, too: that needs a program.
	lookAtFirewall = 3
)

// Keeper makes again what others take away: a firewall that is loaded anew empties the packet filter, or
// drops again what pods send, and a container engine that starts drops what is forwarded.
type Keeper struct {
	Options
	Clock clock.WithTicker
	Log   logr.Logger
	// RestartProxy has kube-proxy start anew. It looks after its rules once an hour only.
	RestartProxy func()

	proxied bool // the rules of kube-proxy have been there
}

// Run works until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := k.Clock.NewTicker(look)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		err := k.repair(ctx, n%lookAtFirewall == 0)
		if err == nil {
			err = k.lookAtProxy()
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			k.Log.Error(err, "keeping the network")
		}
	}
}

// repair makes what is missing.
func (k *Keeper) repair(ctx context.Context, firewall bool) error {
	gone, err := missing(k.Options)
	if err != nil {
		return err
	}
	if gone != "" {
		k.Log.Info("part of the network is gone; making it again", "gone", gone)
		return Ensure(ctx, k.Options)
	}
	if !firewall {
		return nil
	}
	changed, err := letPass(ctx, k.Options, onHost)
	if changed {
		k.Log.Info("the machine's firewall dropped what pods send; it lets that pass again")
	}
	return err
}

// missing says what isn't as Ensure makes it; empty: nothing.
func missing(opts Options) (string, error) {
	if !Present() {
		return "the bridge, or its address", nil
	}
	has, err := HasChain(FamilyInet, Table, "leaving") // tables go as a whole
	if err != nil {
		return "", err
	}
	if !has {
		return "table " + Table + " of the packet filter", nil
	}
	for key, value := range settings(opts) {
		now, err := os.ReadFile(settingsDir + key)
		if err == nil && strings.TrimSpace(string(now)) != value {
			return "the kernel setting net/" + key + "=" + value, nil
		}
	}
	return "", nil
}

// lookAtProxy restarts kube-proxy when its rules are gone that were there.
func (k *Keeper) lookAtProxy() error {
	has, err := HasChain(FamilyIPv4, ProxyTable, "services")
	if err != nil {
		return err
	}
	if k.proxied && !has {
		k.Log.Info("the rules of kube-proxy are gone; starting it anew")
		k.RestartProxy()
	}
	k.proxied = has
	return nil
}
