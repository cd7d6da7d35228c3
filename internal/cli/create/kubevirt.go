package create

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
)

var kubevirtTexts = texts{
	short: "Create a hosted cluster whose workers are virtual machines of a KubeVirt cluster",
	long: `Create a hosted cluster whose workers are virtual machines: of the management cluster, or with --infra-kubeconfig-file of
another KubeVirt cluster. Without --base-domain, names of applications lie below the ingress domain of the KubeVirt cluster.`,
	example: `  hypershift create cluster kubevirt --name demo --pull-secret pull-secret.json --node-pool-replicas 2 --memory 16Gi --cores 4 \
    --release-image registry.example.com/ocp/release:4.22

  # On another KubeVirt cluster, with its fast storage class under the name default
  hypershift create cluster kubevirt --name demo --pull-secret pull-secret.json --infra-kubeconfig-file infra.kubeconfig --infra-namespace demo \
    --infra-storage-class-mapping fast/default --release-image registry.example.com/ocp/release:4.22`,
	poolExample: `  hypershift create nodepool kubevirt --cluster-name demo --name demo-large --replicas 3 --memory 32Gi --cores 8 --root-volume-size 64`,
}

// kubevirt is platform KubeVirt.
type kubevirt struct {
	machines *kubevirtMachines

	kubeconfigPath, namespace       string
	storageClasses, snapshotClasses []string
	address, strategy               string

	kubeconfig []byte
	storage    []hyperv1.KubevirtStorageClassMapping
	snapshots  []hyperv1.KubevirtVolumeSnapshotClassMapping
}

func newKubevirt() *kubevirt { return &kubevirt{machines: newKubevirtMachines()} }

// Ways in which services are published on KubeVirt.
const (
	publishIngress  = "Ingress"
	publishNodePort = "NodePort"
)

func infraKubeconfigName(cluster string) string { return cluster + "-infra-credentials" }

func (k *kubevirt) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&k.kubeconfigPath, "infra-kubeconfig-file", "", "Kubeconfig of the KubeVirt cluster, unless it is the management cluster")
	fs.StringVar(&k.namespace, "infra-namespace", "", "Namespace of virtual machines in the cluster of --infra-kubeconfig-file")
	fs.StringArrayVar(&k.storageClasses, "infra-storage-class-mapping", nil, "StorageClass to offer in the hosted cluster, as infra/guest[,group=…] (repeatable)")
	fs.StringArrayVar(&k.snapshotClasses, "infra-volumesnapshot-class-mapping", nil, "VolumeSnapshotClass to offer in the hosted cluster, as infra/guest[,group=…] (repeatable)")
	fs.StringVar(&k.address, "api-server-address", "", "Publish by node port at this host name or address, with --service-publishing-strategy NodePort (default: the address of a node of the management cluster)")
	fs.StringVar(&k.strategy, "service-publishing-strategy", publishIngress, "How services are published: Ingress (load balancer and Routes) or NodePort")
	k.machines.addFlags(fs)
}

func (k *kubevirt) load(fs *pflag.FlagSet, o *Options) error {
	errs := []error{k.machines.load(fs, &o.NodePool)}
	switch {
	case k.strategy != publishIngress && k.strategy != publishNodePort:
		errs = append(errs, fmt.Errorf("--service-publishing-strategy %q: must be %s or %s", k.strategy, publishIngress, publishNodePort))
	case k.strategy == publishIngress && k.address != "":
		errs = append(errs, errors.New("--api-server-address needs --service-publishing-strategy NodePort"))
	}
	o.APIServerAddress, o.NodePorts = k.address, k.strategy == publishNodePort
	if o.infraJSON != "" {
		errs = append(errs, errors.New("--infra-json: platform KubeVirt is described by flags; leave it out"))
	}
	if (k.kubeconfigPath == "") != (k.namespace == "") {
		errs = append(errs, errors.New("--infra-kubeconfig-file and --infra-namespace go together: give both or none"))
	}
	if k.kubeconfigPath != "" {
		errs = append(errs, k.readKubeconfig())
	}
	for _, text := range k.storageClasses {
		infra, guest, group, err := parseMapping("--infra-storage-class-mapping", text)
		errs = append(errs, err)
		k.storage = append(k.storage, hyperv1.KubevirtStorageClassMapping{InfraStorageClassName: infra, GuestStorageClassName: guest, Group: group})
	}
	for _, text := range k.snapshotClasses {
		infra, guest, group, err := parseMapping("--infra-volumesnapshot-class-mapping", text)
		errs = append(errs, err)
		k.snapshots = append(k.snapshots, hyperv1.KubevirtVolumeSnapshotClassMapping{InfraVolumeSnapshotClassName: infra, GuestVolumeSnapshotClassName: guest, Group: group})
	}
	return errors.Join(errs...)
}

func (k *kubevirt) readKubeconfig() error {
	raw, err := connect.ReadFile(k.kubeconfigPath)
	if err != nil {
		return fmt.Errorf("--infra-kubeconfig-file: %w", err)
	}
	// The parser's error may quote the content, and the content is a key.
	if config, err := clientcmd.Load(raw); err != nil || len(config.Clusters) == 0 {
		return fmt.Errorf("--infra-kubeconfig-file %s: holds no kubeconfig", k.kubeconfigPath)
	}
	k.kubeconfig = raw
	return nil
}

// parseMapping parses "infra/guest" and "infra/guest,group=name".
func parseMapping(flag, text string) (infra, guest, group string, err error) {
	classes, option, _ := strings.Cut(text, ",")
	infra, guest, ok := strings.Cut(classes, "/")
	group, grouped := strings.CutPrefix(option, "group=")
	if !ok || infra == "" || guest == "" || option != "" && (!grouped || group == "") {
		return "", "", "", fmt.Errorf("%s %q: must be infra/guest or infra/guest,group=name", flag, text)
	}
	return infra, guest, group, nil
}

func (k *kubevirt) cluster(o Options, _ Generated, hc *hyperv1.HostedCluster) {
	spec := &hyperv1.KubevirtPlatformSpec{}
	if o.BaseDomain == "" {
		spec.BaseDomainPassthrough = ptr.To(true)
	}
	if k.kubeconfig != nil {
		spec.Credentials = &hyperv1.KubevirtPlatformCredentials{
			InfraNamespace:        k.namespace,
			InfraKubeConfigSecret: &hyperv1.KubeconfigSecretRef{Name: infraKubeconfigName(o.Name), Key: "kubeconfig"},
		}
	}
	if len(k.storage)+len(k.snapshots) > 0 {
		spec.StorageDriver = &hyperv1.KubevirtStorageDriverSpec{
			Type:   hyperv1.ManualKubevirtStorageDriverConfigType,
			Manual: &hyperv1.KubevirtManualStorageDriverConfig{StorageClassMapping: k.storage, VolumeSnapshotClassMapping: k.snapshots},
		}
	}
	hc.Spec.Platform.Kubevirt = spec
}

func (k *kubevirt) objects(o Options, g Generated) []client.Object {
	if k.kubeconfig == nil {
		return nil
	}
	return []client.Object{&corev1.Secret{
		ObjectMeta: secretMeta(o, g, infraKubeconfigName(o.Name)),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"kubeconfig": k.kubeconfig},
	}}
}

func (k *kubevirt) pools(_ Options, _ Generated, shared *hyperv1.NodePool) []*hyperv1.NodePool {
	k.machines.fill(shared)
	return []*hyperv1.NodePool{shared}
}
