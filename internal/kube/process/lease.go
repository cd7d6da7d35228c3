package process

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Times of every lease of ours. The process that holds one gives up after RenewDeadline without the API server, and ends; another takes it up after
// LeaseDuration. So an API server may be away for more than a minute and a half, as it is when its machine restarts, and no operator of the fleet starts anew,
// which would be all of them at once and just when the API server is back. What it costs: when the node of an operator vanishes, the next Pod
// waits two to four minutes for the lease. One that ends in order gives its lease back, and one that is killed and started in the same pod goes on with it.
//
// They are variables for tests of processes, which can't wait for minutes.
var (
	LeaseDuration = 137 * time.Second
	RenewDeadline = 107 * time.Second
	RetryPeriod   = 26 * time.Second
)

// attempt is how long a request for the lease may take. One that is lost in the network must not use up the time of those that would succeed.
const attempt = 10 * time.Second

// EnvLeaseDuration is the variable of an operator that has standbys: how long its lease lasts, such as "12s". The other times follow from it. Without
// standbys nobody gains by a short one.
const EnvLeaseDuration = "LEASE_DURATION"

// Bounds of EnvLeaseDuration. A shorter lease is lost by chance on a machine that is busy.
const leastLease, mostLease = 5 * time.Second, 10 * time.Minute

// HeedLeaseDuration makes the leases of this process last as long as the value says; an empty one leaves them as they are. It is called before anything
// starts.
func HeedLeaseDuration(value string) error {
	if value == "" {
		return nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < leastLease || d > mostLease {
		return fmt.Errorf("%s is %q: must be a duration from %s to %s, such as 12s", EnvLeaseDuration, value, leastLease, mostLease)
	}
	// As in clients of Kubernetes: whoever has it gives up after two thirds, and has five attempts until then.
	LeaseDuration, RenewDeadline, RetryPeriod = d, d*2/3, d*2/15
	return nil
}

// Lease keeps two processes from working at once.
type Lease struct {
	namespace, name, pod string
	fence                *Fence
}

// NewLease describes a lease in a namespace; empty: that of the pod. pod is the one that this process runs in; empty: the host's name is taken. Nothing
// happens before the manager starts.
func NewLease(namespace, name, pod string) *Lease {
	return &Lease{namespace: namespace, name: name, pod: pod, fence: NewFence(namespace, name, clock.RealClock{})}
}

// Guard returns a copy of the configuration with which nothing can be written once the lease may be another process's; see Fence. NewManager does it
// for its own. Without a lease it returns the configuration itself.
func (l *Lease) Guard(cfg *rest.Config) (*rest.Config, error) {
	if l == nil || l.namespace == "" {
		return cfg, nil
	}
	return l.fence.Attach(cfg)
}

// elect makes the manager wait for the lease. It returns the configuration that the manager has to have.
//
// The lease is given back when the process is told to stop, so that its successor starts at once: the process ends right after its manager does.
func (l *Lease) elect(cfg *rest.Config, o *ctrl.Options) (*rest.Config, error) {
	if l == nil {
		return cfg, nil
	}
	o.LeaderElection, o.LeaderElectionReleaseOnCancel = true, true
	o.LeaderElectionNamespace, o.LeaderElectionID = l.namespace, l.name
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(LeaseDuration), ptr.To(RenewDeadline), ptr.To(RetryPeriod)
	if l.namespace == "" {
		return cfg, nil // controller-runtime looks where the pod is
	}
	cfg, err := l.Guard(cfg)
	if err != nil {
		return nil, err
	}
	lock, err := lock(cfg, l.namespace, l.name, l.pod)
	if err != nil {
		return nil, err
	}
	o.LeaderElectionResourceLockInterface = &honest{Interface: lock, fence: l.fence}
	return cfg, nil
}

// lock is held under the name of the pod and not under a random one: a container that was killed and started again in the same pod goes
// on at once instead of waiting for its own lease to run out.
//
// Without the name of a pod it is that of the host, which in a container is the pod's; outside of one it is not unique, and something
// random is added.
func lock(cfg *rest.Config, namespace, name, pod string) (resourcelock.Interface, error) {
	identity, err := identity(pod, os.Hostname, os.Getenv("KUBERNETES_SERVICE_HOST") != "")
	if err != nil {
		return nil, err
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: identity}, cfg, min(2*attempt, RenewDeadline)) // half of it is for one request
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
