package kubeapiserver

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
)

// Upstream makes the first bindings in a container beside kube-apiserver, which then sleeps for ever and keeps its memory in
// every hosted control plane. A container of a Deployment cannot end, and an init container runs before the server; so the
// control-plane-operator, which can read the administrator's kubeconfig anyway, makes them itself. It looks again behind every
// pass (one request), and so repairs a binding that somebody in the hosted cluster deleted, which our operator there could
// not do without it. Whoever runs stock manifests can still use `hcp-sidecar kas-bootstrap`.

const (
	kubeconfigKey = "kubeconfig"

	// HCCOClusterAdmin is the binding that gives the hosted-cluster-config-operator its rights.
	HCCOClusterAdmin = "hcco-cluster-admin"
	hccoUser         = "system:hosted-cluster-config"

	// bootstrapTimeout bounds the requests to a server that has just said it was ready.
	bootstrapTimeout = 5 * time.Second
	fieldOwner       = "control-plane-operator"
)

// bootstrapped makes what must be in the hosted cluster before anything else can work there. Until it is, kube-apiserver
// does not count as rolled out, and so nothing starts that depends on it.
func bootstrapped(ctx component.WorkloadContext) error {
	secret := &corev1.Secret{}
	if err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: names.ServiceNetworkKubeconfig}, secret); err != nil {
		return fmt.Errorf("reading Secret %s: %w", names.ServiceNetworkKubeconfig, err)
	}
	bootstrap := ctx.BootstrapHosted
	if bootstrap == nil {
		bootstrap = Bootstrap
	}
	return bootstrap(ctx.Context, secret.Data[kubeconfigKey])
}

// Bootstrap makes the first objects of a hosted cluster as its administrator. It writes only what is missing or different.
func Bootstrap(ctx context.Context, kubeconfig []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig in Secret %s: %w", names.ServiceNetworkKubeconfig, err)
	}
	config.Timeout = bootstrapTimeout
	rbac, err := rbacclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the hosted API: %w", err)
	}
	return ensureBinding(ctx, rbac, clusterAdmin(HCCOClusterAdmin, hccoUser))
}

func clusterAdmin(name, user string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// ensureBinding makes a binding what it should be. Its role cannot be changed, so one that names another is replaced.
func ensureBinding(ctx context.Context, rbac rbacclient.ClusterRoleBindingsGetter, want *rbacv1.ClusterRoleBinding) error {
	bindings := rbac.ClusterRoleBindings()
	live, err := bindings.Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = bindings.Create(ctx, want, metav1.CreateOptions{FieldManager: fieldOwner})
		if apierrors.IsAlreadyExists(err) {
			err = nil // Another replica of the operator was faster; the next pass compares.
		}
	case err != nil:
	case live.RoleRef != want.RoleRef:
		err = bindings.Delete(ctx, want.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &live.UID}})
		if err == nil {
			_, err = bindings.Create(ctx, want, metav1.CreateOptions{FieldManager: fieldOwner})
		}
	case !equality.Semantic.DeepEqual(live.Subjects, want.Subjects):
		live = live.DeepCopy()
		live.Subjects = want.Subjects
		_, err = bindings.Update(ctx, live, metav1.UpdateOptions{FieldManager: fieldOwner})
	}
	if err != nil {
		return fmt.Errorf("making ClusterRoleBinding %s in the hosted cluster: %w", want.Name, err)
	}
	return nil
}
