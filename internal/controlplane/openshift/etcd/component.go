// Package etcd is the component that keeps the data of a hosted cluster, as OpenShift builds it: the main etcd, and one for each shard of it.
package etcd

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
	"hcp.internal/platform/internal/kube/conditions"
)

// Name of the component of the main etcd.
const Name = names.Etcd

// Names inside the pod, and of the ServiceAccount of pods that defragment.
const (
	container        = "etcd"
	metricsContainer = "etcd-metrics"
	healthContainer  = "healthz"
	defrag           = "etcd-defrag"
	defragAccount    = "etcd-defrag-controller"
	dataVolume       = "data"
)

// snapshotRestored is the condition of a HostedControlPlane that started from a snapshot and has finished doing so.
const snapshotRestored = "EtcdSnapshotRestored"

//go:embed assets
var assets embed.FS

// NewComponent makes the component of the main etcd.
func NewComponent() *component.WorkloadComponent { return newComponent(mainCluster) }

// defragFiles are the manifests of what a defragmenting container may do.
var defragFiles = []string{
	"defrag-role.yaml", "defrag-rolebinding.yaml", "defrag-serviceaccount.yaml", "ensure-dns-rolebinding-defrag.yaml",
}

// registerFiles are the manifests of what all pods may do.
var registerFiles = []string{"ensure-dns-role.yaml", "ensure-dns-rolebinding.yaml", "etcd-serviceaccount.yaml"}

func newComponent(c cluster) *component.WorkloadComponent {
	b := component.NewStatefulSetComponent(c.name, assets, component.Options{MultiZoneSpread: true, NeedsManagementKASAccess: true}).
		WithTemplateData(c.templateData()).
		WithPredicate(func(ctx component.WorkloadContext) (bool, error) { return kit.ManagedEtcd(ctx.HCP), nil }).
		WithAdaptFunction(c.adaptStatefulSet)
	for _, file := range defragFiles {
		if c.shard {
			b.WithManifestAdapter(file, component.SkipManifest())
			continue
		}
		b.WithManifestAdapter(file, component.When(anyDefragmented))
	}
	if !c.shard {
		return b.WithManifestAdapter("pdb.yaml", component.AdaptPodDisruptionBudget()).Build()
	}
	for _, file := range registerFiles {
		b.WithManifestAdapter(file, component.SkipManifest())
	}
	survives := func(ctx component.WorkloadContext) bool { return c.members(ctx) >= quorumOfTwo }
	return b.WithManifestAdapter("pdb.yaml", component.When(c.defragmented), component.AdaptPodDisruptionBudgetOf(survives)).Build()
}

func (c cluster) adaptStatefulSet(ctx component.WorkloadContext, s *appsv1.StatefulSet) error {
	pod := &s.Spec.Template.Spec
	if c.shard {
		if _, known := c.spec(ctx.HCP); !known {
			return fmt.Errorf("rendering %s: the HostedControlPlane has no such shard", c.name)
		}
		s.Spec.Replicas = ptr.To(int32(c.members(ctx)))
	}
	c.adaptServer(ctx, component.Container(pod, container))
	c.adaptMetrics(ctx, component.Container(pod, metricsContainer))
	if tls := tlsOf(ctx.HCP); !c.shard {
		health := component.Container(pod, healthContainer)
		health.Args = append(health.Args, tls.args("--listen-tls-min-version=")...)
	}
	if ok, _ := c.defragmented(ctx); ok {
		c.addDefrag(ctx, pod)
	} else if !c.shard {
		pod.ServiceAccountName = Name
	}
	own, _ := c.spec(ctx.HCP)
	shards.Schedule(ctx.HCP.Spec.Etcd, own.Scheduling, pod)
	c.adaptRestore(ctx.HCP, pod)
	return c.adaptStorage(ctx.HCP, s)
}

// tls is a TLS security profile in etcd's words.
type tls struct {
	min, suites string
}

// tlsOf knows what etcd knows: minimum versions 1.2 and 1.3.
func tlsOf(hcp *hyperv1.HostedControlPlane) tls {
	profile := kit.TLSOf(hcp)
	min := "TLS1.2"
	if profile.MinVersion == "VersionTLS13" {
		min = "TLS1.3"
	}
	return tls{min: min, suites: strings.Join(profile.CipherSuites, ",")}
}

func (t tls) args(minFlag string) []string {
	args := []string{minFlag + t.min}
	if t.suites != "" {
		args = append(args, "--listen-cipher-suites="+t.suites)
	}
	return args
}

func (c cluster) adaptServer(ctx component.WorkloadContext, main *corev1.Container) {
	var founders []string
	for i := range c.members(ctx) {
		member := fmt.Sprintf("%s-%d", c.name, i)
		founders = append(founders, fmt.Sprintf("%s=https://%s.%s.%s.svc:2380", member, member, c.discovery, ctx.HCP.Namespace))
	}
	kit.SetEnv(main, "ETCD_INITIAL_CLUSTER", strings.Join(founders, ","))
	if t := tlsOf(ctx.HCP); !c.shard {
		kit.SetEnv(main, "ETCD_TLS_MIN_VERSION", t.min)
		if t.suites != "" {
			kit.SetEnv(main, "ETCD_CIPHER_SUITES", t.suites)
		}
	}
	if settings.IPv6(ctx.HCP) {
		kit.SetEnv(main, "ETCD_LISTEN_PEER_URLS", "https://[$(POD_IP)]:2380")
		kit.SetEnv(main, "ETCD_LISTEN_CLIENT_URLS", "https://[$(POD_IP)]:2379,https://localhost:2379")
		kit.SetEnv(main, "ETCD_LISTEN_METRICS_URLS", "https://[::]:2382")
	}
}

func (c cluster) adaptMetrics(ctx component.WorkloadContext, metrics *corev1.Container) {
	local, all := "127.0.0.1", "0.0.0.0"
	if settings.IPv6(ctx.HCP) {
		local, all = "[::1]", "[::]"
	}
	metrics.Args = append(metrics.Args, "--listen-addr="+local+":2383", "--metrics-addr=https://"+all+":2381", "--advertise-client-url=")
	if !c.shard {
		metrics.Args = append(metrics.Args, tlsOf(ctx.HCP).args("--tls-min-version=")...)
	}
}

// addDefrag adds the container that gives back the space of what was deleted, one member at a time.
func (c cluster) addDefrag(ctx component.WorkloadContext, pod *corev1.PodSpec) {
	command := []string{"control-plane-operator", "etcd-defrag-controller", "--namespace", ctx.HCP.Namespace}
	if c.shard {
		command = append(command, "--leader-election-id", "etcd-defrag-"+c.shardName+"-leader-elect")
	}
	pod.Containers = append(pod.Containers, corev1.Container{
		Name: defrag, Image: component.ImageControlPlaneOperator, ImagePullPolicy: corev1.PullIfNotPresent, Command: command,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{{Name: "client-tls", MountPath: "/etc/etcd/tls/client"}, {Name: "etcd-ca", MountPath: "/etc/etcd/tls/etcd-ca"}},
	})
	pod.ServiceAccountName = defragAccount
}

// restoreScript loads a snapshot into an empty folder of data. A download that is XML is the error of an object store. Each member is told who the others are: without that, each
// would found a cluster of its own. Where etcd's tool can, the revision is raised beyond all that clients of the lost cluster have seen, so that their watches begin anew.
const restoreScript = `
if [ -n "$(ls -A /var/lib/data 2>/dev/null)" ]; then
  echo "there is data already"
  exit 0
fi
staging=/var/lib/restore
rm -rf "${staging}"
mkdir -p "${staging}"
curl --silent --show-error --fail --location --output "${staging}/snapshot" "${RESTORE_URL_ETCD}"
if [ "$(head -c 5 "${staging}/snapshot")" = "<?xml" ]; then
  cat "${staging}/snapshot"
  exit 1
fi
tool=etcdctl
if command -v etcdutl >/dev/null; then
  tool=etcdutl
fi
set -- --data-dir="${staging}/data" --name="${HOSTNAME}" --initial-cluster="${ETCD_INITIAL_CLUSTER}" --initial-advertise-peer-urls="${ETCD_INITIAL_ADVERTISE_PEER_URLS}"
if [ -n "${ETCD_INITIAL_CLUSTER_TOKEN:-}" ]; then
  set -- "$@" --initial-cluster-token="${ETCD_INITIAL_CLUSTER_TOKEN}"
fi
if "${tool}" snapshot restore --help 2>&1 | grep -q -e --bump-revision; then
  set -- "$@" --bump-revision=1000000000 --mark-compacted
fi
ETCDCTL_API=3 "${tool}" snapshot restore "${staging}/snapshot" "$@"
rm -rf /var/lib/data
mv "${staging}/data" /var/lib/data
rm -rf "${staging}"
`

// restoreEnv is what restoreScript has to know of the member, in the order of the manifest, as values refer to earlier ones.
var restoreEnv = []string{"NAMESPACE", "HOSTNAME", "ETCD_INITIAL_CLUSTER", "ETCD_INITIAL_CLUSTER_TOKEN", "ETCD_INITIAL_ADVERTISE_PEER_URLS"}

// adaptRestore adds the init container that loads a snapshot, until that is done. Shards start empty.
func (c cluster) adaptRestore(hcp *hyperv1.HostedControlPlane, pod *corev1.PodSpec) {
	if c.shard || hcp.Spec.Etcd.Managed == nil || len(hcp.Spec.Etcd.Managed.Storage.RestoreSnapshotURL) == 0 || conditions.IsTrue(hcp.Status.Conditions, snapshotRestored) {
		return
	}
	init := corev1.Container{
		Name: "etcd-init", Image: "etcd", Command: []string{"/bin/sh", "-ce", restoreScript},
		Env:          []corev1.EnvVar{{Name: "RESTORE_URL_ETCD", Value: hcp.Spec.Etcd.Managed.Storage.RestoreSnapshotURL[0]}},
		VolumeMounts: []corev1.VolumeMount{{Name: dataVolume, MountPath: "/var/lib"}},
	}
	for _, e := range component.Container(pod, container).Env {
		if slices.Contains(restoreEnv, e.Name) {
			init.Env = append(init.Env, e)
		}
	}
	// Before a member looks whether it has to leave the others and join them anew: with data it doesn't.
	at := slices.IndexFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == "reset-member" })
	pod.InitContainers = slices.Insert(pod.InitContainers, max(at, 0), init)
}
