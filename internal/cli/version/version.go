// Package version says which versions of the CLI and of the installed operator are in use.
package version

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/version"
)

// DefaultNamespace is where the operator runs unless told otherwise.
const DefaultNamespace = "hypershift"

// The operator publishes in this ConfigMap of its namespace which releases it can host, and its own commit.
const (
	supportedVersionsConfigMap = "supported-versions"
	supportedVersionsKey       = "supported-versions"
	serverVersionKey           = "server-version"
)

// Report is what the command prints.
type Report struct {
	Client Client  `json:"client"`
	Server *Server `json:"server,omitempty"` // nil when it wasn't asked
}

// Client is this binary.
type Client struct {
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Server is the installed operator.
type Server struct {
	Commit            string   `json:"commit"`
	SupportedVersions []string `json:"supportedVersions"` // of releases, newest first
}

// Command is `hypershift version`.
func Command() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	var clientOnly, commitOnly bool
	namespace := DefaultNamespace
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the CLI and of the installed operator",
		Example: `  hypershift version
  hypershift version --client-only -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if commitOnly {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Commit())
				return err
			}
			report := Report{Client: ThisClient()}
			if !clientOnly {
				server, err := server(cmd.Context(), flags, namespace)
				if err != nil {
					// The client's version is worth printing without a cluster.
					fmt.Fprintf(cmd.ErrOrStderr(), "no server version: %v\n", err)
				}
				report.Server = server
			}
			return report.print(cmd.OutOrStdout(), format)
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client-only", false, "Don't ask the management cluster")
	cmd.Flags().BoolVar(&commitOnly, "commit-only", false, "Print nothing but the commit of the CLI")
	cmd.Flags().StringVar(&namespace, "namespace", namespace, "Namespace of the operator")
	flags.AddFlags(cmd.Flags())
	format.AddFlag(cmd)
	return cmd
}

// ThisClient is this binary.
func ThisClient() Client {
	return Client{Commit: version.Commit(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

func server(ctx context.Context, flags connect.Flags, namespace string) (*Server, error) {
	c, err := flags.Client()
	if err != nil {
		return nil, err
	}
	return OfServer(ctx, c, namespace)
}

// OfServer asks for the version of the operator that is installed in a namespace.
func OfServer(ctx context.Context, c client.Client, namespace string) (*Server, error) {
	cm := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: supportedVersionsConfigMap}, cm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("namespace %s has no ConfigMap %s: the operator isn't installed there, or hasn't started yet", namespace, supportedVersionsConfigMap)
		}
		return nil, err
	}
	return parse(cm.Data)
}

// parse reads the operator's ConfigMap.
func parse(data map[string]string) (*Server, error) {
	var supported struct {
		Versions []string `json:"versions"`
	}
	if err := json.Unmarshal([]byte(data[supportedVersionsKey]), &supported); err != nil {
		return nil, fmt.Errorf("parsing key %s of ConfigMap %s: %w", supportedVersionsKey, supportedVersionsConfigMap, err)
	}
	return &Server{Commit: data[serverVersionKey], SupportedVersions: supported.Versions}, nil
}

func (r Report) print(w io.Writer, format output.Format) error {
	if format != output.Text {
		return format.Value(w, r)
	}
	fmt.Fprintf(w, "Client Version: %s (%s, %s)\n", r.Client.Commit, r.Client.Go, r.Client.Platform)
	if r.Server != nil {
		fmt.Fprintf(w, "Server Version: %s\nServer Supports Releases: %s\n", r.Server.Commit, strings.Join(r.Server.SupportedVersions, ", "))
	}
	return nil
}
