package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hcp.internal/platform/internal/cli/outputfile"
)

// mergedFile is the file that --merge writes: the first of $KUBECONFIG, or ~/.kube/config. Where it is a link, what it leads to.
func mergedFile() (string, error) {
	file := clientcmd.NewDefaultPathOptions().GetDefaultFilename()
	real, err := outputfile.Follow(file)
	if err != nil {
		return "", fmt.Errorf("--merge: %w", err)
	}
	return real, nil
}

// mergeInto adds the contexts of a kubeconfig to a file, under the names that they have in it, and replaces those of the same names. The current context
// stays, unless there was none. Everything else in the file stays as it is. It returns the names of the contexts.
func mergeInto(file string, raw []byte) ([]string, error) {
	add, err := clientcmd.Load(raw)
	if err != nil {
		return nil, errors.New("--merge: the kubeconfig of the hosted cluster can't be parsed") // the parser's error may quote a key
	}
	config, err := clientcmd.LoadFromFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		config = clientcmdapi.NewConfig()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, fmt.Errorf("--merge: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("--merge: %s is not a kubeconfig: repair or move it first", file)
	}
	var names []string
	for name, c := range add.Contexts {
		config.Contexts[name], config.Clusters[c.Cluster], config.AuthInfos[c.AuthInfo] = c, add.Clusters[c.Cluster], add.AuthInfos[c.AuthInfo]
		names = append(names, name)
	}
	if config.Contexts[config.CurrentContext] == nil {
		config.CurrentContext = add.CurrentContext
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("--merge: %w", err)
	}
	return names, outputfile.Write(file, out, outputfile.Private)
}

// renamed is a kubeconfig of one cluster whose context, cluster and user bear its name: in a file with others, "admin" would be anybody's.
func renamed(name string, raw []byte) ([]byte, error) {
	out := clientcmdapi.NewConfig()
	if err := Merge(out, name, raw); err != nil {
		return nil, err
	}
	return clientcmd.Write(*out)
}
