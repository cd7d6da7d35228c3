package run

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"hcp.internal/platform/test/standin/checks"
	"hcp.internal/platform/test/standin/hyperkube"
)

// kube is the bundle of plain Kubernetes in the image of hyperkube.
const kube = "/usr/bin/kube"

// hyperkubeMain becomes the plain program that OpenShift's command line asks for.
func hyperkubeMain(args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no program is named; call it as hyperkube kube-apiserver")
	}
	start, err := plain(args[0], args[1:])
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	for _, f := range start.Needs {
		if info, err := os.Stat(f); err != nil || info.Size() == 0 {
			return fmt.Errorf("%s: file %s isn't there or is empty; mount it", args[0], f)
		}
	}
	for path, content := range start.Files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
	}
	fmt.Fprintf(out, "standin: %s %s\n", args[0], strings.Join(start.Args, " "))
	return syscall.Exec(kube, append([]string{args[0]}, start.Args...), os.Environ()) // it is what this program is for
}

// etcdMain becomes plain etcd.
func etcdMain(args []string, _ io.Writer) error {
	return syscall.Exec(kube, append([]string{"etcd"}, args...), os.Environ()) // it is what this program is for
}

// plain translates the arguments of one of OpenShift's Kubernetes programs.
func plain(program string, args []string) (hyperkube.Start, error) {
	const flag = "--openshift-config="
	var config []byte
	at := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, flag) })
	if at >= 0 {
		var err error
		if config, err = os.ReadFile(strings.TrimPrefix(args[at], flag)); err != nil {
			return hyperkube.Start{}, err
		}
		args = slices.Delete(slices.Clone(args), at, at+1)
	}
	switch {
	case program == "kube-scheduler":
		return hyperkube.Start{Args: hyperkube.PlainFlags(args)}, nil
	case config == nil:
		return hyperkube.Start{}, fmt.Errorf("flag %s is missing", strings.Trim(flag, "="))
	case program == "kube-apiserver":
		return hyperkube.APIServer(config, args)
	case program == "kube-controller-manager":
		return hyperkube.ControllerManager(config, args)
	}
	return hyperkube.Start{}, fmt.Errorf("hyperkube has no program %q", program)
}

// nslookup looks up one name, as the scripts that wait for etcd do.
func nslookup(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("want one name")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, args[0])
	if err != nil {
		return err
	}
	fmt.Fprintln(out, strings.Join(addresses, "\n"))
	return nil
}

// etcdctl can't ask a cluster for its members; the script that calls it then founds one.
func etcdctl([]string, io.Writer) error {
	return fmt.Errorf("the stand-in of a payload has no etcdctl")
}

// once is what programs do that end.
func (r *runner) once() error {
	switch r.Name {
	case "render":
		return r.renderConfig()
	case "authentication-operator":
		return r.renderAuthentication()
	case "collect-profiles":
		return nil
	}
	return fmt.Errorf("%s does nothing", r.Name)
}

// renderConfig writes the definitions of config.openshift.io and completes the FeatureGate for the payload's version.
func (r *runner) renderConfig() error {
	gate := filepath.Join(r.values.Get("rendered-manifest-dir"), "99_feature-gate.yaml")
	raw, err := r.read(gate)
	if err != nil {
		return err
	}
	complete, err := checks.FeatureGate(raw, r.values.Get("payload-version"))
	if err != nil {
		return fmt.Errorf("file %s: %w", gate, err)
	}
	if err := os.WriteFile(r.path(gate), complete, 0o600); err != nil {
		return err
	}
	return r.copyAssets("bootstrap", filepath.Join(r.values.Get("asset-output-dir"), "manifests"))
}

func (r *runner) renderAuthentication() error {
	return r.copyAssets("authentication", r.values.Get("asset-output-dir"))
}

// Assets is where an image has the manifests that its program writes.
const Assets = "/usr/share/standin"

func (r *runner) copyAssets(name, to string) error {
	if err := os.MkdirAll(r.path(to), 0o755); err != nil { // another container of the pod reads it
		return err
	}
	files, err := filepath.Glob(r.path(filepath.Join(Assets, name, "*.yaml")))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("the image has no manifests in %s/%s", Assets, name)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.path(filepath.Join(to, filepath.Base(f))), raw, 0o644); err != nil { // as above
			return err
		}
	}
	return nil
}
