// Package version says which versions of the CLI and of the installed operator are in use.
package version

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/exit"
	"hcp.internal/platform/internal/cli/install"
	"hcp.internal/platform/internal/cli/output"
	"hcp.internal/platform/internal/version"
)

// The operator publishes in this ConfigMap of its namespace which releases it can host, its own commit and its version.
const (
	supportedVersionsConfigMap = "supported-versions"
	supportedVersionsKey       = "supported-versions"
	serverCommitKey            = "server-version"
)

// Report is what the command prints.
type Report struct {
	Client version.Build `json:"client"`
	Server *Server       `json:"server,omitempty"` // nil when it wasn't asked
	Skew   *version.Skew `json:"skew,omitempty"`   // nil without a server
	// Management is the management cluster; nil when it wasn't asked, or didn't answer.
	Management *Management `json:"management,omitempty"`
	// ControlPlaneOperators are those of hosted clusters, by their versions, oldest first; nil when they weren't asked for, or may not be listed.
	ControlPlaneOperators []ControlPlaneOperators `json:"controlPlaneOperators,omitempty"`
}

// Management is the Kubernetes that the operator runs on.
type Management struct {
	Version string       `json:"version"` // "v1.36.3"
	Skew    version.Skew `json:"skew"`
}

// Server is the installed operator.
type Server struct {
	Version           string   `json:"version,omitempty"` // semantic, without "v"; empty for an operator of before it was published
	Commit            string   `json:"commit"`
	SupportedVersions []string `json:"supportedVersions"` // minors of releases, newest first
}

// Command is `hypershift version`.
func Command() *cobra.Command {
	var flags connect.Flags
	var format output.Format
	var clientOnly, commitOnly, requireServer bool
	namespace := install.DefaultNamespace
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the CLI and of the installed operator",
		Long: `Print the version of this program and of the operator that is installed in the management cluster, the minor versions of the
releases that the operator can host, and whether the two are compatible: they may be one minor version apart, in either direction. The
management cluster needs Kubernetes  ` + version.OldestManagement + ` or newer, and the control-plane-operators of hosted clusters may be one minor version behind the operator.

Ends with exit code 3 when versions are too far apart.`,
		Example: `  hypershift version
  hypershift version -o json
  hypershift version --client-only --commit-only`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if commitOnly {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Commit())
				return err
			}
			report := Report{Client: ThisClient()}
			if !clientOnly {
				server, err := server(cmd.Context(), flags, namespace)
				if err != nil && requireServer {
					return err
				}
				if err != nil {
					// The client's version is worth printing without a cluster.
					fmt.Fprintf(cmd.ErrOrStderr(), "no server version: %v\n", err)
				}
				report.judge(server)
				report.Management = management(flags)
				if server != nil {
					report.ControlPlaneOperators = controlPlaneOperators(cmd.Context(), flags, server.Version)
				}
			}
			if err := report.print(cmd.OutOrStdout(), format); err != nil {
				return err
			}
			if report.Skew != nil && report.Skew.Verdict == version.Unsupported {
				return exit.With(exit.Skew, errors.New(report.Skew.Message))
			}
			if m := report.Management; m != nil && m.Skew.Verdict == version.Unsupported {
				return exit.With(exit.Skew, errors.New(m.Skew.Message))
			}
			for _, o := range report.ControlPlaneOperators {
				if o.Skew.Verdict == version.Unsupported {
					return exit.With(exit.Skew, errors.New(o.Skew.Message))
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client-only", false, "Don't contact the management cluster")
	cmd.Flags().BoolVar(&requireServer, "require-server", false, "Fail if the operator doesn't report its version: it isn't installed, or isn't running yet")
	cmd.Flags().BoolVar(&commitOnly, "commit-only", false, "Print only the commit of the CLI")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", namespace, "Namespace of the operator")
	flags.AddFlags(cmd.Flags())
	format.AddFlag(cmd)
	return cmd
}

// ThisClient is this binary.
func ThisClient() version.Build { return version.This() }

// management asks the management cluster for its version; nil when it doesn't answer, which the report has said already.
func management(flags connect.Flags) *Management {
	cfg, err := flags.RESTConfig()
	if err != nil {
		return nil
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil
	}
	info, err := d.ServerVersion()
	if err != nil {
		return nil
	}
	return &Management{Version: info.GitVersion, Skew: version.CompareManagement(info.GitVersion)}
}

// judge adds what was found of a server; nil: nothing.
func (r *Report) judge(server *Server) {
	if server == nil {
		return
	}
	skew := version.Compare(r.Client, version.Build{Version: server.Version, Commit: server.Commit})
	r.Server, r.Skew = server, &skew
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
	return &Server{Version: data[version.ServerKey], Commit: data[serverCommitKey], SupportedVersions: supported.Versions}, nil
}

func (r Report) print(w io.Writer, format output.Format) error {
	if format != output.Text {
		return format.Value(w, r)
	}
	fmt.Fprintf(w, "Client Version: %s\n", r.Client)
	if r.Management != nil {
		fmt.Fprintf(w, "Management Kubernetes: %s: %s\n", r.Management.Version, r.Management.Skew.Verdict)
	}
	if r.Server == nil {
		return nil
	}
	fmt.Fprintf(w, "Server Version: %s\n", r.Server)
	for _, kind := range kinds(r.Server.SupportedVersions) {
		fmt.Fprintf(w, "Server Supports %s: %s\n", kind.name, strings.Join(kind.minors, ", "))
	}
	for _, o := range r.ControlPlaneOperators {
		fmt.Fprintf(w, "Control Plane Operator: %s\n", o)
	}
	_, err := fmt.Fprintf(w, "Version Skew: %s: %s\n", r.Skew.Verdict, r.Skew.Message)
	return err
}

// String is for people: "v1.2.3, commit 0123456789ab".
func (s *Server) String() string {
	if s.Version == "" {
		return "commit " + s.Commit
	}
	return "v" + s.Version + ", commit " + s.Commit
}

// kind are the minors of one kind of release.
type kind struct {
	name   string
	minors []string
}

// kinds sorts minors by what they are of: Kubernetes is at major version 1, OpenShift has been past it since its own began to count.
func kinds(minors []string) []kind {
	kubernetes, openshift := kind{name: "Kubernetes"}, kind{name: "OpenShift"}
	for _, m := range minors {
		if strings.HasPrefix(m, "1.") {
			kubernetes.minors = append(kubernetes.minors, m)
		} else {
			openshift.minors = append(openshift.minors, m)
		}
	}
	return slices.DeleteFunc([]kind{kubernetes, openshift}, func(k kind) bool { return len(k.minors) == 0 })
}
