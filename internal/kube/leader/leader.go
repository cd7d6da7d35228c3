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

// Lock is held under the name of the pod and not under a random one: a container that was killed and started again in the same pod goes
// on at once instead of waiting for its own lease to run out.
//
// Without the name of a pod it is that of the host, which in a container is the pod's; outside of one it is not unique, and something
// random is added. renew is how long the holder may take to renew it.
func Lock(cfg *rest.Config, namespace, name, pod string, renew time.Duration) (resourcelock.Interface, error) {
	identity, err := identity(pod, os.Hostname, os.Getenv("KUBERNETES_SERVICE_HOST") != "")
	if err != nil {
		return nil, err
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: identity}, cfg, renew)
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
