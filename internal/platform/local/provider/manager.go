package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "hcp.internal/api/infrastructure/v1beta1"
	"hcp.internal/platform/internal/kube/outcome"
	"hcp.internal/platform/internal/kube/process"
)

// Pauses between passes that fail.
const minBackoff, maxBackoff = 200 * time.Millisecond, 30 * time.Second

// workers bounds how many machines are looked at at a time.
const workers = 4

// NewScheme holds the types that the provider works with.
func NewScheme() (*k8sruntime.Scheme, error) {
	return process.Scheme(corev1.AddToScheme, infrav1.AddToScheme, clusterv1.AddToScheme)
}

// newManager puts the process together.
func newManager(cfg *rest.Config, o Options) (manager.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	machines, err := labels.NewRequirement(infrav1.MachineLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("building a selector: %w", err)
	}
	options := process.Options{
		Name: FieldOwner, Scheme: scheme, Serve: process.Serve{Metrics: o.MetricsAddr, Health: o.HealthAddr},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{o.Namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
			ByObject:          map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: labels.NewSelector().Add(*machines)}},
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
	if o.LeaderElect {
		options.Lease = process.NewLease(o.Namespace, LeaseName, "")
	}
	mgr, err := process.NewManager(cfg, options)
	if err != nil {
		return nil, err
	}
	return mgr, errors.Join(addControllers(mgr), process.ForgetUnused(mgr))
}

func addControllers(mgr manager.Manager) error {
	options := process.Workers(workers, minBackoff, maxBackoff)
	host, err := thisHost()
	if err != nil {
		return err
	}
	machines := &MachineReconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Events: mgr.GetEventRecorder(FieldOwner), placement: placementFromEnv(os.Getenv)}
	err = builder.ControllerManagedBy(mgr).Named("localmachine").WithOptions(options).
		For(&infrav1.LocalMachine{}).
		Owns(&corev1.Pod{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(infraOfMachine)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(machinesOfCluster(mgr.GetClient()))).
		Complete(outcome.Wrap(machines))
	if err != nil {
		return fmt.Errorf("adding controller localmachine: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).Named("localcluster").WithOptions(options).
		For(&infrav1.LocalCluster{}).Complete(outcome.Wrap(&ClusterReconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}))
	if err != nil {
		return fmt.Errorf("adding controller localcluster: %w", err)
	}
	err = builder.ControllerManagedBy(mgr).Named("localmachinetemplate").WithOptions(options).
		For(&infrav1.LocalMachineTemplate{}).Complete(outcome.Wrap(&TemplateReconciler{Client: mgr.GetClient(), Host: host}))
	if err != nil {
		return fmt.Errorf("adding controller localmachinetemplate: %w", err)
	}
	return nil
}

func infraOfMachine(_ context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if !ok || m.Spec.InfrastructureRef.Kind != "LocalMachine" || m.Spec.InfrastructureRef.APIGroup != infrav1.GroupVersion.Group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.InfrastructureRef.Name}}}
}

func machinesOfCluster(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		list := &infrav1.LocalMachineList{}
		if err := c.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.MatchingLabels{clusterLabel: obj.GetName()}); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "listing the machines of a cluster")
			return nil
		}
		var out []reconcile.Request
		for i := range list.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return out
	}
}

// thisHost is what the node offers that this process runs on, and with it machines.
func thisHost() (Host, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return Host{}, fmt.Errorf("asking how much memory there is: %w", err)
	}
	return Host{
		CPU:          *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		Memory:       *resource.NewQuantity(int64(info.Totalram)*int64(info.Unit)>>20<<20, resource.BinarySI),
		Architecture: runtime.GOARCH,
	}, nil
}
