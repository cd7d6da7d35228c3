package tour

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/api/packages/v1alpha1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/local"
)

// Addon delivers an add-on to a hosted cluster: one package with a phase beside the control plane and one in the hosted cluster. It stays there,
// for the user to look at.
type Addon struct {
	// Registry is where the package and its application are.
	Registry string
	// Cluster is the hosted cluster; it has workers.
	Cluster client.ObjectKey
}

const (
	addonSource = "config/examples/packages/hello"
	addonName   = "hello"
	// addonPods run in the hosted cluster.
	addonPods = 1
	// addonNamespace is where the package's objects are in the hosted cluster.
	addonNamespace = metav1.NamespaceDefault
)

// Run is the stop.
func (a Addon) Run(ctx context.Context, c local.Cluster, say local.Say) error {
	management, err := (&connect.Flags{Kubeconfig: c.Kubeconfig}).Client()
	if err != nil {
		return err
	}
	hosted, err := (&connect.Flags{Kubeconfig: c.DemoKubeconfig}).Client()
	if err != nil {
		return err
	}
	image := a.Registry + "/examples/hello:1.0.0"
	if _, err := kubectlPackage(ctx, c, say, "build", filepath.Join(c.Settings.Root, addonSource), "--tag", image, "--push"); err != nil {
		return err
	}
	pkg, err := a.pkg(image)
	if err != nil {
		return err
	}
	begin := c.Clock.Now()
	if err := apply(ctx, management, pkg); err != nil {
		return fmt.Errorf("applying %s: %w", name(management, pkg), err)
	}
	c.Show("  Package %s/%s has image %s", pkg.Namespace, pkg.Name, image)
	if _, err := kubectlPackage(ctx, c, say, "rollout", "status", "package/"+pkg.Name, "-n", pkg.Namespace, "--timeout", patience.String()); err != nil {
		return err
	}
	took := c.Clock.Since(begin)
	if err := show(ctx, c, management, "in the namespace of the control plane", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: pkg.Namespace, Name: addonName}}); err != nil {
		return err
	}
	inside := metav1.ObjectMeta{Namespace: addonNamespace, Name: addonName}
	if err := show(ctx, c, hosted, "in the hosted cluster", &appsv1.Deployment{ObjectMeta: inside}, &corev1.ConfigMap{ObjectMeta: inside}); err != nil {
		return err
	}
	c.Show("  both after %s; they stay", took.Round(100*time.Millisecond))
	return nil
}

func (a Addon) pkg(image string) (*v1alpha1.Package, error) {
	config, err := json.Marshal(map[string]any{"image": a.Registry + "/hypershift/webapp", "replicas": addonPods})
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	return &v1alpha1.Package{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Package"},
		ObjectMeta: metav1.ObjectMeta{Namespace: names.ControlPlaneNamespace(a.Cluster.Namespace, a.Cluster.Name), Name: addonName},
		Spec:       v1alpha1.PackageSpec{Image: image, Config: &runtime.RawExtension{Raw: config}},
	}, nil
}

// show reads objects and says what they are like.
func show(ctx context.Context, c local.Cluster, api client.Client, where string, objs ...client.Object) error {
	var found []string
	for _, obj := range objs {
		if err := api.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return fmt.Errorf("reading %s %s: %w", name(api, obj), where, err)
		}
		text := name(api, obj)
		switch o := obj.(type) {
		case *appsv1.Deployment:
			text += fmt.Sprintf(" (%d of %d pods available)", o.Status.AvailableReplicas, ptr.Deref(o.Spec.Replicas, 1))
		case *corev1.ConfigMap:
			text += fmt.Sprintf(" (of %s)", o.Data["cluster"])
		}
		found = append(found, text)
	}
	c.Show("  %s: %s", where, strings.Join(found, ", "))
	return nil
}
