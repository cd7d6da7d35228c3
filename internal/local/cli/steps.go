package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/create"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/cli/kubeconfig"
	"hcp.internal/platform/internal/local"
)

// demoName is the hosted cluster that "up" creates in create.DefaultNamespace.
const demoName = "demo"

// steps wires the operators and the demo cluster into "up": the same code as `hypershift install` and
// `hypershift create cluster local`.
func steps() local.Steps { return local.Steps{Install: installOperators, Demo: createDemo} }

func installOperators(ctx context.Context, c local.Cluster, say local.Say) error {
	o := install.NewOptions()
	o.Connect = connect.Flags{Kubeconfig: c.Kubeconfig}
	o.Image = c.Images.Platform
	o.WaitAvailable = true
	return install.Run(ctx, o, &lineWriter{say: say})
}

func createDemo(ctx context.Context, c local.Cluster, say local.Say) error {
	o := create.NewOptions(hyperv1.LocalPlatform)
	o.Connect = connect.Flags{Kubeconfig: c.Kubeconfig}
	o.Name = demoName
	o.ReleaseImage = c.DemoRelease
	o.Wait = true
	out := &lineWriter{say: say}
	if err := create.Cluster(ctx, o, out); err != nil {
		return err
	}
	management, err := o.Connect.Client()
	if err != nil {
		return err
	}
	raw, err := kubeconfig.Kubeconfig(ctx, management, kubeconfig.Options{Name: o.Name, Namespace: o.Namespace}, out)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.DemoKubeconfig, raw, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig of the demo cluster: %w", err)
	}
	return nil
}

// lineWriter hands each whole line that is written to it on to say.
type lineWriter struct {
	say     local.Say
	pending bytes.Buffer
}

var _ io.Writer = (*lineWriter)(nil)

func (w *lineWriter) Write(p []byte) (int, error) {
	w.pending.Write(p)
	for {
		line, err := w.pending.ReadString('\n')
		if err != nil {
			w.pending.Reset()
			w.pending.WriteString(line)
			return len(p), nil
		}
		w.say("%s", line[:len(line)-1])
	}
}
