package ignite

import (
	"context"
	"errors"
	"fmt"

	v3_5 "github.com/coreos/ignition/v2/config/v3_5"
	types "github.com/coreos/ignition/v2/config/v3_5/types"

	"hcp.internal/platform/internal/clip"
)

// Renderer turns user data into the whole config.
type Renderer struct {
	// Say writes a line to the console.
	Say func(format string, args ...any)

	configs int
}

// Render parses user data, fetches the configs that it names, and merges them.
func (r *Renderer) Render(ctx context.Context, userData []byte) (*types.Config, error) {
	if len(userData) > maxConfig {
		return nil, fmt.Errorf("the user data has %d bytes, more than the %d that a config may have", len(userData), maxConfig)
	}
	cfg, err := parse(userData)
	if err != nil {
		return nil, fmt.Errorf("parsing the user data: %w", err)
	}
	r.configs = 0
	cfg, err = r.render(ctx, cfg, cfg.Ignition, 0)
	if err != nil {
		return nil, err
	}
	return &cfg, check(cfg)
}

// render follows replace and merge. settings say how to fetch: those of cfg and of what led to it.
func (r *Renderer) render(ctx context.Context, cfg types.Config, settings types.Ignition, depth int) (types.Config, error) {
	if depth > maxDepth {
		return cfg, fmt.Errorf("configs lead to configs more than %d deep", maxDepth)
	}
	f, err := newFetcher(ctx, settings, r.Say)
	if err != nil {
		return cfg, err
	}
	if replace := cfg.Ignition.Config.Replace; replace.Source != nil {
		next, err := r.fetch(ctx, f, replace)
		if err != nil {
			return cfg, fmt.Errorf("ignition.config.replace: %w", err)
		}
		return r.render(ctx, next, v3_5.Merge(types.Config{Ignition: settings}, next).Ignition, depth+1)
	}
	merged := cfg
	for i, ref := range cfg.Ignition.Config.Merge {
		next, err := r.fetch(ctx, f, ref)
		if err != nil {
			return cfg, fmt.Errorf("ignition.config.merge[%d]: %w", i, err)
		}
		// The new config's authorities and timeouts count for what it names itself.
		next, err = r.render(ctx, next, v3_5.Merge(types.Config{Ignition: settings}, next).Ignition, depth+1)
		if err != nil {
			return cfg, fmt.Errorf("ignition.config.merge[%d]: %w", i, err)
		}
		merged = v3_5.Merge(merged, next)
	}
	return merged, nil
}

func (r *Renderer) fetch(ctx context.Context, f *fetcher, ref types.Resource) (types.Config, error) {
	if r.configs++; r.configs > maxConfigs {
		return types.Config{}, fmt.Errorf("more than %d configs", maxConfigs)
	}
	raw, err := f.bytes(ctx, ref, maxConfig)
	if err != nil {
		return types.Config{}, err
	}
	return parse(raw)
}

func parse(raw []byte) (types.Config, error) {
	cfg, report, err := v3_5.ParseCompatibleVersion(raw)
	if err != nil {
		if report.IsFatal() {
			return cfg, fmt.Errorf("%w: %s", err, bounded(report.String()))
		}
		return cfg, err
	}
	return cfg, nil
}

// maxReport bounds how much of a validation report goes into a message.
const maxReport = 1 << 10

func bounded(s string) string { return clip.Over(s, maxReport, "…") }

// check refuses what a machine of platform Local can't do.
func check(cfg types.Config) error {
	var problems []error
	for what, n := range map[string]int{
		"storage.disks": len(cfg.Storage.Disks), "storage.raid": len(cfg.Storage.Raid), "storage.luks": len(cfg.Storage.Luks),
		"storage.filesystems": len(cfg.Storage.Filesystems),
	} {
		if n > 0 {
			problems = append(problems, fmt.Errorf("%s: machines of platform Local have no disks to prepare", what))
		}
	}
	if n := len(cfg.Storage.Files) + len(cfg.Storage.Directories) + len(cfg.Storage.Links) + len(cfg.Systemd.Units); n > maxEntries {
		problems = append(problems, fmt.Errorf("%d files, directories, links and units are more than %d", n, maxEntries))
	}
	return errors.Join(problems...)
}
