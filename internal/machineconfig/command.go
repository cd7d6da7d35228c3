package machineconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/sidecar/kubeapi"
	"hcp.internal/platform/internal/sleep"
)

// Command is `machine-config-daemon`, with the flags of the program of that name in an OpenShift payload.
func Command() *cobra.Command {
	var name, root, kubeconfig, desired string
	start := &cobra.Command{
		Use:     "start",
		Short:   "Change this node to the desired configuration",
		Example: "  machine-config-daemon start --node-name=worker-1 --root-mount=/rootfs --desired-configmap=/etc/machine-config-daemon-desired-config",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &Daemon{
				Node: &apiNode{name: name, kubeconfig: kubeconfig}, Root: root, Desired: desired,
				Run: func() (string, error) { return runOfMachine("/proc") },
				// Process 1 of the machine, whose process IDs this pod shares; as Ctrl-Alt-Del it restarts in an orderly way.
				Restart: func() error { return syscall.Kill(1, syscall.SIGINT) },
				Sleep:   func(ctx context.Context) error { return sleep.For(ctx, pause) },
				Say:     func(format string, args ...any) { fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...) },
			}
			if err := d.Start(cmd.Context()); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		},
	}
	f := start.Flags()
	f.StringVar(&name, "node-name", "", "name of the Node that this runs on")
	f.StringVar(&root, "root-mount", "/rootfs", "where the node's root folder is mounted")
	f.StringVar(&kubeconfig, "kubeconfig", "/var/lib/kubelet/kubeconfig", "kubeconfig of the node")
	f.StringVar(&desired, "desired-configmap", "/etc/machine-config-daemon-desired-config", "folder with the desired configuration: files config and hash")
	if err := start.MarkFlagRequired("node-name"); err != nil {
		panic(err) // a misspelt flag above
	}
	cmd := &cobra.Command{Use: "machine-config-daemon", Short: "Change a node in place", Example: start.Example, Args: cobra.NoArgs}
	cmd.AddCommand(start)
	return cmd
}

// runSeparator is between the two parts of what runOfMachine returns.
const runSeparator = "/"

// runOfMachine is the kernel's boot ID and when process 1 began. Either alone won't do: a machine that is a pod restarts without the kernel, and elsewhere process
// 1 begins as long after the kernel at every boot, give or take a few hundredths of a second.
func runOfMachine(proc string) (string, error) {
	data, err := os.ReadFile(filepath.Join(proc, "1/stat"))
	if err != nil {
		return "", fmt.Errorf("reading when the machine began: %w", err)
	}
	boot, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("reading when the machine began: %w", err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])) // the name before may hold anything
	if len(fields) < 20 {
		return "", errors.New("reading when the machine began: /proc/1/stat is malformed")
	}
	return strings.TrimSpace(string(boot)) + runSeparator + fields[19], nil
}

// apiNode speaks to the API server as the node itself. Its certificate may be renewed meanwhile, so it is read every time.
type apiNode struct{ name, kubeconfig string }

func (n *apiNode) path() string { return "/api/v1/nodes/" + n.name }

func (n *apiNode) Annotations(ctx context.Context) (map[string]string, error) {
	c, err := kubeapi.FromKubeconfig(n.kubeconfig)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var node struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	err = c.Get(ctx, n.path(), &node)
	return node.Metadata.Annotations, err
}

func (n *apiNode) Annotate(ctx context.Context, annotations map[string]string) error {
	c, err := kubeapi.FromKubeconfig(n.kubeconfig)
	if err != nil {
		return err
	}
	defer c.Close()
	patch, err := patchOf(n.name, annotations)
	if err != nil {
		return err
	}
	return c.Apply(ctx, n.path(), owner, patch)
}
