package nodetrust

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"hcp.internal/platform/internal/atomicfile"
	"hcp.internal/platform/internal/bounded"
	"hcp.internal/platform/internal/contract/nodetrust"
)

const (
	// maxFile bounds what is read of a file.
	maxFile = 1 << 20
	// mark in the kubelet's folder says that its files are newer than its process.
	mark = ".node-trust-restart"
	// Files of a node, in its two folders.
	kubeletCA, kubeconfig, bootCA = "kubelet-ca.crt", "kubeconfig", "ca.crt"
)

// keeper keeps one node's files.
type keeper struct {
	// trust is the folder with what is wanted, hash what it is to be; the others are the node's folders.
	trust, hash, kubernetesDir, kubeletDir, proc string
	// verify says why an API server that a kubeconfig leads to is not accepted by an authority; errUnreachable: nobody knows.
	verify func(ctx context.Context, server, serverName string, roots *x509.CertPool) error
	// restart has the kubelet start anew, and returns when it has.
	restart func(ctx context.Context, proc string) error
	log     io.Writer
}

// change is one file to replace.
type change struct {
	path    string
	content []byte
	mode    fs.FileMode
}

// keep makes the node's files what they are to be. nil: the kubelet runs with them.
func (k keeper) keep(ctx context.Context) error {
	root, kubelet, err := k.wanted()
	if err != nil {
		return err
	}
	changes, err := k.plan(ctx, root, kubelet)
	if err != nil {
		return err
	}
	marked := filepath.Join(k.kubeletDir, mark)
	_, err = os.Stat(marked)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("looking for %s: %w", marked, err)
	}
	if len(changes) == 0 && err != nil {
		return nil //nolint:nilerr // because no mark is there
	}
	if err := atomicfile.Write(marked, []byte("the kubelet is to start anew\n"), 0o600); err != nil {
		return err
	}
	for _, c := range changes {
		if err := atomicfile.Write(c.path, c.content, c.mode); err != nil {
			return err
		}
		k.say("wrote %s", c.path)
	}
	if err := k.restart(ctx, k.proc); err != nil {
		return fmt.Errorf("starting the kubelet anew: %w", err)
	}
	k.say("the kubelet was started anew")
	if err := os.Remove(marked); err != nil {
		return fmt.Errorf("removing %s: %w", marked, err)
	}
	return nil
}

// wanted reads what the hosted cluster gives. A kubelet of the same node brings new content of a ConfigMap some time after it brings the pod.
func (k keeper) wanted() (root, kubelet []byte, err error) {
	if root, err = read(filepath.Join(k.trust, nodetrust.RootKey)); err != nil {
		return nil, nil, fmt.Errorf("reading what is to be trusted: %w", err)
	}
	if kubelet, err = read(filepath.Join(k.trust, nodetrust.KubeletKey)); err != nil {
		return nil, nil, fmt.Errorf("reading what is to be trusted: %w", err)
	}
	if have := nodetrust.Hash(root, kubelet); have != k.hash {
		return nil, nil, fmt.Errorf("%s holds %s, and %s is waited for", k.trust, have, k.hash)
	}
	for _, bundle := range [][]byte{root, kubelet} {
		if !x509.NewCertPool().AppendCertsFromPEM(bundle) {
			return nil, nil, fmt.Errorf("%s has a file without certificates; the kubelet keeps what it has", k.trust)
		}
	}
	return root, kubelet, nil
}

// plan lists the files that differ. It refuses authorities by which the kubelet would not accept the API server that it talks to.
func (k keeper) plan(ctx context.Context, root, kubelet []byte) ([]change, error) {
	var changes []change
	add := func(path string, want []byte, optional bool) error {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) && optional {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking at a file of the kubelet: %w; this node was not made by the hosted cluster's user data, and its files have to be replaced by hand", err)
		}
		have, err := read(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, want) {
			changes = append(changes, change{path: path, content: want, mode: info.Mode().Perm()})
		}
		return nil
	}
	if err := errors.Join(
		add(filepath.Join(k.kubernetesDir, kubeletCA), kubelet, false),
		add(filepath.Join(k.kubernetesDir, bootCA), root, true), // on nodes of OpenShift payloads
	); err != nil {
		return nil, err
	}
	for _, file := range []struct {
		path     string
		optional bool
	}{{filepath.Join(k.kubeletDir, kubeconfig), false}, {filepath.Join(k.kubernetesDir, kubeconfig), true}} {
		have, err := read(file.path)
		if errors.Is(err, fs.ErrNotExist) && file.optional {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the kubelet's kubeconfig: %w", err)
		}
		want, err := k.trusting(ctx, have, root)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.path, err)
		}
		if want != nil {
			if err := add(file.path, want, file.optional); err != nil {
				return nil, err
			}
		}
	}
	return changes, nil
}

// trusting is a kubeconfig with other authorities; nil when it has them. What else is in it stays as it is.
func (k keeper) trusting(ctx context.Context, have, root []byte) ([]byte, error) {
	var config map[string]any
	if err := yaml.Unmarshal(have, &config); err != nil {
		return nil, errors.New("it is no kubeconfig") // the parser's words may quote a token
	}
	clusters, _ := config["clusters"].([]any)
	if len(clusters) == 0 {
		return nil, errors.New("it is no kubeconfig: it has no clusters")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	wanted := base64.StdEncoding.EncodeToString(root)
	changed := false
	for _, c := range clusters {
		entry, _ := c.(map[string]any)
		cluster, _ := entry["cluster"].(map[string]any)
		if cluster == nil {
			return nil, errors.New("it is no kubeconfig: it has a cluster without content")
		}
		if cluster["certificate-authority-data"] == wanted {
			continue
		}
		server, _ := cluster["server"].(string)
		serverName, _ := cluster["tls-server-name"].(string)
		if err := k.verify(ctx, server, serverName, roots); errors.Is(err, errUnreachable) {
			k.say("a kubeconfig is changed unchecked: %v", err)
		} else if err != nil {
			return nil, fmt.Errorf("its API server is not accepted by the authorities that are to be trusted, so the kubelet keeps those that it has: %w", err)
		}
		changed = true
		delete(cluster, "certificate-authority")
		cluster["certificate-authority-data"] = wanted
	}
	if !changed {
		return nil, nil
	}
	want, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	return want, nil
}

func (k keeper) say(format string, args ...any) {
	if k.log != nil {
		fmt.Fprintf(k.log, format+"\n", args...)
	}
}

func read(path string) ([]byte, error) { return bounded.ReadFile(path, maxFile) }
