// Command node is what a worker runs of Kubernetes, kubelet and kube-proxy, in one static binary, chosen by the name it is called by.
//
// It is apart from the bundle of all components because every worker fetches, unpacks and holds copies of it: 87 MB instead of 135,
// and each process needs some MiB less for what is merely linked.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	default:
		fmt.Fprintf(os.Stderr, "node: no program %q; call it as kubelet or kube-proxy\n", name)
		os.Exit(2)
	}
}
