package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// hosted does the steps in the management cluster, and then shows the tours.
func (u *Up) hosted(ctx context.Context) error {
	_, cfg, err := u.client()
	if err != nil {
		return err
	}
	p := u.Settings.paths()
	c := Cluster{
		Settings: u.Settings, Config: cfg, Kubeconfig: p.Kubeconfig(), Images: u.images,
		DemoRelease: u.images.Releases[u.Settings.KubernetesVersion], DemoKubeconfig: p.DemoKubeconfig(),
		Show: u.display.Show, Clock: u.Clock,
	}
	for _, s := range u.hostedSteps() {
		err := u.display.Do(ctx, s.task, func(ctx context.Context, say func(string, ...any)) error { return s.run(ctx, c, say) })
		if err != nil {
			return err
		}
	}
	return u.tours(ctx, c)
}

// hostedStep is a step in the management cluster.
type hostedStep struct {
	task string
	run  func(context.Context, Cluster, Say) error
}

// hostedSteps are those that are asked for.
func (u *Up) hostedSteps() []hostedStep {
	var steps []hostedStep
	if u.Steps.Install != nil && !u.Settings.SkipInstall {
		steps = append(steps, hostedStep{"installing the operators", u.Steps.Install})
	}
	if u.Settings.SkipInstall || u.Settings.SkipDemo {
		return steps
	}
	if u.Steps.Demo != nil {
		steps = append(steps, hostedStep{"creating the hosted cluster clusters/demo", u.Steps.Demo})
	}
	if u.Steps.Workers != nil {
		steps = append(steps, hostedStep{"waiting for its workers", u.Steps.Workers})
	}
	return steps
}

// toursToShow are those that have not been shown in this cluster.
func (u *Up) toursToShow() []Tour {
	if u.Settings.SkipInstall || u.Settings.SkipDemo {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(u.Steps.Tours), func(t Tour) bool {
		_, err := os.Stat(u.Settings.paths().Shown(t.Name))
		return err == nil
	})
}

func (u *Up) tours(ctx context.Context, c Cluster) error {
	for _, t := range u.toursToShow() {
		later := false
		err := u.display.Do(ctx, t.Task, func(ctx context.Context, say func(string, ...any)) error {
			err := t.Run(ctx, c, say)
			if later = errors.Is(err, ErrNotNow); later {
				c.Show("left to a later hypershift local up")
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		if later {
			continue
		}
		note := u.Settings.paths().Shown(t.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(note), 0o700), os.WriteFile(note, nil, 0o600)); err != nil {
			return fmt.Errorf("noting that %s was shown: %w", t.Name, err)
		}
	}
	return nil
}
