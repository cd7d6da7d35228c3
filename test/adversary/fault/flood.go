package fault

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/test/adversary/plan"
	"hcp.internal/platform/test/adversary/world"
)

// requests has clients of a tenant's user list ConfigMaps of a hosted API without a pause. Whatever is answered is right: those who are not the tenant
// have to be answered all the same, which is for the watch over acknowledged writes to say.
func (f *Faults) requests(ctx context.Context, s plan.Step) (string, error) {
	cfg, err := f.World.Hosted(ctx, s.Cluster)
	if err != nil {
		return "", fmt.Errorf("%s has no API (%w): %w", s.Place, err, world.ErrNobody)
	}
	user, err := f.World.User(ctx, cfg)
	if err != nil {
		return "", fmt.Errorf("%s has no user (%w): %w", s.Place, err, world.ErrNobody)
	}
	c, err := world.NewClient(user)
	if err != nil {
		return "", err
	}
	ctx, end := context.WithTimeout(ctx, s.For)
	defer end()
	var asked, refused, failed atomic.Int64
	var all sync.WaitGroup
	for range s.Count {
		all.Go(func() {
			for ctx.Err() == nil {
				err := c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(world.Tenant))
				asked.Add(1)
				switch {
				case apierrors.IsTooManyRequests(err):
					refused.Add(1)
				case err != nil && ctx.Err() == nil:
					failed.Add(1)
					world.Wait(ctx, failurePause)
				}
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d requests, %d refused with 429, %d failed", asked.Load(), refused.Load(), failed.Load()), nil
}

// requesting is what lets a tenant ask for certificates, and nothing more: Kubernetes itself approves those of nodes for whoever may do anything.
func requesting() []client.Object {
	meta := metav1.ObjectMeta{Name: "adversary-requests", Labels: map[string]string{world.Label: "true"}}
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: world.Tenant, Name: "tenant"}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}},
	}
}

// signing has a tenant make requests for certificates of nodes that nobody knows. None may be approved.
func (f *Faults) signing(ctx context.Context, s plan.Step) (met string, err error) {
	cfg, err := f.World.Hosted(ctx, s.Cluster)
	if err != nil {
		return "", fmt.Errorf("%s has no API (%w): %w", s.Place, err, world.ErrNobody)
	}
	admin, err := world.NewClient(cfg)
	if err != nil {
		return "", err
	}
	request, err := nodeRequest()
	if err != nil {
		return "", err
	}
	user, err := f.World.User(ctx, cfg)
	if err != nil {
		return "", fmt.Errorf("%s has no user (%w): %w", s.Place, err, world.ErrNobody)
	}
	c, err := world.NewClient(user)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.judgeRequests(admin, s)) }()
	for _, o := range requesting() {
		if err := client.IgnoreAlreadyExists(admin.Create(ctx, o)); err != nil {
			return "", fmt.Errorf("letting a tenant ask for certificates: %w", err)
		}
	}
	made := 0
	for n := range s.Count {
		csr := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("adversary-%d-%d", s.Number, n), Labels: map[string]string{world.Label: "true"}},
			Spec: certificatesv1.CertificateSigningRequestSpec{Request: request, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}},
		}
		if err := c.Create(ctx, csr); err == nil {
			made++
		} else if !world.Wait(ctx, failurePause) {
			break
		}
	}
	world.Wait(ctx, s.For)
	return fmt.Sprintf("%d requests for certificates", made), nil
}

// judgeRequests looks at the requests, and deletes them.
func (f *Faults) judgeRequests(c client.Client, s plan.Step) error {
	return world.Until(context.Background(), undoTime, func(ctx context.Context) error {
		list := &certificatesv1.CertificateSigningRequestList{}
		if err := c.List(ctx, list, client.MatchingLabels{world.Label: "true"}); err != nil {
			if f.World.Gone(ctx, world.Key(s.Cluster), &hyperv1.HostedCluster{}) == nil {
				return nil // the cluster was destroyed, and the requests with it
			}
			return err
		}
		decided := slices.DeleteFunc(slices.Clone(list.Items), func(csr certificatesv1.CertificateSigningRequest) bool {
			return len(csr.Status.Certificate) == 0 && len(csr.Status.Conditions) == 0
		})
		if len(decided) > 0 {
			f.Hostile.Violated("refused", fmt.Sprintf("%d requests of step %d in %s, for a node that nobody knows, were decided, as %s: %v", len(decided), s.Number, s.Place, decided[0].Name, decided[0].Status.Conditions))
		}
		var errs []error
		for i := range list.Items {
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, &list.Items[i])))
		}
		for _, o := range requesting() {
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, o)))
		}
		return errors.Join(errs...)
	})
}

func nodeRequest() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:adversary", Organization: []string{"system:nodes"}}}, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}), err
}
