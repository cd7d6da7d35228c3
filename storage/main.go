// Command local-storage makes PersistentVolumes from folders of the node that it runs on: the default storage class of hosted
// clusters of Kubernetes releases, which have no storage of a cloud.
//
// It is a DaemonSet on the Kubernetes project's library for provisioners. Each process serves claims whose pod the scheduler
// put on its node, so there is no leader, and nothing is ever run as a helper pod with rights of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// gcPercent: this process runs on every node and is nearly always idle; rather collect often than hold memory.
const gcPercent = 30

type options struct {
	node        string
	folder      string
	provisioner string
	kubeconfig  string
}

func main() {
	debug.SetGCPercent(gcPercent)
	klog.InitFlags(nil)
	var o options
	flag.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "name of this node (env NODE_NAME)")
	flag.StringVar(&o.folder, "folder", "/var/lib/local-storage", "where volumes are made; it must have the same path on the node and here")
	flag.StringVar(&o.provisioner, "provisioner", "hypershift.openshift.io/local-storage", "name by which storage classes call for this program")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig; default: the cluster that this runs in")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		klog.ErrorS(err, "local-storage ends")
		klog.Flush()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.node == "" {
		return errors.New("--node must be given: the name of the node that this runs on")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("reading kubeconfig %q: %w", o.kubeconfig, err)
	}
	cfg.AcceptContentTypes, cfg.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	cfg.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	root, err := os.OpenRoot(o.folder)
	if err != nil {
		return fmt.Errorf("opening the folder of volumes: %w", err)
	}
	defer root.Close()
	p := &provisioner{node: o.node, root: root, nodes: client.CoreV1().Nodes()}
	klog.InfoS("making volumes", "node", o.node, "folder", o.folder, "provisioner", o.provisioner)
	controller.NewProvisionController(ctx, client, o.provisioner, p,
		controller.LeaderElection(false), // each node's claims have one server
		controller.AddFinalizer(true),    // a volume whose object is gone would keep its folder forever
		controller.MetricsPort(0),
		controller.Threadiness(2),
	).Run(ctx)
	return nil
}
