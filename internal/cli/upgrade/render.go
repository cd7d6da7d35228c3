package upgrade

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/render"
	"hcp.internal/platform/internal/clip"
	"hcp.internal/platform/internal/release"
)

// renderTime bounds the rendering of one control plane by another program.
const renderTime = 2 * time.Minute

// side is one of the two that are compared.
type side struct {
	hcp     *hyperv1.HostedControlPlane
	release *release.Release
	image   string // of the operators
	// program renders, as `hypershift` of another version; empty: this one.
	program string
}

// workbench is a folder for the inputs and outputs of both sides. It holds Secrets, so only its owner can read it, and it goes in the end.
type workbench struct {
	root         string
	capabilities string
}

func newWorkbench(capabilities []string) (*workbench, error) {
	root, err := os.MkdirTemp("", "hypershift-upgrade-") // 0700
	if err != nil {
		return nil, fmt.Errorf("making a folder for what is rendered: %w", err)
	}
	return &workbench{root: root, capabilities: strings.Join(append([]string{"none"}, capabilities...), ",")}, nil
}

func (w *workbench) close() { _ = os.RemoveAll(w.root) }

// write puts a value into a file.
func (w *workbench) write(name string, value any) (string, error) {
	path := filepath.Join(w.root, name)
	raw, err := yaml.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", name, err)
	}
	return path, os.WriteFile(path, raw, 0o600)
}

// objects writes what exists in the namespace of a control plane.
func (w *workbench) objects(list []client.Object) (string, error) {
	dir := filepath.Join(w.root, "objects")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for i, obj := range list {
		if _, err := w.write(filepath.Join("objects", fmt.Sprintf("%d.yaml", i)), obj); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// render makes all objects of one side. problems are what components could not be rendered for.
func (w *workbench) render(ctx context.Context, name string, s side, objects string) (out rendered, problems []string, err error) {
	hcp := s.hcp.DeepCopy()
	hcp.TypeMeta.APIVersion, hcp.TypeMeta.Kind = hyperv1.GroupVersion.String(), "HostedControlPlane"
	hcp.ManagedFields = nil
	if hcp.Annotations == nil {
		hcp.Annotations = map[string]string{}
	}
	if hcp.Annotations[hyperv1.ControlPlaneOperatorImageAnnotation] == "" {
		hcp.Annotations[hyperv1.ControlPlaneOperatorImageAnnotation] = s.image
	}
	input, err := w.write(name+"-hcp.yaml", hcp)
	if err != nil {
		return nil, nil, err
	}
	metadata, err := w.write(name+"-release.yaml", map[string]any{"version": s.release.Version, "image": s.release.Image, "kubernetesVersion": s.release.KubernetesVersion,
		"componentVersions": s.release.ComponentVersions, "images": s.release.Images})
	if err != nil {
		return nil, nil, err
	}
	infra, err := w.write(name+"-infra.yaml", map[string]any{"apiHost": hcp.Status.ControlPlaneEndpoint.Host, "apiPort": hcp.Status.ControlPlaneEndpoint.Port})
	if err != nil {
		return nil, nil, err
	}
	root := filepath.Join(w.root, name)
	if err := os.RemoveAll(root); err != nil {
		return nil, nil, err
	}
	for _, operator := range []string{"control-plane-operator", "hypershift-operator"} {
		args := []string{"components", "-f", input, "--release-metadata", metadata, "--objects", objects, "--infra-status", infra, "--management-capabilities", w.capabilities,
			"--native-sidecars", "--no-signing", "--no-defaults", "--placeholder-images", "--all", "--keep-going", "--overwrite", "--operator", operator, "--output-dir", root}
		said, err := run(ctx, s.program, args)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			problems = append(problems, told(said, err)...)
		}
	}
	if _, err := os.Stat(root); err != nil {
		return nil, problems, fmt.Errorf("nothing was rendered: %s", strings.Join(problems, "; "))
	}
	out, err = readRendered(root)
	return out, problems, err
}

// told are the lines about components that failed.
func told(said string, err error) []string {
	var out []string
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "component ") {
			out = append(out, clip.Line(line))
		}
	}
	if len(out) == 0 {
		out = append(out, clip.Line(err.Error()))
	}
	return out
}

// run renders by this program or by another one.
func run(ctx context.Context, program string, args []string) (said string, err error) {
	var errOut bytes.Buffer
	if program == "" {
		cmd := render.Command()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(&errOut)
		err = cmd.ExecuteContext(ctx)
		return errOut.String(), err
	}
	ctx, cancel := context.WithTimeout(ctx, renderTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"render"}, args...)...)
	cmd.Stderr = &errOut
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%s render components: %w: %s", program, err, errOut.String())
	}
	return errOut.String(), err
}
