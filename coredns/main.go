// Command coredns is CoreDNS with only the plugins that a cluster's DNS needs.
//
// The stock binary also links DNS servers and clients of several clouds. Leaving them out halves its size and its
// start-up memory, which counts because every hosted cluster runs one too.
package main

import (
	"github.com/coredns/coredns/coremain"

	// Each plugin registers itself; the order in which they run is CoreDNS' own.
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() {
	coremain.Run()
}
