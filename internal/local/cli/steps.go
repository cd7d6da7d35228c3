//go:build linux

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/cli/kubeconfig"
	"hcp.internal/platform/internal/cli/progress"
	"hcp.internal/platform/internal/local"
	"hcp.internal/platform/internal/local/components"
	"hcp.internal/platform/internal/local/tour"
)

// demo is the hosted cluster that "up" creates, in the namespace create.DefaultNamespace.
const demo = "demo"

// demoWorkers is how many workers it gets: two, so that a replicated workload survives one of them.
const demoWorkers = 2

// readinessSeconds is how often the operator is asked whether it is ready. It is installed when the kubelet has just started, which then waits a
// random part of that before it asks for the first time: up to a minute with what is installed elsewhere.
const readinessSeconds = 10

// steps wires the operators and the demo cluster into "up": the same functions that "install" and "create cluster" call.
func steps() local.Steps {
	return local.Steps{
		Install: installOperators, Demo: createDemo, Workers: waitForWorkers,
		Tours: []local.Tour{
			{Name: "package", Task: "showing a package", Run: tour.Web{Registry: components.RegistryHost, Ask: tour.Ask}.Run},
			{Name: "addon", Task: "delivering an add-on to clusters/demo", Run: awake(tour.Addon{
				Registry: components.RegistryHost, Cluster: client.ObjectKey{Namespace: create.DefaultNamespace, Name: demo},
			}.Run)},
		},
	}
}

func installOperators(ctx context.Context, c local.Cluster, say local.Say) error {
	o := install.NewOptions()
	o.Connect.Kubeconfig = c.Kubeconfig
	o.Image = c.Images.Platform
	o.Platforms, o.WithoutProviders = install.EveryPlatform(), true // a management cluster on one machine has no use for them
	o.PackageOperator = true
	o.WaitAvailable = true
	o.ReadinessSeconds = readinessSeconds
	if err := install.Run(ctx, o, &lines{say: say}); err != nil {
		return err
	}
	api, err := o.Connect.Client()
	if err != nil {
		return err
	}
	return create.OfferRelease(ctx, api, c.DemoRelease)
}

// createDemo creates the cluster once. Afterwards it is the user's: an upgraded release must not be put back, and one that sleeps or is paused stays so.
func createDemo(ctx context.Context, c local.Cluster, say local.Say) error {
	o := create.NewOptions(hyperv1.LocalPlatform)
	o.Connect.Kubeconfig = c.Kubeconfig
	o.Name = demo
	o.ReleaseImage = c.DemoRelease
	o.NodePool.Replicas, o.NodePool.AutoRepair = demoWorkers, true
	o.Wait = true
	api, err := o.Connect.Client()
	if err != nil {
		return err
	}
	out := &lines{say: say}
	hc := &hyperv1.HostedCluster{}
	err = api.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, hc)
	if why := held(hc, c.Clock.Now()); err == nil && why != "" {
		c.Show("%s", why)
		return nil
	}
	switch {
	case err == nil:
		err = create.Wait(ctx, o, api, progress.New(out, nil))
	case apierrors.IsNotFound(err):
		err = create.Cluster(ctx, o, out)
	}
	if err != nil {
		return err
	}
	return writeKubeconfig(ctx, api, kubeconfig.Options{Connect: connect.Flags{Kubeconfig: c.Kubeconfig}, Name: o.Name, Namespace: o.Namespace}, c.DemoKubeconfig)
}

func writeKubeconfig(ctx context.Context, api client.Client, o kubeconfig.Options, path string) error {
	raw, err := kubeconfig.Kubeconfig(ctx, api, o, io.Discard)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, raw) {
		return nil
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig of the hosted cluster: %w", err)
	}
	return nil
}

// lines hands each line that is written to a Say, without the time that the commands' own progress puts before it.
type lines struct {
	say  local.Say
	rest string
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest += string(p)
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(p), nil
		}
		l.rest = rest
		if strings.HasPrefix(line, "[") {
			_, line, _ = strings.Cut(line, "] ")
		}
		if line = strings.TrimSpace(line); line != "" {
			l.say("%s", line)
		}
	}
}
