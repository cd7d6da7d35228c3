package autoscaler

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/process"
)

// settings are the flags that are not Options.
type settings struct {
	kubeconfig, cloudConfig, discovery, cloudProvider, address, healthAddr string
	interval                                                               time.Duration
}

// discoveryPrefix is the only form of --node-group-auto-discovery that there is here.
const discoveryPrefix = "clusterapi:namespace="

// Command is cluster-autoscaler. Its flags are those of the cluster autoscaler, as far as the component gives them.
func Command() *cobra.Command {
	o, s := Defaults(), settings{}
	cmd := &cobra.Command{
		Use:   Name,
		Short: "Add machines for pods that fit nowhere, and remove those that are not needed",
		Example: `  # on your machine, against two clusters
  cluster-autoscaler --node-group-auto-discovery=clusterapi:namespace=clusters-demo --cloud-config=management.kubeconfig \
    --kubeconfig=demo.kubeconfig --address=0 --health-addr=0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace, ok := strings.CutPrefix(s.discovery, discoveryPrefix)
			if !ok || namespace == "" || strings.ContainsAny(namespace, ",:=") {
				return fmt.Errorf("--node-group-auto-discovery is %q: must be %sNAMESPACE, the namespace of the hosted control plane", s.discovery, discoveryPrefix)
			}
			if s.cloudProvider != "clusterapi" {
				return fmt.Errorf("--cloud-provider is %q: must be clusterapi", s.cloudProvider)
			}
			if s.kubeconfig == "" {
				return errors.New("--kubeconfig must be given: a kubeconfig of the hosted cluster")
			}
			if s.interval < time.Second {
				return errors.New("--scan-interval: must be at least 1s")
			}
			if err := o.validate(); err != nil {
				return err
			}
			management, err := process.Connect(cmd.Context(), s.cloudConfig, FieldOwner)
			if err != nil {
				return err
			}
			hosted, err := hostedConfig(s.kubeconfig)
			if err != nil {
				return err
			}
			return run(cmd, management, hosted, &Loop{Namespace: namespace, Options: o, Interval: s.interval}, s)
		},
	}
	f := cmd.Flags()
	o.addFlags(f)
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig of the hosted cluster")
	f.StringVar(&s.cloudConfig, "cloud-config", "", process.KubeconfigUsage)
	f.StringVar(&s.discovery, "node-group-auto-discovery", discoveryPrefix+os.Getenv("MY_NAMESPACE"), discoveryPrefix+"NAMESPACE of the hosted control plane")
	f.StringVar(&s.cloudProvider, "cloud-provider", "clusterapi", "clusterapi, the only one")
	f.StringVar(&s.address, "address", ":8085", "address of the metrics; 0 for none")
	f.StringVar(&s.healthAddr, "health-addr", "0", "address of /healthz; 0 for none")
	f.DurationVar(&s.interval, "scan-interval", 10*time.Second, "time between two looks at the clusters")
	f.Bool("clusterapi-cloud-config-authoritative", true, "for the cluster autoscaler; it is always so here")
	f.Bool("skip-nodes-with-local-storage", false, "for the cluster autoscaler; such nodes are never skipped here")
	f.Int("max-graceful-termination-sec", 0, "for the cluster autoscaler; Cluster API drains nodes here, with the pods' own times")
	f.Int("v", 0, "for the cluster autoscaler; here it is --log-level")
	return cmd
}

func newScheme() (*runtime.Scheme, error) {
	return process.Scheme(clusterv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, autoscalingv1.AddToScheme)
}

func run(cmd *cobra.Command, management, hosted *rest.Config, l *Loop, s settings) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	mgr, err := process.NewManager(management, process.Options{Name: FieldOwner, Scheme: scheme, Serve: process.Serve{Metrics: s.address, Health: s.healthAddr}})
	if err != nil {
		return err
	}
	if l.Management, err = client.New(management, client.Options{Scheme: scheme, HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()}); err != nil {
		return fmt.Errorf("building a client of the management cluster: %w", err)
	}
	if l.Hosted, err = client.New(hosted, client.Options{Scheme: scheme, Mapper: hostedMapper(scheme)}); err != nil {
		return fmt.Errorf("building a client of the hosted cluster: %w", err)
	}
	l.Clock = clock.RealClock{}
	for _, side := range []struct {
		cfg *rest.Config
		to  *recorder
	}{{management, &l.ManagementEvents}, {hosted, &l.HostedEvents}} {
		set, err := kubernetes.NewForConfig(side.cfg)
		if err != nil {
			return fmt.Errorf("building a client for events: %w", err)
		}
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: set.EventsV1()})
		if err := broadcaster.StartRecordingToSinkWithContext(cmd.Context()); err != nil {
			return fmt.Errorf("starting to send events: %w", err)
		}
		defer broadcaster.Shutdown()
		*side.to = broadcaster.NewRecorder(scheme, FieldOwner)
	}
	if err := mgr.Add(l); err != nil {
		return fmt.Errorf("adding the loop: %w", err)
	}
	ctrl.Log.Info("starting", "namespace", l.Namespace)
	return mgr.Start(cmd.Context())
}
