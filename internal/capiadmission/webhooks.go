package capiadmission

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/webhooks"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Kinds are those that a Scheme learns about.
func Kinds() []client.Object {
	return []client.Object{
		&clusterv1.Cluster{}, &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}, &clusterv1.Machine{}, &clusterv1.MachineHealthCheck{}, &clusterv1.MachinePool{},
	}
}

// hooks are the webhooks of a kind.
type hooks struct{ mutate, validate *admission.Webhook }

// load gets the webhooks by the Go types that they are for. The module exports no functions that default and validate; it exports how they are
// registered with a manager, and so they are registered with one that does nothing else.
//
// The webhook of Cluster reads ClusterClasses for a Cluster with a topology. It has no client here, and no Cluster of ours has one.
func load() (map[reflect.Type]hooks, error) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("adding the kinds of Cluster API: %w", err)
	}
	loaded := map[reflect.Type]hooks{}
	for obj, registered := range map[client.Object]interface{ SetupWebhookWithManager(ctrl.Manager) error }{
		&clusterv1.Cluster{}:            &webhooks.Cluster{},
		&clusterv1.MachineDeployment{}:  &webhooks.MachineDeployment{},
		&clusterv1.MachineSet{}:         &webhooks.MachineSet{},
		&clusterv1.Machine{}:            &webhooks.Machine{},
		&clusterv1.MachineHealthCheck{}: &webhooks.MachineHealthCheck{},
		&clusterv1.MachinePool{}:        &webhooks.MachinePool{},
	} {
		r := &registrar{scheme: scheme}
		if err := registered.SetupWebhookWithManager(r); err != nil {
			return nil, fmt.Errorf("loading the webhooks of %T: %w", obj, err)
		}
		if r.mutate == nil || r.validate == nil {
			return nil, fmt.Errorf("loading the webhooks of %T: the module registers no mutating or no validating one", obj)
		}
		loaded[reflect.TypeOf(obj)] = r.hooks
	}
	return loaded, nil
}

// registrar is a manager, and its server of webhooks, that notes what is registered. Everything else of the two is nil and is not called.
type registrar struct {
	ctrl.Manager
	scheme *runtime.Scheme
	hooks
}

func (r *registrar) GetScheme() *runtime.Scheme       { return r.scheme }
func (r *registrar) GetConfig() *rest.Config          { return &rest.Config{} }
func (r *registrar) GetWebhookServer() webhook.Server { return server{r: r} }

type server struct {
	webhook.Server
	r *registrar
}

// WebhookMux is nil as long as nothing is served.
func (server) WebhookMux() *http.ServeMux { return nil }

// Register implements webhook.Server. The paths are those that the published configurations name.
func (s server) Register(path string, handler http.Handler) {
	hook, ok := handler.(*admission.Webhook)
	switch {
	case !ok:
	case strings.HasPrefix(path, "/mutate-"):
		s.r.mutate = hook
	case strings.HasPrefix(path, "/validate-"):
		s.r.validate = hook
	}
}
