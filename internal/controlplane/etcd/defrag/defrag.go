package defrag

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/pause"
	"hcp.internal/platform/internal/pki"
)

const (
	// every is how often members are looked at: a database that is full should be seen soon. It is one request to each.
	every = time.Minute
	// rest is how long an etcd is left alone after it was defragmented, or after it could not be given room.
	rest = 10 * time.Minute
	// settle is how long a member is left alone after it was defragmented; then it is asked every poll, for at most patience, until
	// all are healthy again.
	settle   = 36 * time.Second
	poll     = 2 * time.Second
	patience = time.Minute
	// members of a highly available control plane.
	memberCount = 3
	clientPort  = 2379
)

// Defragmenter is a manager.Runnable of the control-plane-operator.
type Defragmenter struct {
	Reader    client.Reader
	Namespace string
	// Clock tells whether a pause is over.
	Clock clock.PassiveClock
	// Changed, if set, is called when an etcd becomes full or has room again. It must not block.
	Changed func(ctx context.Context)
	// Pauses; tests shorten them.
	every, rest, settle, poll, patience time.Duration
	// connect is replaced by tests.
	connect func(ctx context.Context) (*http.Client, error)

	mu     sync.Mutex
	spaces map[string]Space     // by name of the etcd, as seen last
	last   map[string]time.Time // by name of the etcd: when one of its members was defragmented
}

// New looks after the control plane in a namespace. reader is the manager's.
func New(reader client.Reader, namespace string) *Defragmenter {
	d := &Defragmenter{Reader: reader, Namespace: namespace, Clock: clock.RealClock{}, every: every, rest: rest, settle: settle, poll: poll, patience: patience}
	d.connect = d.withCertificates
	return d
}

// Start implements manager.Runnable. It ends with ctx.
func (d *Defragmenter) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("etcd-defrag")
	ctx = ctrl.LoggerInto(ctx, log)
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		etcds, err := d.etcds(ctx)
		if err == nil {
			d.forget(etcds)
		}
		for _, etcd := range etcds { // one after the other: more would be slow at once
			err = errors.Join(err, d.round(ctx, etcd))
		}
		if err != nil && ctx.Err() == nil {
			log.Error(err, "defragmenting etcd; it is tried again later")
		}
	}, d.every, 0.2, true)
	return nil
}

// errNotYet says that a control plane is so new that it has no certificates.
var errNotYet = errors.New("there are no certificates of etcd's clients yet")

// etcd is one of the control plane.
type etcd struct {
	name string
	urls []string // of its members
	hold bool     // look only, as the control plane is paused
}

// etcds are those of the control plane that are ours.
func (d *Defragmenter) etcds(ctx context.Context) ([]etcd, error) {
	list := &hyperv1.HostedControlPlaneList{}
	if err := d.Reader.List(ctx, list, client.InNamespace(d.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the HostedControlPlane: %w", err)
	}
	var found []etcd
	for i := range list.Items {
		hcp := &list.Items[i]
		if !hcp.DeletionTimestamp.IsZero() || hcp.Spec.Etcd.ManagementType != hyperv1.Managed {
			continue
		}
		paused := pause.At(hcp.Spec.PausedUntil, d.Clock.Now()).Active
		members := 1
		if hcp.Spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable {
			members = memberCount
		}
		found = append(found, etcd{name: "etcd", urls: d.urls("etcd", "etcd-discovery", members), hold: paused})
		for _, s := range shards.Managed(hcp.Spec.Etcd) {
			name := shards.Component(s.Name)
			found = append(found, etcd{name: name, urls: d.urls(name, shards.DiscoveryService(s.Name), int(max(s.Replicas, 1))), hold: paused})
		}
	}
	return found, nil
}

// urls are those by which members know each other: they are named <name>-0 and so on.
func (d *Defragmenter) urls(name, discovery string, members int) (urls []string) {
	for i := range members {
		urls = append(urls, fmt.Sprintf("https://%s-%d.%s.%s.svc:%d", name, i, discovery, d.Namespace, clientPort))
	}
	return urls
}

// round looks at the members, and does what is worth it and allowed.
func (d *Defragmenter) round(ctx context.Context, which etcd) error {
	httpClient, err := d.connect(ctx)
	if errors.Is(err, errNotYet) {
		return nil
	}
	if err != nil {
		return err
	}
	defer httpClient.CloseIdleConnections()
	e := endpoints{httpClient}
	members := look(ctx, e, which.urls)
	d.note(ctx, which.name, members)
	if problem := unhealthy(members, len(which.urls)); problem != "" {
		ctrl.LoggerFrom(ctx).V(1).Info("left alone", "etcd", which.name, "because", problem)
		return nil
	}
	if which.hold || !d.rested(which.name) {
		return nil
	}
	if noSpace(members) {
		return d.makeRoom(ctx, e, which, members)
	}
	for _, m := range worthIt(members) {
		d.tire(which.name)
		if err := d.defragment(ctx, e, m); err != nil {
			return err
		}
		if err := d.recover(ctx, e, which.urls, d.settle); err != nil {
			return fmt.Errorf("after %s was defragmented: %w", m.url, err)
		}
	}
	return nil
}

// makeRoom drops the history of a full etcd, defragments every member, and lets it take writes again if that has helped.
func (d *Defragmenter) makeRoom(ctx context.Context, e endpoints, which etcd, members []member) error {
	log := ctrl.LoggerFrom(ctx).WithValues("etcd", which.name)
	log.Info("etcd has no space and refuses writes: making room")
	d.tire(which.name)
	if err := e.compact(ctx, which.urls[0], members[0].revision); err != nil {
		return fmt.Errorf("compacting the history of %s: %w", which.name, err)
	}
	for _, m := range leaderLast(members) {
		if err := d.defragment(ctx, e, m); err != nil {
			return err
		}
		if err := d.recover(ctx, e, which.urls, 0); err != nil { // no time to settle: every write fails until this is over
			return fmt.Errorf("after %s was defragmented: %w", m.url, err)
		}
	}
	members = look(ctx, e, which.urls)
	if problem := unhealthy(members, len(which.urls)); problem != "" {
		return fmt.Errorf("%s was defragmented and can't take writes yet: %s", which.name, problem)
	}
	if !hasRoom(members) {
		d.note(ctx, which.name, members)
		return fmt.Errorf("%s is full of data that is in use: it takes writes again when objects were deleted", which.name)
	}
	if err := e.disarm(ctx, which.urls[0]); err != nil {
		return fmt.Errorf("disarming the alarm of %s: %w", which.name, err)
	}
	d.note(ctx, which.name, look(ctx, e, which.urls))
	log.Info("etcd takes writes again")
	return nil
}

func (d *Defragmenter) defragment(ctx context.Context, e endpoints, m member) error {
	if err := e.defragment(ctx, m.url); err != nil {
		return fmt.Errorf("defragmenting %s: %w", m.url, err)
	}
	after := e.status(ctx, m.url)
	ctrl.LoggerFrom(ctx).Info("defragmented", "member", m.url, "bytesBefore", m.size, "bytesAfter", after.size, "leader", m.isLeader())
	return nil
}

func look(ctx context.Context, e endpoints, urls []string) (members []member) {
	for _, url := range urls {
		members = append(members, e.status(ctx, url))
	}
	return members
}

// recover waits until all members are healthy.
func (d *Defragmenter) recover(ctx context.Context, e endpoints, urls []string, settle time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settle):
	}
	problem := ""
	err := wait.PollUntilContextTimeout(ctx, d.poll, d.patience, true, func(ctx context.Context) (bool, error) {
		problem = unhealthy(look(ctx, e, urls), len(urls))
		return problem == "", nil
	})
	if err != nil && problem != "" {
		return errors.New(problem)
	}
	return err
}

// withCertificates is a client that shows the certificate of etcd's clients, and trusts etcd's authority only.
func (d *Defragmenter) withCertificates(ctx context.Context) (*http.Client, error) {
	secret, ca := &corev1.Secret{}, &corev1.ConfigMap{}
	err1 := d.Reader.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: pki.EtcdClient}, secret)
	err2 := d.Reader.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: pki.EtcdCABundle}, ca)
	if apierrors.IsNotFound(err1) || apierrors.IsNotFound(err2) {
		return nil, errNotYet
	}
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("reading the certificates of etcd's clients: %w", err)
	}
	cert, err := tls.X509KeyPair(secret.Data["etcd-client.crt"], secret.Data["etcd-client.key"])
	if err != nil {
		return nil, fmt.Errorf("parsing Secret %s: it holds no certificate with its key", pki.EtcdClient)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(ca.Data[pki.CACertKey])) {
		return nil, fmt.Errorf("parsing ConfigMap %s: it holds no certificate", pki.EtcdCABundle)
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{cert}},
		TLSHandshakeTimeout: statusTimeout, MaxResponseHeaderBytes: maxAnswer, ForceAttemptHTTP2: true,
	}}, nil
}
