package component

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
)

func TestReplicasAndStrategy(t *testing.T) {
	dedicated := annotate(topologyAnnotation, dedicatedRequestServing)
	for name, tc := range map[string]struct {
		component string
		options   Options
		hcp       func(*hyperv1.HostedControlPlane)
		adapt     func(WorkloadContext, *appsv1.Deployment) error
		replicas  int32
		surge     int // -1: no rolling update is set
		lost      int
	}{
		"When replicas are single it should run once":                             {component: "web", replicas: 1, surge: -1},
		"When it is highly available it should run twice and add before it takes": {component: "web", hcp: highlyAvailable, replicas: 2, surge: 1, lost: 0},
		"When it is critical for the API it should run three times":               {component: "kube-apiserver", hcp: highlyAvailable, replicas: 3, surge: 0, lost: 1},
		"When it is a shard of etcd it should run three times":                    {component: "etcd-events", hcp: highlyAvailable, replicas: 3, surge: 0, lost: 1},
		"When it serves requests on nodes of its own it should run twice":         {component: "kube-apiserver", options: Options{RequestServing: true}, hcp: both(highlyAvailable, dedicated), replicas: 2, surge: 1, lost: 1},
		"When the component says how often it should run that often": {component: "web", hcp: highlyAvailable, replicas: 1, surge: -1,
			adapt: func(_ WorkloadContext, d *appsv1.Deployment) error { d.Spec.Replicas = ptr.To[int32](1); return nil }},
		"When somebody debugs it it should not run": {component: "web", hcp: both(highlyAvailable, annotate(debugDeploymentsAnnotation, "other, web")), replicas: 0, surge: -1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := NewDeploymentComponent(tc.component, folder(nil), tc.options)
			if tc.adapt != nil {
				b.WithAdaptFunction(tc.adapt)
			}
			d := deploymentOf(t, b.Build(), contextOf(t, tc.hcp))
			g.Expect(d.Spec.Replicas).To(HaveValue(Equal(tc.replicas)))
			g.Expect(d.Spec.RevisionHistoryLimit).To(HaveValue(BeEquivalentTo(2)))
			if tc.surge < 0 {
				g.Expect(d.Spec.Strategy.RollingUpdate).To(BeNil())
				return
			}
			g.Expect(d.Spec.Strategy.RollingUpdate.MaxSurge.IntValue()).To(Equal(tc.surge))
			g.Expect(d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue()).To(Equal(tc.lost))
		})
	}
}

func TestAntiAffinity(t *testing.T) {
	live := func(release string) client.Object {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
		d.Spec.Template.Annotations = map[string]string{ReleaseImageAnnotation: release}
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: zoneKey}}, {PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: hostnameKey}},
			},
		}}
		return d
	}
	serving := func(d client.Object) client.Object {
		d.(*appsv1.Deployment).Spec.Template.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}
		return d
	}
	dedicated := both(highlyAvailable, annotate(topologyAnnotation, dedicatedRequestServing))
	onKubeVirt := func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Platform.Type = hyperv1.KubevirtPlatform }
	for name, tc := range map[string]struct {
		hcp          func(*hyperv1.HostedControlPlane)
		serves       bool // requests of users
		nodes, zones int
		live         client.Object
		required     []string
		preferred    []string
		lost         int // how many pods an update may take away
	}{
		"When replicas are single it should not matter":                          {nodes: 1, zones: 1},
		"When there are enough nodes and zones it should be required":            {hcp: highlyAvailable, nodes: 3, zones: 3, required: []string{zoneKey, hostnameKey}},
		"When the management cluster is not known it should be required":         {hcp: highlyAvailable, required: []string{zoneKey, hostnameKey}},
		"When there is one zone it should only be preferred for zones":           {hcp: highlyAvailable, nodes: 3, zones: 1, required: []string{hostnameKey}, preferred: []string{zoneKey}},
		"When there is one node it should be preferred":                          {hcp: highlyAvailable, nodes: 1, zones: 1, preferred: []string{zoneKey, hostnameKey}},
		"When the platform is KubeVirt it should be preferred for zones":         {hcp: both(highlyAvailable, onKubeVirt), nodes: 3, zones: 3, required: []string{hostnameKey}, preferred: []string{zoneKey}},
		"When nodes were added it should stay as it was until the next release":  {hcp: highlyAvailable, nodes: 3, zones: 3, live: live("release:1"), preferred: []string{zoneKey, hostnameKey}},
		"When the release changes it should look at the nodes again":             {hcp: highlyAvailable, nodes: 3, zones: 3, live: live("release:0"), required: []string{zoneKey, hostnameKey}},
		"When a pod has each zone an update should end one first":                {hcp: highlyAvailable, nodes: 5, zones: 2, required: []string{zoneKey, hostnameKey}, lost: 1},
		"When a pod has each node an update should end one first":                {hcp: highlyAvailable, nodes: 2, zones: 1, required: []string{hostnameKey}, preferred: []string{zoneKey}, lost: 1},
		"When others have nodes of their own it should be as before":             {hcp: dedicated, nodes: 3, zones: 3, required: []string{zoneKey, hostnameKey}},
		"When it has nodes of its own it should leave zones to these":            {hcp: dedicated, serves: true, nodes: 1, zones: 1, required: []string{hostnameKey}, preferred: []string{zoneKey}, lost: 1},
		"When it has nodes of its own in an unknown place it should be required": {hcp: dedicated, serves: true, required: []string{zoneKey, hostnameKey}, lost: 1},
		"When it gets nodes of its own it should look again":                     {hcp: dedicated, serves: true, nodes: 3, zones: 3, live: live("release:1"), required: []string{hostnameKey}, preferred: []string{zoneKey}, lost: 1},
		"When it had nodes of its own before it should stay as it was":           {hcp: dedicated, serves: true, nodes: 3, zones: 3, live: serving(live("release:1")), preferred: []string{zoneKey, hostnameKey}, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var objs []client.Object
			if tc.live != nil {
				objs = append(objs, tc.live)
			}
			ctx := contextOf(t, tc.hcp, objs...)
			ctx.Management = Management{Nodes: tc.nodes, Zones: tc.zones}
			d := deploymentOf(t, NewDeploymentComponent("web", folder(nil), Options{MultiZoneSpread: true, RequestServing: tc.serves}).Build(), ctx)
			if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil {
				g.Expect(rolling.MaxUnavailable.IntValue()).To(Equal(tc.lost))
			}
			var required, preferred []string
			if rule := d.Spec.Template.Spec.Affinity.PodAntiAffinity; rule != nil {
				for _, term := range rule.RequiredDuringSchedulingIgnoredDuringExecution {
					required = append(required, term.TopologyKey)
					g.Expect(term.LabelSelector.MatchLabels).To(Equal(d.Spec.Template.Labels))
				}
				for _, term := range rule.PreferredDuringSchedulingIgnoredDuringExecution {
					preferred = append(preferred, term.PodAffinityTerm.TopologyKey)
				}
			}
			g.Expect(required).To(Equal(tc.required))
			g.Expect(preferred).To(Equal(tc.preferred))
		})
	}
}

func TestScheduling(t *testing.T) {
	t.Run("When nodes are kept for request-serving pods it should ask for them", func(t *testing.T) {
		g := NewWithT(t)
		hcp := both(highlyAvailable, annotate(topologyAnnotation, dedicatedRequestServing), annotate(additionalSelectorAnnotation, "size=large,pair=7"))
		d := deploymentOf(t, NewDeploymentComponent("web", folder(nil), Options{RequestServing: true}).Build(), contextOf(t, hcp))
		pod := d.Spec.Template.Spec
		keys := map[string]string{}
		for _, e := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions {
			keys[e.Key] = strings.Join(e.Values, ",")
		}
		g.Expect(keys).To(Equal(map[string]string{RequestServingLabel: "true", clusterNodeLabel: "ns", "size": "large", "pair": "7"}))
		g.Expect(pod.Tolerations).To(HaveLen(3))
	})
	t.Run("When the additional selector is malformed it should say so", func(t *testing.T) {
		hcp := both(annotate(topologyAnnotation, dedicatedRequestServing), annotate(additionalSelectorAnnotation, "large"))
		_, err := NewDeploymentComponent("web", folder(nil), Options{RequestServing: true}).Build().Render(contextOf(t, hcp))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`"large" is not key=value`)))
	})
	t.Run("When requests are overridden it should merge them into the named container only", func(t *testing.T) {
		g := NewWithT(t)
		hcp := both(annotate(resourceOverridePrefix+"web.main", "memory=1Gi,aro.openshift.io/swift-nic=1"), annotate(resourceOverridePrefix+"other.main", "cpu=9"), annotate(resourceOverridePrefix+"web.absent", "cpu=9"))
		c := deploymentOf(t, NewDeploymentComponent("web", folder(nil), Options{}).Build(), contextOf(t, hcp)).Spec.Template.Spec.Containers[0]
		g.Expect(c.Resources.Requests.Cpu().String()).To(Equal("10m"))
		g.Expect(c.Resources.Requests.Memory().String()).To(Equal("1Gi"))
		g.Expect(c.Resources.Limits).To(HaveLen(1))
	})
	t.Run("When the name of an override would be longer than an annotation's may be it should do with the component's", func(t *testing.T) {
		g := NewWithT(t)
		const long = "openshift-route-controller-manager"
		hcp := both(annotate(resourceOverridePrefix+long, "memory=1Gi"), annotate(resourceOverridePrefix+"web", "memory=1Gi"))
		scopeOf := func(name string) *scope {
			c := NewDeploymentComponent(name, folder(nil), Options{}).Build()
			s := &scope{ctx: contextOf(t, hcp), c: c, template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name}}}}}
			g.Expect(resourceOverrides(s)).To(Succeed())
			return s
		}
		g.Expect(scopeOf(long).template.Spec.Containers[0].Resources.Requests.Memory().String()).To(Equal("1Gi"))
		g.Expect(scopeOf("web").template.Spec.Containers[0].Resources.Requests).To(BeEmpty(), "web.web is short enough")
	})
	t.Run("When an override is malformed it should say so", func(t *testing.T) {
		_, err := NewDeploymentComponent("web", folder(nil), Options{}).Build().Render(contextOf(t, annotate(resourceOverridePrefix+"web.main", "cpu=lots")))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`"cpu=lots" is not a list of resource=quantity`)))
	})
	for name, tc := range map[string]struct{ component, annotation, want string }{
		"When it is etcd it should go last":                              {component: "etcd", want: "hypershift-etcd"},
		"When it is critical for the API it should go before etcd":       {component: "kube-apiserver", want: "hypershift-api-critical"},
		"When it is anything else it should go first":                    {component: "web", want: "hypershift-control-plane"},
		"When the user names a class for it it should have that":         {component: "etcd", annotation: etcdPriorityAnnotation, want: "mine"},
		"When the user names a class for others it should not have that": {component: "web", annotation: etcdPriorityAnnotation, want: "hypershift-control-plane"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deploymentOf(t, NewDeploymentComponent(tc.component, folder(nil), Options{}).Build(), contextOf(t, annotate(tc.annotation, "mine")))
			NewWithT(t).Expect(d.Spec.Template.Spec.PriorityClassName).To(Equal(tc.want))
		})
	}
}
