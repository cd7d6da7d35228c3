package machines

import (
	"encoding/json"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

// Pool is what the objects of a NodePool are made from.
type Pool struct {
	NodePool *hyperv1.NodePool
	// Namespace of the control plane.
	Namespace            string
	InfraID, ClusterName string
	// Labels are on everything, Machines included, so that caches can be limited to them.
	Labels map[string]string
	// Now is what machines are to be made from, by this pass.
	Now Generation
	// InUse are the templates of the pool's machines that there are, the one to be changed first.
	InUse []*clusterv1.MachineTemplateSpec
	// Replicas is how many machines there are to be.
	Replicas int32
	// Floor is the fewest machines that an autoscaler may leave, whatever the pool's minimum.
	Floor int32
	// Asleep: an autoscaler is to leave the pool alone.
	Asleep bool
	// Annotations for autoscalers.
	ScaleFromZero map[string]string
	FailureDomain string
	// Interruptible machines may be taken away at any time.
	Interruptible bool
}

// Generation is what makes a machine differ from those before it.
type Generation struct {
	// UserData names the Secret.
	UserData string
	// Version of the release, without a v before it.
	Version string
	// Template refers to the machine template.
	Template clusterv1.ContractVersionedObjectReference
}

// GenerationOf is what machines of a template are made from.
func GenerationOf(t *clusterv1.MachineTemplateSpec) Generation {
	return Generation{Version: strings.TrimPrefix(t.Spec.Version, "v"), Template: t.Spec.InfrastructureRef, UserData: ptr.Deref(t.Spec.Bootstrap.DataSecretName, "")}
}

// selector is that of the pool's Machines.
func (p Pool) selector() map[string]string {
	s := Selector(p.InfraID, p.ClusterName, p.NodePool.Name)
	return map[string]string{s: s}
}

// workloadSelector is that of a MachineDeployment or MachineSet. Cluster API adds the cluster where it is missing, and only to what is made of it.
func (p Pool) workloadSelector() metav1.LabelSelector {
	s := p.selector()
	s[clusterv1.ClusterNameLabel] = p.InfraID
	return metav1.LabelSelector{MatchLabels: s}
}

// version is that of machines. Cluster API's webhooks put a v before it, and its controllers take it either way. We leave it away, as older operators do:
// Cluster API replaces each machine for that letter, and whoever goes back to an older operator would lose all of them. Where machines of this generation
// have it, it stays, for the same reason.
func (p Pool) version() string {
	for _, t := range p.InUse {
		if GenerationOf(t) == p.Now {
			return t.Spec.Version
		}
	}
	return p.Now.Version
}

func (p Pool) key() string { return p.NodePool.Namespace + "/" + p.NodePool.Name }

func (p Pool) labels() map[string]string {
	labels := maps.Clone(p.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = p.InfraID
	return labels
}

// meta is that of the objects that bear the pool's name.
func (p Pool) meta() metav1.ObjectMeta {
	annotations := map[string]string{hyperv1.NodePoolAnnotation: p.key(), MaxSizeAnnotation: "0", MinSizeAnnotation: "0"}
	if a := p.NodePool.Spec.AutoScaling; a != nil && !p.Asleep {
		annotations[MaxSizeAnnotation] = strconv.Itoa(int(a.Max))
		annotations[MinSizeAnnotation] = strconv.Itoa(int(least(a, p.Floor)))
	}
	maps.Copy(annotations, p.ScaleFromZero)
	return metav1.ObjectMeta{Namespace: p.Namespace, Name: p.NodePool.Name, Labels: p.labels(), Annotations: annotations}
}

// template is that of the Machines. Labels and taints are changed on machines that there are, too; Cluster API copies metadata without
// replacing anything.
func (p Pool) template() clusterv1.MachineTemplateSpec {
	spec := p.NodePool.Spec
	labels, annotations := p.labels(), map[string]string{hyperv1.NodePoolAnnotation: p.key()}
	maps.Copy(labels, p.selector())
	for k, v := range spec.NodeLabels {
		labels[hyperv1.NodeLabelPrefix+k] = v
	}
	if p.Interruptible {
		labels[hyperv1.InterruptibleInstanceLabel] = ""
	}
	if len(spec.Taints) > 0 {
		annotations[hyperv1.NodePoolTaintsAnnotation] = string(mustJSON(Taints(spec.Taints)))
	}
	if spec.Management.UpgradeType != hyperv1.UpgradeTypeInPlace {
		annotations[hyperv1.NodePoolReleaseVersionAnnotation] = p.Now.Version
	}
	return clusterv1.MachineTemplateSpec{
		ObjectMeta: clusterv1.ObjectMeta{Labels: labels, Annotations: annotations},
		Spec: clusterv1.MachineSpec{
			ClusterName:       p.InfraID,
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To(p.Now.UserData)},
			InfrastructureRef: p.Now.Template,
			Version:           p.version(),
			FailureDomain:     p.FailureDomain,
			Deletion: clusterv1.MachineDeletionSpec{
				NodeDrainTimeoutSeconds:        seconds(spec.NodeDrainTimeout),
				NodeVolumeDetachTimeoutSeconds: seconds(spec.NodeVolumeDetachTimeout),
				NodeDeletionTimeoutSeconds:     ptr.To[int32](nodeDeletionTimeoutSeconds),
			},
		},
	}
}

// Taints are those of the pool in the form of nodes.
func Taints(taints []hyperv1.Taint) []corev1.Taint {
	var list []corev1.Taint
	for _, t := range taints {
		list = append(list, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
	return list
}

// mustJSON encodes lists of strings, which can't fail.
func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// seconds rounds up, so that a short time is not no limit. Unset, 0 and less mean no limit.
func seconds(d *metav1.Duration) *int32 {
	if d == nil || d.Duration <= 0 {
		return nil
	}
	return ptr.To(int32(min((d.Duration+time.Second-1)/time.Second, math.MaxInt32)))
}

// Deployment is the MachineDeployment of a pool whose machines are replaced.
func (p Pool) Deployment() *clusterv1.MachineDeployment {
	return &clusterv1.MachineDeployment{
		ObjectMeta: p.meta(),
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: p.InfraID,
			Replicas:    ptr.To(p.Replicas),
			Rollout:     clusterv1.MachineDeploymentRolloutSpec{Strategy: strategy(p.NodePool.Spec.Management.Replace)},
			Selector:    p.workloadSelector(),
			Template:    p.template(),
		},
	}
}

func strategy(replace *hyperv1.ReplaceUpgrade) clusterv1.MachineDeploymentRolloutStrategy {
	if replace != nil && replace.Strategy == hyperv1.UpgradeStrategyOnDelete {
		return clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}
	}
	surge, unavailable := RollingUpdate(replace)
	return clusterv1.MachineDeploymentRolloutStrategy{
		Type:          clusterv1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: &surge, MaxUnavailable: &unavailable},
	}
}

// RollingUpdate gives the two bounds with their defaults.
func RollingUpdate(replace *hyperv1.ReplaceUpgrade) (surge, unavailable intstr.IntOrString) {
	surge, unavailable = intstr.FromInt32(1), intstr.FromInt32(0)
	if replace != nil && replace.RollingUpdate != nil {
		surge = ptr.Deref(replace.RollingUpdate.MaxSurge, surge)
		unavailable = ptr.Deref(replace.RollingUpdate.MaxUnavailable, unavailable)
	}
	return surge, unavailable
}

// Versions are the bookkeeping of an upgrade in place: what machines have, what they are to have.
type Versions struct{ Current, Target string }

// Set is the MachineSet of a pool whose machines are changed in place.
func (p Pool) Set(v Versions) *clusterv1.MachineSet {
	meta := p.meta()
	meta.Annotations[hyperv1.NodePoolMaxUnavailableAnnotation] = strconv.Itoa(MaxUnavailable(p.NodePool.Spec.Management.InPlace, p.Replicas))
	meta.Annotations[hyperv1.NodePoolTargetConfigVersionAnnotation] = v.Target
	return &clusterv1.MachineSet{
		ObjectMeta: meta,
		Spec: clusterv1.MachineSetSpec{
			ClusterName: p.InfraID,
			Replicas:    ptr.To(p.Replicas),
			Selector:    p.workloadSelector(),
			Template:    p.template(),
			Deletion:    clusterv1.MachineSetDeletionSpec{Order: machineSetDeletionRandom},
		},
	}
}

// MaxUnavailable is how many machines are changed in place at a time: at least one, or nothing would ever change.
func MaxUnavailable(inPlace *hyperv1.InPlaceUpgrade, replicas int32) int {
	limit := intstr.FromInt32(1)
	if inPlace != nil {
		limit = ptr.Deref(inPlace.MaxUnavailable, limit)
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&limit, int(replicas), false)
	if err != nil {
		return 1 // the value was refused by a condition, and an old MachineSet keeps going
	}
	return max(n, 1)
}
