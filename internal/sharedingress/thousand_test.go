package sharedingress

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// TestThousandClusters has a thousand API servers behind one address. Each is reached by its name, while others come and go; what the endpoint adds to a new connection is printed.
func TestThousandClusters(t *testing.T) {
	const clusters, clients, measured = 1000, 16, 100
	g, w := NewWithT(t), newWorld(t)
	var list []hyperv1.HostedCluster
	for i := range clusters {
		hc := cluster(i)
		list = append(list, hc)
		w.serve("clusters-"+hc.Name+"/kube-apiserver", hc.Spec.KubeAPIServerDNSName)
	}
	for i := range 20 {
		w.servers[fmt.Sprintf("clusters-c%d/kube-apiserver", clusters+i)] = "127.0.0.1:1"
	}
	p, names, _ := w.start(limits())
	begin := time.Now()
	p.Use(w.table(list, nil))
	table := time.Since(begin)

	next := make(chan int)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for i := range next {
				got, err := w.get(list[i].Spec.KubeAPIServerDNSName, "/", to(names))
				if want := "clusters-" + list[i].Name + "/kube-apiserver"; err != nil || got != want {
					t.Errorf("%s answers for %s, %v", got, want, err)
				}
			}
		})
	}
	changes := 0
	for i := range clusters {
		next <- i
		if i%10 == 0 { // one of those that come and go does
			now := slices.Clone(list)
			for k := range i / 10 % 20 {
				now = append(now, cluster(clusters+k))
			}
			p.Use(w.table(now, p.Table()))
			changes++
		}
	}
	close(next)
	all.Wait()

	median := func(address func(i int) string) time.Duration {
		var took []time.Duration
		for i := range measured {
			k := i * (clusters / measured)
			begin := time.Now()
			_, err := w.get(list[k].Spec.KubeAPIServerDNSName, "/", to(address(k)))
			g.Expect(err).NotTo(HaveOccurred())
			took = append(took, time.Since(begin))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	direct := median(func(i int) string { return w.servers["clusters-"+list[i].Name+"/kube-apiserver"] })
	proxied := median(func(int) string { return names })
	t.Logf("%d clusters, %d changes, no connection broken; a table is made in %s; a connection with a request: %s directly, %s through the endpoint, %s more",
		clusters, changes, table.Round(time.Microsecond), direct.Round(time.Microsecond), proxied.Round(time.Microsecond), (proxied - direct).Round(time.Microsecond))
}
