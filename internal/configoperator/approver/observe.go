package approver

import (
	"context"
	"fmt"
	"net/netip"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pending are the requests that nobody has decided on, those for kubelets first. What is read is bounded; a tenant who makes
// more requests than that delays those of its own nodes.
func pending(ctx context.Context, hosted client.Reader) ([]certificatesv1.CertificateSigningRequest, error) {
	kubelet, serving := certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName
	var all []certificatesv1.CertificateSigningRequest
	for _, part := range []struct {
		selector fields.Selector
		limit    int
	}{
		{fields.OneTermEqualSelector("spec.signerName", kubelet), maxRequests},
		{fields.OneTermEqualSelector("spec.signerName", serving), maxRequests},
		{fields.AndSelectors(fields.OneTermNotEqualSelector("spec.signerName", kubelet), fields.OneTermNotEqualSelector("spec.signerName", serving)), maxStrange},
	} {
		next := ""
		for read := 0; read < part.limit; {
			list := &certificatesv1.CertificateSigningRequestList{}
			err := hosted.List(ctx, list, client.MatchingFieldsSelector{Selector: part.selector}, client.Limit(pageSize), client.Continue(next))
			if err != nil {
				return nil, fmt.Errorf("listing certificate signing requests: %w", err)
			}
			for _, csr := range list.Items {
				if undecided(&csr) {
					all = append(all, csr)
				}
			}
			read += len(list.Items)
			if next = list.Continue; next == "" || len(list.Items) == 0 {
				break
			}
		}
	}
	return all, nil
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
	out := Machine{Name: m.Name, Node: m.Status.NodeRef.Name, Created: m.CreationTimestamp.Time, Leaving: !m.DeletionTimestamp.IsZero()}
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
