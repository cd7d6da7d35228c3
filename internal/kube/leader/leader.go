// Package leader holds the leases of our processes.
package leader

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Times of every lease of ours. The process that holds one gives up after RenewDeadline without the API server, and ends; another takes it up after
// Duration. So an API server may be away for more than a minute and a half, as it is when its machine restarts, and no operator of the fleet starts anew,
// which would be all of them at once and just when the API server is back. What it costs: an operator whose node vanishes is replaced some two minutes
// later. One that ends in order gives its lease back, and one that is killed and started in the same pod goes on with it.
//
// They are variables for tests of processes, which can't wait for minutes.
var (
	Duration      = 137 * time.Second
	RenewDeadline = 107 * time.Second
	RetryPeriod   = 26 * time.Second
)

// attempt is how long a request for the lease may take. One that is lost in the network must not use up the time of those that would succeed.
const attempt = 10 * time.Second

// Lock is held under the name of the pod and not under a random one: a container that was killed and started again in the same pod goes
// on at once instead of waiting for its own lease to run out.
//
// Without the name of a pod it is that of the host, which in a container is the pod's; outside of one it is not unique, and something
// random is added.
func Lock(cfg *rest.Config, namespace, name, pod string) (resourcelock.Interface, error) {
	identity, err := identity(pod, os.Hostname, os.Getenv("KUBERNETES_SERVICE_HOST") != "")
	if err != nil {
		return nil, err
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: identity}, cfg, 2*attempt) // half of it is for one request
	if err != nil {
		return nil, fmt.Errorf("setting up leader election: %w", err)
	}
	return lock, nil
}

func identity(pod string, hostname func() (string, error), inPod bool) (string, error) {
	if pod != "" {
		return pod, nil
	}
	host, err := hostname()
	if err != nil {
		return "", fmt.Errorf("naming this process for leader election: %w", err)
	}
	if inPod {
		return host, nil
	}
	return host + "_" + string(uuid.NewUUID()), nil
}
