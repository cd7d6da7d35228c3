package hostedcontrolplane

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/encryption"
	"hcp.internal/platform/internal/endpoints"
	"hcp.internal/platform/internal/kube/conditions"
)

// publication is the plan of the first round: the Services, whose addresses everything else waits for. The zero value does nothing.
type publication struct {
	// acts is false when the control plane is to stay as it is: it is paused, or asks for what the management cluster cannot do. There are no
	// further rounds then.
	acts    bool
	objects []client.Object
	// claims are made if they are not there, and left as they are. A new control plane has them before the StatefulSets that they are for.
	claims []*corev1.PersistentVolumeClaim
	// remove are those that must not exist.
	remove []client.Object
}

// planPublication also lets pods of the default ServiceAccount pull images.
func planPublication(obs Observed) publication {
	if obs.Pause.Active || obs.Invalid != nil {
		return publication{}
	}
	objs := []client.Object{&corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Namespace: obs.HCP.Namespace, Name: defaultServiceAccount},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: names.PullSecret}},
	}}
	services := endpoints.Services(obs.HCP)
	p := publication{acts: true}
	switch obs.Flavour {
	case kubernetes:
		services = append(services, endpoints.KubernetesServices(obs.HCP)...)
		if obs.New {
			p.claims, _ = etcd.Claims(obs.HCP) // the component of etcd tells what is wrong with them
		}
	case openShift:
		services = append(services, endpoints.PayloadServices(obs.HCP, kit.OAuthEnabled(obs.HCP))...)
	}
	for _, svc := range services {
		objs = append(objs, svc)
	}
	p.objects = objs
	for _, name := range endpoints.Unwanted(obs.HCP) {
		p.remove = append(p.remove, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: obs.HCP.Namespace, Name: name}})
	}
	if obs.Flavour == openShift {
		p.addRouting(obs)
	}
	for _, obj := range p.objects[1:] {
		obj.SetOwnerReferences([]metav1.OwnerReference{ownerReference(obs.HCP)})
	}
	return p
}

// addRouting adds the Services of the control plane's router, and Routes.
func (p *publication) addRouting(obs Observed) {
	oauth := kit.OAuthEnabled(obs.HCP)
	services := endpoints.RouterServices(obs.HCP, obs.Routing, oauth)
	for _, svc := range services.Apply {
		p.objects = append(p.objects, svc)
	}
	for _, name := range services.Delete {
		p.remove = append(p.remove, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: obs.HCP.Namespace, Name: name}})
	}
	if !obs.Routing.Kind {
		return
	}
	routes := endpoints.Routes(obs.HCP, obs.Routing, oauth)
	for _, route := range routes.Apply {
		p.objects = append(p.objects, route)
	}
	for _, name := range routes.Delete {
		if _, there := obs.RoutesFound[name]; there {
			p.remove = append(p.remove, routeNamed(obs.HCP.Namespace, name))
		}
	}
}

// rolloutPlan is that of the last round: which components are brought to what. Each of them is planned when its turn comes (component.Plan),
// because it goes by what those before it have written: reports, which keep the order of upgrades, and configuration, which it hashes.
type rolloutPlan struct {
	context    component.WorkloadContext // without Context and Reader, which are the pass's
	components []component.Component     // in their order
}

// planRollout is made once the releases are known and there are certificates for the published addresses. process is what the process
// itself brings.
func planRollout(obs Observed, components []component.Component, process component.WorkloadContext) rolloutPlan {
	c := process
	c.HCP, c.Release, c.UserRelease, c.Infra = obs.HCP, obs.Release, obs.UserRelease, obs.Infra
	c.Management, c.Trouble, c.OpenID, c.Catalogs = obs.Management, obs.trouble, obs.OpenID, obs.Catalogs
	return rolloutPlan{context: c, components: components}
}

// missingImages are the tags that components of hcp cannot do without, of those that the release lacks.
func missingImages(hcp *hyperv1.HostedControlPlane, lacking []string) []string {
	if hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged {
		lacking = slices.DeleteFunc(lacking, func(tag string) bool { return tag == names.Etcd })
	}
	return lacking
}

// recheckAfter is when something changes by itself: the pause ends, a certificate is due.
func recheckAfter(obs Observed, now time.Time) time.Duration {
	after := recheckUnready
	if obs.HCP.Status.Ready || conditions.IsTrue(obs.HCP.Status.Conditions, hyperv1.HostedClusterHibernated) {
		after = recheckReady
	}
	if !obs.Pause.Until.IsZero() {
		return max(min(obs.Pause.Left(now), time.Hour), time.Second)
	}
	if obs.Renew > 0 {
		after = min(after, obs.Renew)
	}
	if obs.AskAgain > 0 {
		after = min(after, obs.AskAgain)
	}
	if len(obs.Troubles) > 0 {
		after = min(after, recheckUnready) // pods are not watched
	}
	if rotates(obs.HCP) {
		after = min(after, recheckRotation)
	}
	return after
}

// rotates says whether kube-apiserver's encryption keys are to change. The next step waits until the last pod with the present ones has ended,
// which is no event here: pods are many, and not watched.
func rotates(hcp *hyperv1.HostedControlPlane) bool { return encryption.UnderWay(hcp) }
