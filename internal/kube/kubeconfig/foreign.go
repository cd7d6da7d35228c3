package kubeconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ErrNone is returned for what is no kubeconfig. The parser's own message is left out, since it may quote a key.
var ErrNone = errors.New("it is no kubeconfig")

// Foreign reads somebody else's kubeconfig. Whoever uses a kubeconfig runs the programs that it names, and sends files of its own, such as a key or a token,
// to whatever server it names. So credentials have to be in the kubeconfig itself, else an error names the user of it that has others.
func Foreign(raw []byte) (*clientcmdapi.Config, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, ErrNone
	}
	for _, name := range slices.Sorted(maps.Keys(config.AuthInfos)) {
		if user := config.AuthInfos[name]; user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "" {
			return nil, fmt.Errorf("user %.100q has credentials that a program or a file gives: put a token or a certificate into the kubeconfig", name)
		}
	}
	return config, nil
}
