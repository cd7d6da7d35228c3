package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Account is what short-lived credentials are of, in a hosted cluster.
const (
	AccountNamespace = metav1.NamespaceSystem
	Account          = "hypershift-cli"
)

// minLease is what API servers grant at the least.
const minLease = 10 * time.Minute

// CheckLease tells whether a credential can be had for that long.
func CheckLease(ttl time.Duration) error {
	if ttl != 0 && ttl < minLease {
		return fmt.Errorf("--ttl %s: an API server grants 10m at the least", ttl)
	}
	return nil
}

// Leased replaces the credentials of a kubeconfig by a token that ends after ttl. The token is of a ServiceAccount with the rights of an administrator, which
// this makes in the hosted cluster when it isn't there. Deleting that ServiceAccount ends all its tokens at once. The API server may grant less time
// than asked for; the time of the end is returned.
func Leased(ctx context.Context, raw []byte, ttl time.Duration) ([]byte, time.Time, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, time.Time{}, errors.New("the kubeconfig of the hosted cluster can't be used") // the parser's error may quote a key
	}
	return leased(ctx, config, raw, ttl)
}

func leased(ctx context.Context, config *rest.Config, raw []byte, ttl time.Duration) ([]byte, time.Time, error) {
	config.Timeout, config.UserAgent = hostedTimeout, "hypershift-cli"
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("--ttl: reaching the hosted cluster: %w", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: AccountNamespace, Name: Account}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: AccountNamespace, Name: Account}},
	}
	for _, obj := range []client.Object{account, binding} {
		if err := c.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, time.Time{}, fmt.Errorf("--ttl: making %T %s in the hosted cluster: %w", obj, obj.GetName(), err)
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(ttl / time.Second))}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, time.Time{}, fmt.Errorf("--ttl: asking for a token: %w", err)
	}
	out, err := clientcmd.Load(raw)
	if err != nil {
		return nil, time.Time{}, errors.New("the kubeconfig of the hosted cluster can't be parsed")
	}
	for name := range out.AuthInfos {
		out.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	written, err := clientcmd.Write(*out)
	return written, request.Status.ExpirationTimestamp.Time, err
}

// hostedTimeout bounds one request to a hosted cluster, which may be dead.
const hostedTimeout = 20 * time.Second
