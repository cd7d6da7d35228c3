package create

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/progress"
)

// poolFields are the fields of a NodePool's spec that each flag decides, on every platform. A pool that exists gets those of the flags that were
// given and no others.
var poolFields = map[string][]string{
	"replicas": {"replicas"}, "node-count": {"replicas"},
	"release-image": {"release.image"}, "arch": {"arch"},
	"auto-repair": {"management.autoRepair"}, "node-upgrade-type": {"management.upgradeType"},
	"node-drain-timeout": {"nodeDrainTimeout"}, "node-volume-detach-timeout": {"nodeVolumeDetachTimeout"},
}

// machineFields are those of the flags of a platform.
var machineFields = map[hyperv1.PlatformType]map[string][]string{
	hyperv1.AWSPlatform: {
		"instance-type": {"platform.aws.instanceType"}, "instance-profile": {"platform.aws.instanceProfile"},
		"subnet-id": {"platform.aws.subnet"}, "securitygroup-id": {"platform.aws.securityGroups"},
		"root-volume-type": {"platform.aws.rootVolume.type"}, "root-volume-size": {"platform.aws.rootVolume.size"},
		"root-volume-iops":    {"platform.aws.rootVolume.iops"},
		"root-volume-kms-key": {"platform.aws.rootVolume.encrypted", "platform.aws.rootVolume.encryptionKey"},
	},
	hyperv1.AzurePlatform: {
		"instance-type": {"platform.azure.vmSize"}, "availability-zone": {"platform.azure.availabilityZone"}, "nodepool-subnet-id": {"platform.azure.subnetID"},
		"root-disk-size": {"platform.azure.osDisk.sizeGiB"}, "disk-storage-account-type": {"platform.azure.osDisk.diskStorageAccountType"},
		"disk-encryption-set-id": {"platform.azure.osDisk.encryptionSetID"}, "enable-ephemeral-disk": {"platform.azure.osDisk.persistence"},
		"encryption-at-host": {"platform.azure.encryptionAtHost"},
		"image-id":           {"platform.azure.image"}, "image-generation": {"platform.azure.image"}, "marketplace-publisher": {"platform.azure.image"},
		"marketplace-offer": {"platform.azure.image"}, "marketplace-sku": {"platform.azure.image"}, "marketplace-version": {"platform.azure.image"},
		"diagnostics-storage-account-type": {"platform.azure.diagnostics"}, "diagnostics-storage-account-uri": {"platform.azure.diagnostics"},
	},
	hyperv1.GCPPlatform: {
		"machine-type": {"platform.gcp.machineType"}, "zone": {"platform.gcp.zone"}, "subnet": {"platform.gcp.subnet"}, "boot-image": {"platform.gcp.image"},
	},
	hyperv1.KubevirtPlatform: {
		"memory": {"platform.kubevirt.compute.memory"}, "cores": {"platform.kubevirt.compute.cores"}, "qos-class": {"platform.kubevirt.compute.qosClass"},
		"root-volume-storage-class":  {"platform.kubevirt.rootVolume.persistent.storageClass"},
		"root-volume-size":           {"platform.kubevirt.rootVolume.persistent.size"},
		"root-volume-access-modes":   {"platform.kubevirt.rootVolume.persistent.accessModes"},
		"root-volume-volume-mode":    {"platform.kubevirt.rootVolume.persistent.volumeMode"},
		"root-volume-cache-strategy": {"platform.kubevirt.rootVolume.cacheStrategy"},
		"containerdisk":              {"platform.kubevirt.rootVolume.diskImage"},
		"network-multiqueue":         {"platform.kubevirt.networkInterfaceMultiqueue"},
		"additional-network":         {"platform.kubevirt.additionalNetworks"},
		"attach-default-network":     {"platform.kubevirt.attachDefaultNetwork"},
		"vm-node-selector":           {"platform.kubevirt.nodeSelector"},
		"host-device-name":           {"platform.kubevirt.hostDevices"},
	},
	hyperv1.AgentPlatform: {"agentLabelSelector": {"platform.agent.agentLabelSelector"}},
	hyperv1.OpenStackPlatform: {
		"openstack-node-flavor": {"platform.openstack.flavor"}, "openstack-node-image-name": {"platform.openstack.imageName"},
		"openstack-node-availability-zone": {"platform.openstack.availabilityZone"}, "openstack-node-additional-port": {"platform.openstack.additionalPorts"},
	},
	hyperv1.PowerVSPlatform: {
		"sys-type": {"platform.powervs.systemType"}, "proc-type": {"platform.powervs.processorType"},
		"processors": {"platform.powervs.processors"}, "memory": {"platform.powervs.memoryGiB"},
	},
}

// fieldsOf are the fields that a flag decides; none for a flag that says which pool is meant, or how to reach and print it.
func fieldsOf(platform hyperv1.PlatformType, flag string) []string {
	if fields := poolFields[flag]; fields != nil {
		return fields
	}
	return machineFields[platform][flag]
}

// changedFlags are the names of the flags that were given, in their order.
func changedFlags(fs *pflag.FlagSet) []string {
	var names []string
	fs.Visit(func(f *pflag.Flag) { names = append(names, f.Name) })
	slices.Sort(names)
	return names
}

// existingPool reads the pool; nil if there is none. It refuses one that can't become what o says.
func existingPool(ctx context.Context, c client.Client, o NodePoolOptions) (*hyperv1.NodePool, error) {
	np := &hyperv1.NodePool{}
	err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, np)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading NodePool %s/%s: %w", o.Namespace, o.Name, err)
	case np.Spec.ClusterName != o.ClusterName:
		return nil, fmt.Errorf("NodePool %s/%s belongs to HostedCluster %s: choose another --name", o.Namespace, o.Name, np.Spec.ClusterName)
	case !np.DeletionTimestamp.IsZero():
		return nil, fmt.Errorf("NodePool %s/%s is being deleted: wait with `kubectl wait --for=delete nodepool/%s --namespace %s`, or choose another --name", o.Namespace, o.Name, o.Name, o.Namespace)
	}
	return np, nil
}

// createPool posts, so that a pool that somebody else makes at the same moment stays as it is. made is false if there is one.
func createPool(ctx context.Context, c client.Client, p *progress.Printer, np *hyperv1.NodePool) (made bool, err error) {
	u, err := connect.Unstructured(c.Scheme(), np)
	if err != nil {
		return false, err
	}
	err = c.Create(ctx, u, client.FieldOwner(connect.FieldOwner))
	switch {
	case apierrors.IsAlreadyExists(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("creating %s: %w", connect.Describe(u), err)
	}
	outcome := connect.Created
	if connect.DryRunOf(c) != connect.NoDryRun {
		outcome = connect.WouldCreate
	}
	p.Printf("%s %s", outcome, connect.Describe(u))
	return true, nil
}

// changePool gives a pool that exists what the flags say that were given. Everything else stays, whoever decided it: the size that somebody scaled it to,
// the release that it runs.
//
// It is a patch and no apply, because an apply takes back what an earlier one said and this one doesn't.
func changePool(ctx context.Context, c client.Client, p *progress.Printer, existing *hyperv1.NodePool, o NodePoolOptions, given []string) error {
	before, err := connect.Unstructured(c.Scheme(), existing)
	if err != nil {
		return err
	}
	wanted, err := connect.Unstructured(c.Scheme(), nodePoolOf(o))
	if err != nil {
		return err
	}
	after := before.DeepCopy()
	changed := changeFields(after, wanted, o, given)
	if len(changed) == 0 {
		p.Printf("%s exists already: nothing is changed; it has all that the flags say", connect.Describe(before))
		return nil
	}
	if err := c.Patch(ctx, after.DeepCopy(), client.MergeFrom(before), client.FieldOwner(connect.FieldOwner)); err != nil {
		return fmt.Errorf("changing %s, which exists already, by %s: %w", connect.Describe(before), strings.Join(changed, ", "), err)
	}
	verb := "changed"
	if connect.DryRunOf(c) != connect.NoDryRun {
		verb = "would be changed"
	}
	p.Printf("%s exists already: %s by %s; everything else stays", connect.Describe(before), verb, strings.Join(changed, ", "))
	return nil
}

// changeFields takes from wanted the fields of the flags that were given, and returns the flags that change something. A flag whose empty value
// stands for what the HostedCluster has says nothing.
func changeFields(pool, wanted *unstructured.Unstructured, o NodePoolOptions, given []string) (changed []string) {
	open := o.leftOpen()
	for _, flag := range given {
		if slices.Contains(open, "--"+flag) {
			continue
		}
		changes := false
		for _, field := range fieldsOf(o.Platform, flag) {
			path := append([]string{"spec"}, strings.Split(field, ".")...)
			want, has, _ := unstructured.NestedFieldCopy(wanted.Object, path...)
			have, had, _ := unstructured.NestedFieldNoCopy(pool.Object, path...)
			switch {
			case has == had && equality.Semantic.DeepEqual(have, want):
				continue
			case has:
				// It only fails below something that is no object, which the API has nowhere.
				_ = unstructured.SetNestedField(pool.Object, want, path...)
			default:
				unstructured.RemoveNestedField(pool.Object, path...)
			}
			changes = true
		}
		if changes {
			changed = append(changed, "--"+flag)
		}
	}
	return changed
}
