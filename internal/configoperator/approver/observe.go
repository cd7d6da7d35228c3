package approver

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// signers are those whose requests are read.
var signers = [...]string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName}

// round is a look at all requests in portions: a tenant may make any number of them, and those that are decided stay for an hour, so
// none may hide others. Losing it costs a new beginning.
type round struct {
	next [len(signers)]string // of each signer, where the next portion begins
	done [len(signers)]bool
	// waiting are the requests that wait, and oldest is when the first of them was made.
	waiting int
	oldest  time.Time
	after   time.Duration // when the earliest of the requests that wait is to be looked at again; 0 without one
}

// pending are the requests of the next portion that nobody has decided on. The round is over when more is false.
func (r *round) pending(ctx context.Context, hosted client.Reader) (all []certificatesv1.CertificateSigningRequest, more bool, err error) {
	for i, signer := range signers {
		for read := 0; read < maxRequests && !r.done[i]; {
			list := &certificatesv1.CertificateSigningRequestList{}
			err := hosted.List(ctx, list, client.MatchingFields{"spec.signerName": signer}, client.Limit(pageSize), client.Continue(r.next[i]))
			if apierrors.IsResourceExpired(err) && r.next[i] != "" {
				r.next[i] = ""
				continue
			}
			if err != nil {
				return nil, false, fmt.Errorf("listing certificate signing requests: %w", err)
			}
			for _, csr := range list.Items {
				if undecided(&csr) {
					all = append(all, csr)
				}
			}
			read += len(list.Items)
			r.next[i] = list.Continue
			r.done[i] = list.Continue == "" || len(list.Items) == 0
		}
		more = more || !r.done[i]
	}
	return all, more, nil
}

// waits notes that a request waits.
func (r *round) waits(created, now time.Time) {
	r.waiting++
	if r.oldest.IsZero() || created.Before(r.oldest) {
		r.oldest = created
	}
	age := now.Sub(created)
	after := recheck
	if age >= patience {
		after = slowRecheck
	}
	if r.after == 0 || after < r.after {
		r.after = after
	}
}

func undecided(csr *certificatesv1.CertificateSigningRequest) bool {
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return false
		}
	}
	return len(csr.Status.Certificate) == 0
}

func requestOf(csr *certificatesv1.CertificateSigningRequest) Request {
	r := Request{
		Signer: csr.Spec.SignerName, Username: csr.Spec.Username, Groups: csr.Spec.Groups, Usages: csr.Spec.Usages,
		Created: csr.CreationTimestamp.Time,
	}
	r.Content, r.Err = parse(csr.Spec.Request)
	return r
}

// machines are the Machines of the control plane namespace. A management cluster without Cluster API has none.
func machines(ctx context.Context, management client.Reader, namespace string) ([]Machine, error) {
	list := &clusterv1.MachineList{}
	if err := management.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("listing Machines of namespace %s: %w", namespace, err)
	}
	found := make([]Machine, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, machineOf(&list.Items[i]))
	}
	return found, nil
}

func machineOf(m *clusterv1.Machine) Machine {
	out := Machine{
		Name: m.Name, Node: m.Status.NodeRef.Name, Created: m.CreationTimestamp.Time, Leaving: !m.DeletionTimestamp.IsZero(),
		Key: m.Annotations[KeyAnnotation], Version: m.ResourceVersion,
	}
	for _, a := range m.Status.Addresses {
		switch a.Type {
		case clusterv1.MachineHostName, clusterv1.MachineInternalDNS, clusterv1.MachineExternalDNS:
			out.Names = append(out.Names, a.Address)
		case clusterv1.MachineInternalIP, clusterv1.MachineExternalIP:
			if addr, err := netip.ParseAddr(a.Address); err == nil {
				out.Addresses = append(out.Addresses, addr.Unmap().String())
			}
		}
	}
	return out
}

func nodeExists(ctx context.Context, hosted client.Reader, name string) (bool, error) {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	err := hosted.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for Node %s: %w", name, err)
	}
	return true, nil
}
