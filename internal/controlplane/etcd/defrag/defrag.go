package defrag

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	// every is how often members are looked at.
	every = 10 * time.Minute
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
	// jitter of every, and pauses; tests shorten them.
	every, settle, poll, patience time.Duration
	// connect is replaced by tests.
	connect func(ctx context.Context) (*http.Client, error)
}

// New looks after the control plane in a namespace. reader is the manager's.
func New(reader client.Reader, namespace string) *Defragmenter {
	d := &Defragmenter{Reader: reader, Namespace: namespace, Clock: clock.RealClock{}, every: every, settle: settle, poll: poll, patience: patience}
	d.connect = d.withCertificates
	return d
}

// Start implements manager.Runnable. It ends with ctx.
func (d *Defragmenter) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("etcd-defrag")
	ctx = ctrl.LoggerInto(ctx, log)
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		etcds, err := d.etcds(ctx)
		for _, etcd := range etcds { // one after the other: more would be slow at once
			err = errors.Join(err, d.round(ctx, etcd.urls(d.Namespace)))
		}
		if err != nil && ctx.Err() == nil {
			log.Error(err, "defragmenting etcd; it is tried again later")
		}
	}, d.every, 0.2, true)
	return nil
}

// etcd is one of the control plane: its members are named <name>-0 and so on.
type etcd struct {
	name, discovery string
	members         int
}

// etcds are those of the control plane that are ours and have several members; none while it is paused.
func (d *Defragmenter) etcds(ctx context.Context) ([]etcd, error) {
	list := &hyperv1.HostedControlPlaneList{}
	if err := d.Reader.List(ctx, list, client.InNamespace(d.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the HostedControlPlane: %w", err)
	}
	var found []etcd
	for i := range list.Items {
		hcp := &list.Items[i]
		paused := pause.At(hcp.Spec.PausedUntil, d.Clock.Now()).Active
		if !hcp.DeletionTimestamp.IsZero() || paused || hcp.Spec.Etcd.ManagementType != hyperv1.Managed {
			continue
		}
		if hcp.Spec.ControllerAvailabilityPolicy == hyperv1.HighlyAvailable {
			found = append(found, etcd{name: "etcd", discovery: "etcd-discovery", members: memberCount})
		}
		for _, s := range shards.Managed(hcp.Spec.Etcd) {
			if s.Replicas >= memberCount {
				found = append(found, etcd{name: shards.Component(s.Name), discovery: shards.DiscoveryService(s.Name), members: int(s.Replicas)})
			}
		}
	}
	return found, nil
}

// round defragments the members that are worth it, one after the other, and stops when one does not come back.
func (d *Defragmenter) round(ctx context.Context, urls []string) error {
	httpClient, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer httpClient.CloseIdleConnections()
	e := endpoints{httpClient}
	members := look(ctx, e, urls)
	if problem := unhealthy(members, len(urls)); problem != "" {
		ctrl.LoggerFrom(ctx).V(1).Info("left alone", "because", problem)
		return nil
	}
	for _, m := range worthIt(members) {
		if err := e.defragment(ctx, m.url); err != nil {
			return fmt.Errorf("defragmenting %s: %w", m.url, err)
		}
		after := e.status(ctx, m.url)
		ctrl.LoggerFrom(ctx).Info("defragmented", "member", m.url, "bytesBefore", m.size, "bytesAfter", after.size, "leader", m.isLeader())
		if err := d.recover(ctx, e, urls); err != nil {
			return fmt.Errorf("after %s was defragmented: %w", m.url, err)
		}
	}
	return nil
}

func look(ctx context.Context, e endpoints, urls []string) (members []member) {
	for _, url := range urls {
		members = append(members, e.status(ctx, url))
	}
	return members
}

// recover waits until all members are healthy.
func (d *Defragmenter) recover(ctx context.Context, e endpoints, urls []string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d.settle):
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

// urls are those by which the members know each other.
func (e etcd) urls(namespace string) (urls []string) {
	for i := range e.members {
		urls = append(urls, fmt.Sprintf("https://%s-%d.%s.%s.svc:%d", e.name, i, e.discovery, namespace, clientPort))
	}
	return urls
}

// withCertificates is a client that shows the certificate of etcd's clients, and trusts etcd's authority only.
func (d *Defragmenter) withCertificates(ctx context.Context) (*http.Client, error) {
	secret, ca := &corev1.Secret{}, &corev1.ConfigMap{}
	err1 := d.Reader.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: pki.EtcdClient}, secret)
	err2 := d.Reader.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: pki.EtcdCABundle}, ca)
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
