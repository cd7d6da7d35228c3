package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Where the client certificate of etcd is in the namespace of a control plane, and in which files the Job has it.
const (
	ClientSecret = "etcd-client-tls"
	CAConfigMap  = "etcd-ca"

	CertFile = "etcd-client.crt"
	KeyFile  = "etcd-client.key"
	CAFile   = "ca.crt"
)

// fetchTimeout bounds two reads.
const fetchTimeout = time.Minute

// Commands are the subcommands. That which uploads is in package upload, since it needs the libraries of clouds.
func Commands() []*cobra.Command {
	return []*cobra.Command{fetchCommand(), snapshotCommand()}
}

func fetchCommand() *cobra.Command {
	var namespace, dir, secret, configMap string
	cmd := &cobra.Command{
		Use:     "fetch-etcd-certs",
		Short:   "Write the client certificate of a control plane's etcd into a folder",
		Example: "  control-plane-operator fetch-etcd-certs --hcp-namespace clusters-demo --output-dir /etc/etcd-certs",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("finding the management cluster: %w", err)
			}
			c, err := client.New(cfg, client.Options{})
			if err != nil {
				return fmt.Errorf("connecting to the management cluster: %w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), fetchTimeout)
			defer cancel()
			return fetch(ctx, c, namespace, secret, configMap, dir)
		},
	}
	f := cmd.Flags()
	f.StringVar(&namespace, "hcp-namespace", "", "namespace of the control plane")
	f.StringVar(&dir, "output-dir", "", "folder to write into")
	f.StringVar(&secret, "etcd-client-secret", ClientSecret, "Secret with the client certificate")
	f.StringVar(&configMap, "etcd-ca-configmap", CAConfigMap, "ConfigMap with the certificate authority")
	for _, name := range []string{"hcp-namespace", "output-dir"} {
		_ = cmd.MarkFlagRequired(name) // only fails for a flag that isn't there
	}
	return cmd
}

// fetch writes three files, which only their owner can read.
func fetch(ctx context.Context, c client.Reader, namespace, secret, configMap, dir string) error {
	tls := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secret}, tls); err != nil {
		return fmt.Errorf("reading Secret %s/%s: %w", namespace, secret, err)
	}
	ca := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: configMap}, ca); err != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, configMap, err)
	}
	files := map[string][]byte{CertFile: tls.Data[CertFile], KeyFile: tls.Data[KeyFile], CAFile: []byte(ca.Data[CAFile])}
	var problems []error
	for _, f := range []struct{ object, key string }{{"Secret " + namespace + "/" + secret, CertFile}, {"Secret " + namespace + "/" + secret, KeyFile}, {"ConfigMap " + namespace + "/" + configMap, CAFile}} {
		if len(files[f.key]) == 0 {
			problems = append(problems, fmt.Errorf("%s has no key %s", f.object, f.key))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}
