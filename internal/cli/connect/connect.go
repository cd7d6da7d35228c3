// Package connect gives every command of the CLI the same way to a cluster: the flags, the client and how objects are applied.
package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	packagesv1 "hcp.internal/api/packages/v1alpha1"
	schedulingv1alpha1 "hcp.internal/api/scheduling/v1alpha1"
	"hcp.internal/platform/internal/kube/apply"
)

// FieldOwner is the field manager of everything the CLI applies.
const FieldOwner = "hypershift"

// requestTimeout bounds one request, so that a dead API server shows as an error that names it instead of a hang.
// Longer than the API server's own limit of 60 s for a write.
const requestTimeout = 70 * time.Second

// Flags says which cluster to talk to. The zero value follows $KUBECONFIG, ~/.kube/config and the pod's service account,
// in this order, like kubectl.
type Flags struct {
	Kubeconfig string // path of a kubeconfig file
	Context    string // context in it; empty: the current one
	As         string // user to impersonate; empty: nobody
	// RequestTimeout bounds one request; 0: 70 seconds.
	RequestTimeout time.Duration
	// DryRun of a Client: nothing that it writes is stored.
	DryRun DryRun
}

// Names of the flags that AddFlags declares.
const (
	flagKubeconfig     = "kubeconfig"
	flagContext        = "context"
	flagAs             = "as"
	flagRequestTimeout = "request-timeout"
)

// IsFlag tells whether a flag is one of those that AddFlags declares.
func IsFlag(name string) bool {
	return name == flagKubeconfig || name == flagContext || name == flagAs || name == flagRequestTimeout
}

// AddFlags declares the flags. DryRun has one of its own, for commands that write.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.Kubeconfig, flagKubeconfig, f.Kubeconfig, "Kubeconfig of the management cluster (default: $KUBECONFIG, then ~/.kube/config)")
	fs.StringVar(&f.Context, flagContext, f.Context, "Context of the kubeconfig to use (default: its current context)")
	fs.StringVar(&f.As, flagAs, f.As, "User to impersonate, such as system:serviceaccount:ci:deployer")
	fs.DurationVar(&f.RequestTimeout, flagRequestTimeout, f.RequestTimeout, "How long one request may take, such as 10s; 0 means 70s")
}

// Scheme returns a new scheme with all kinds that the CLI reads or writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(hyperv1.AddToScheme(scheme))
	utilruntime.Must(packagesv1.AddToScheme(scheme))
	utilruntime.Must(schedulingv1alpha1.AddToScheme(scheme))
	return scheme
}

// RESTConfig reads the kubeconfig. Its errors say what to do when there is none.
func (f Flags) RESTConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.Context}).ClientConfig()
	switch {
	case err == nil:
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.New("no management cluster is configured: give --kubeconfig, set KUBECONFIG, or start one with `hypershift local up`")
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("--kubeconfig %s: no such file; give the path of the management cluster's kubeconfig", f.Kubeconfig)
	default:
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	if f.RequestTimeout < 0 {
		return nil, fmt.Errorf("--request-timeout %s: must not be negative", f.RequestTimeout)
	}
	config.Timeout = cmp.Or(f.RequestTimeout, requestTimeout)
	config.Impersonate.UserName = cmp.Or(f.As, config.Impersonate.UserName)
	config.UserAgent = "hypershift-cli"
	config.QPS = -1 // the API server's priority and fairness does that job
	return config, nil
}

// Namespace is that of the kubeconfig's context, "default" if it has none.
func (f Flags) Namespace() (string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	ns, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.Context}).Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the namespace of the kubeconfig: %w", err)
	}
	return ns, nil
}

// OwnNamespace is that of the kubeconfig's context, empty when it has none or none but "default": tools write that without anybody having chosen it.
// A kubeconfig that can't be read has none; whoever connects says what is wrong with it.
func (f Flags) OwnNamespace() string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	config, err := rules.Load()
	if err != nil {
		return ""
	}
	current := config.Contexts[cmp.Or(f.Context, config.CurrentContext)]
	if current == nil || current.Namespace == metav1.NamespaceDefault {
		return ""
	}
	return current.Namespace
}

// Client returns an uncached client for the configured cluster. It makes no request. With DryRun, what it writes is stored nowhere.
func (f Flags) Client() (client.Client, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return f.DryRun.wrap(c), nil
}

// WithTimeout is context.WithTimeout where 0 means no limit, as in flags.
func WithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// Unstructured is obj as it is applied and rendered: with kind and version, without status, nulls and what the server sets.
func Unstructured(scheme *runtime.Scheme, obj client.Object) (*unstructured.Unstructured, error) {
	u, err := apply.Desired(scheme, obj)
	if err != nil {
		return nil, err
	}
	if spec, ok := u.Object["spec"].(map[string]any); ok && len(spec) == 0 {
		delete(u.Object, "spec")
	}
	return u, nil
}

// Describe names an object in messages: "Secret clusters/demo-pull-secret".
func Describe(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = fmt.Sprintf("%T", obj)
	}
	if obj.GetNamespace() == "" {
		return kind + " " + obj.GetName()
	}
	return kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// Namespace is the Namespace object of a name.
func Namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
