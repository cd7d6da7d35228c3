package tokenminter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hcp.internal/platform/internal/sidecar/kubeapi"
)

// kubeconfigKey is the key of a kubeconfig in a Secret of the control plane namespace.
const kubeconfigKey = "kubeconfig"

const defaultTokenFile = "/var/run/secrets/openshift/serviceaccount/token"

// Command is `hcp-sidecar token-minter`.
func Command() *cobra.Command {
	var (
		m                          = Minter{Now: time.Now}
		kubeconfig, secretNS, name string
		once                       bool
	)
	cmd := &cobra.Command{
		Use:   "token-minter",
		Short: "Keep a file with a fresh ServiceAccount token of the hosted cluster",
		Example: `  hcp-sidecar token-minter --token-audience=openshift --service-account-namespace=kube-system \
    --service-account-name=cloud-controller-manager --kubeconfig=/etc/kubernetes/kubeconfig

  # an init container: write one token and exit
  hcp-sidecar token-minter --oneshot --token-audience=openshift --service-account-namespace=kube-system \
    --service-account-name=cloud-controller-manager --kubeconfig-secret-namespace=clusters-demo --kubeconfig-secret-name=admin-kubeconfig`,
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (kubeconfig == "") == (name == "") {
				return errors.New("give either --kubeconfig or --kubeconfig-secret-name with --kubeconfig-secret-namespace")
			}
			if name != "" && secretNS == "" {
				return errors.New("--kubeconfig-secret-namespace must be given with --kubeconfig-secret-name")
			}
			m.Log = cmd.OutOrStdout()
			m.Connect = func(ctx context.Context) (*kubeapi.Client, error) {
				if kubeconfig != "" {
					return kubeapi.FromKubeconfig(kubeconfig)
				}
				return connectBySecret(ctx, secretNS, name)
			}
			err := m.Run(cmd.Context(), once)
			if errors.Is(err, context.Canceled) && !once {
				return nil // told to stop
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&m.Audience, "token-audience", "", "audience of the token")
	f.StringVar(&m.Namespace, "service-account-namespace", "", "namespace of the ServiceAccount in the hosted cluster")
	f.StringVar(&m.Name, "service-account-name", "", "name of the ServiceAccount, created when absent")
	f.StringVar(&m.File, "token-file", defaultTokenFile, "file that gets the token")
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file of the hosted cluster")
	f.StringVar(&secretNS, "kubeconfig-secret-namespace", "", "namespace of a Secret with the hosted cluster's kubeconfig, in the cluster this runs in")
	f.StringVar(&name, "kubeconfig-secret-name", "", "name of that Secret")
	f.BoolVar(&once, "oneshot", false, "exit after the first token")
	for _, required := range []string{"token-audience", "service-account-namespace", "service-account-name"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err) // a misspelt flag above
		}
	}
	cmd.AddCommand(checkCommand())
	return cmd
}

// checkCommand is the probe of the sidecar: images have no `test` program.
func checkCommand() *cobra.Command {
	file := defaultTokenFile
	cmd := &cobra.Command{
		Use:          "check",
		Short:        "Exit 0 when the token file is there (for a startup probe)",
		Example:      "  hcp-sidecar token-minter check --token-file=" + defaultTokenFile,
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			info, err := os.Stat(file)
			if err != nil {
				return fmt.Errorf("looking for the token: %w", err)
			}
			if info.Size() == 0 {
				return fmt.Errorf("looking for the token: %s is empty", file)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "token-file", file, "file to look for")
	return cmd
}

// connectBySecret reads the hosted cluster's kubeconfig from a Secret of the cluster that the pod runs in.
func connectBySecret(ctx context.Context, namespace, name string) (*kubeapi.Client, error) {
	management, err := kubeapi.FromKubeconfig("")
	if err != nil {
		return nil, err
	}
	defer management.Close()
	var secret struct {
		Data map[string][]byte `json:"data"`
	}
	path := "/api/v1/namespaces/" + url.PathEscape(namespace) + "/secrets/" + url.PathEscape(name)
	if err := management.Get(ctx, path, &secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, name, err)
	}
	if len(secret.Data[kubeconfigKey]) == 0 {
		return nil, fmt.Errorf("reading Secret %s/%s: it has no key %q", namespace, name, kubeconfigKey)
	}
	return kubeapi.FromKubeconfigBytes(secret.Data[kubeconfigKey])
}
