package kubevirt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/kube/conditions"
	"hcp.internal/platform/internal/netpolicy"
	"hcp.internal/platform/internal/sidecar/kubeapi"
)

// Virtual machines in another cluster are bounded there by a NetworkPolicy, as those beside their control plane are here.

const (
	// maxNetworks bounds how many networks of the other cluster are read; there are two to four.
	maxNetworks = 64
	// policyPatience is how long a deletion waits for a cluster that can't be asked, or refuses.
	policyPatience = 10 * time.Minute
)

var (
	errOtherNetworks = errors.New("the cluster that runs the virtual machines refuses, or can't be asked for, its networks, which machines are kept away from: " +
		"the kubeconfig of spec.platform.kubevirt.credentials must allow to get networks.config.openshift.io there")
	errOtherPolicy = errors.New("the cluster that runs the virtual machines refuses, or can't be asked for, the NetworkPolicy of the machines: " +
		"the kubeconfig of spec.platform.kubevirt.credentials must allow to get, create, patch and delete NetworkPolicies in infraNamespace")
)

// KeepPolicy implements platform.PolicyKeeper.
func (Platform) KeepPolicy(ctx context.Context, live client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string,
	spec func(networks []netip.Prefix) networkingv1.NetworkPolicySpec,
) *metav1.Condition {
	credentials := credentialsOf(hc)
	if credentials == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, domainTimeout)
	defer cancel()
	c := keepPolicy(ctx, live, hc, hcpNamespace, spec)
	return &c
}

func keepPolicy(ctx context.Context, live client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string,
	spec func(networks []netip.Prefix) networkingv1.NetworkPolicySpec,
) metav1.Condition {
	const t = hyperv1.ValidKubeVirtInfraNetworkPolicyRBAC
	api, err := otherCluster(ctx, live, credentialsOf(hc), hc.Namespace, hcpNamespace)
	if err != nil {
		return conditions.False(t, hyperv1.InfraClusterNetworkReadFailedReason, "spec.platform.kubevirt.credentials: "+err.Error())
	}
	defer api.Close()
	networks, err := networksOf(ctx, api)
	if err != nil {
		return conditions.False(t, hyperv1.InfraClusterNetworkReadFailedReason, err.Error())
	}
	of := otherPolicies{api, credentialsOf(hc).InfraNamespace, hc.Spec.InfraID}
	if err := of.keep(ctx, spec(networks)); err != nil {
		return conditions.False(t, hyperv1.InfraClusterNetworkPolicyCreateFailedReason, err.Error())
	}
	return conditions.True(t, hyperv1.AsExpectedReason, hyperv1.AllIsWellMessage)
}

// DropPolicy implements platform.PolicyKeeper.
func (Platform) DropPolicy(ctx context.Context, live client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string, now time.Time) error {
	credentials := credentialsOf(hc)
	if credentials == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, domainTimeout)
	defer cancel()
	api, err := otherCluster(ctx, live, credentials, hc.Namespace, hcpNamespace)
	if err == nil {
		defer api.Close()
		err = otherPolicies{api, credentials.InfraNamespace, hc.Spec.InfraID}.drop(ctx)
	}
	if errors.Is(err, errNoKubeconfig) || hc.DeletionTimestamp == nil || now.Sub(hc.DeletionTimestamp.Time) >= policyPatience {
		return nil // nobody can reach that cluster any more
	}
	return err
}

// networksOf are those of the pods and Services of an OpenShift cluster; other clusters don't tell.
func networksOf(ctx context.Context, api *kubeapi.Client) (list []netip.Prefix, _ error) {
	var network struct {
		Status struct {
			ClusterNetwork []struct {
				CIDR string `json:"cidr"`
			} `json:"clusterNetwork"`
			ServiceNetwork []string `json:"serviceNetwork"`
		} `json:"status"`
	}
	err := api.Get(ctx, "/apis/config.openshift.io/v1/networks/cluster", &network)
	if kubeapi.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errOtherNetworks
	}
	var texts []string
	for _, n := range network.Status.ClusterNetwork {
		texts = append(texts, n.CIDR)
	}
	texts = append(texts, network.Status.ServiceNetwork...)
	for _, text := range texts[:min(len(texts), maxNetworks)] {
		if p, err := netip.ParsePrefix(text); err == nil {
			list = append(list, p.Masked())
		}
	}
	return list, nil
}

// otherPolicies are the NetworkPolicies of a namespace of the other cluster, in which virtual machines of several hosted clusters may be.
type otherPolicies struct {
	api                *kubeapi.Client
	namespace, infraID string
}

// names are those that the policy may have: as published, unless another hosted cluster has that.
func (o otherPolicies) names() [2]string {
	return [2]string{netpolicy.VirtLauncher, netpolicy.VirtLauncher + "-" + o.infraID}
}

func (o otherPolicies) path(name string) string {
	return "/apis/networking.k8s.io/v1/namespaces/" + url.PathEscape(o.namespace) + "/networkpolicies/" + url.PathEscape(name)
}

// read gives the policy of a name, nil when there is none, and whether it is of this hosted cluster.
func (o otherPolicies) read(ctx context.Context, name string) (_ *networkingv1.NetworkPolicy, ours bool, _ error) {
	live := &networkingv1.NetworkPolicy{}
	err := o.api.Get(ctx, o.path(name), live)
	if kubeapi.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, errOtherPolicy
	}
	return live, live.Spec.PodSelector.MatchLabels[hyperv1.InfraIDLabel] == o.infraID, nil
}

// keep writes the policy unless it is as it should be. It goes on with the one that there is, though the published name got free meanwhile, and one is enough:
// what policies allow adds up.
func (o otherPolicies) keep(ctx context.Context, spec networkingv1.NetworkPolicySpec) error {
	free, mine, more := "", "", ""
	var have *networkingv1.NetworkPolicy
	for _, name := range o.names() {
		live, ours, err := o.read(ctx, name)
		switch {
		case err != nil:
			return err
		case live == nil:
			free = cmp.Or(free, name)
		case ours && mine == "":
			mine, have = name, live
		case ours:
			more = name
		}
	}
	name := cmp.Or(mine, free)
	if name == "" {
		return fmt.Errorf("NetworkPolicy %s of namespace %s in the cluster that runs the virtual machines is not for this hosted cluster: remove it", o.names()[1], o.namespace)
	}
	if have == nil || !equality.Semantic.DeepEqual(have.Spec, spec) {
		if err := o.write(ctx, name, spec); err != nil {
			return err
		}
	}
	if more == "" {
		return nil
	}
	return o.remove(ctx, more)
}

func (o otherPolicies) write(ctx context.Context, name string, spec networkingv1.NetworkPolicySpec) error {
	raw, err := json.Marshal(&networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name, Labels: map[string]string{hyperv1.InfraIDLabel: o.infraID}},
		Spec:       spec,
	})
	if err != nil {
		return fmt.Errorf("encoding NetworkPolicy %s: %w", name, err)
	}
	if err := o.api.Apply(ctx, o.path(name), operatorName, raw); err != nil {
		return errOtherPolicy
	}
	return nil
}

func (o otherPolicies) remove(ctx context.Context, name string) error {
	if err := o.api.Delete(ctx, o.path(name)); err != nil && !kubeapi.IsNotFound(err) {
		return errOtherPolicy
	}
	return nil
}

// drop deletes those that are of this hosted cluster.
func (o otherPolicies) drop(ctx context.Context) error {
	for _, name := range o.names() {
		_, ours, err := o.read(ctx, name)
		if err != nil {
			return err
		}
		if !ours {
			continue
		}
		if err := o.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
