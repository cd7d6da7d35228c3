// Package featuregates stores the FeatureGate that a payload's render tool made, in a ConfigMap where components of the control plane find it.
package featuregates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/sidecar/kubeapi"
)

const (
	// key of the ConfigMap, and its annotation with the version that the FeatureGate was rendered for.
	key            = "feature-gate.yaml"
	payloadVersion = "hypershift.openshift.io/payload-version"
	fieldOwner     = "sync-fg-configmap"
	// maxFile bounds what is read: a ConfigMap holds no more.
	maxFile = 1 << 20

	interval = time.Second
)

// options are the flags.
type options struct {
	file, namespace, name, version, kubeconfig string
	timeout                                    time.Duration
}

// Command is `hcp-sidecar sync-fg-configmap`.
func Command() *cobra.Command {
	o := options{file: "/manifests/99_feature-gate.yaml", namespace: os.Getenv("NAMESPACE"), name: "feature-gate", version: os.Getenv("PAYLOAD_VERSION"), timeout: time.Minute}
	cmd := &cobra.Command{
		Use:   "sync-fg-configmap",
		Short: "Store a rendered FeatureGate in a ConfigMap of the management cluster",
		Example: `  hcp-sidecar sync-fg-configmap --namespace clusters-demo --payload-version 4.22.0
  hcp-sidecar sync-fg-configmap --file gate.yaml --namespace clusters-demo --name feature-gate --kubeconfig ~/.kube/config`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
			defer cancel()
			return o.run(ctx, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "file", o.file, "file with the FeatureGate, in YAML")
	f.StringVar(&o.namespace, "namespace", o.namespace, "namespace of the ConfigMap (default $NAMESPACE)")
	f.StringVar(&o.name, "name", o.name, "name of the ConfigMap")
	f.StringVar(&o.version, "payload-version", o.version, "version that the FeatureGate is of (default $PAYLOAD_VERSION)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster; empty: that of the pod")
	f.DurationVar(&o.timeout, "timeout", o.timeout, "give up after this long")
	return cmd
}

func (o options) run(ctx context.Context, log io.Writer) error {
	object, err := o.object()
	if err != nil {
		return err
	}
	path := "/api/v1/namespaces/" + url.PathEscape(o.namespace) + "/configmaps/" + url.PathEscape(o.name)
	for {
		err := o.store(ctx, path, object)
		if err == nil {
			fmt.Fprintf(log, "stored %s in ConfigMap %s/%s\n", o.file, o.namespace, o.name)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("storing ConfigMap %s/%s: %w", o.namespace, o.name, err)
		case <-time.After(interval):
		}
	}
}

func (o options) store(ctx context.Context, path string, object []byte) error {
	client, err := kubeapi.FromKubeconfig(o.kubeconfig)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Apply(ctx, path, fieldOwner, object)
}

// object is the ConfigMap.
func (o options) object() ([]byte, error) {
	switch {
	case o.namespace == "":
		return nil, errors.New("--namespace must name the control plane namespace")
	case o.name == "":
		return nil, errors.New("--name must name the ConfigMap")
	}
	f, err := os.Open(o.file)
	if err != nil {
		return nil, fmt.Errorf("reading the FeatureGate: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the FeatureGate: %w", err)
	}
	if len(raw) > maxFile {
		return nil, fmt.Errorf("--file %s is longer than %d bytes: it must hold one FeatureGate", o.file, maxFile)
	}
	gate := struct{ Kind string }{}
	if err := yaml.Unmarshal(raw, &gate); err != nil || gate.Kind != "FeatureGate" {
		return nil, fmt.Errorf("--file %s holds no FeatureGate in YAML", o.file)
	}
	meta := map[string]any{"namespace": o.namespace, "name": o.name}
	if o.version != "" {
		meta["annotations"] = map[string]string{payloadVersion: o.version}
	}
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": map[string]string{key: string(raw)}})
}
