package translate

import (
	"testing"

	. "github.com/onsi/gomega"
)

// in gives the request of a path to a collection or object.
func in(t interface{ Fatalf(string, ...any) }, method, path string) *Request {
	r, err := Parse(method, path, "")
	if err != nil {
		t.Fatalf("Parse(%s): %v", path, err)
	}
	return &r
}

func translate(t testing.TB, p Plan, body string) string {
	t.Helper()
	out, err := Bytes(p, nil, []byte(body))
	if err != nil {
		t.Fatalf("Bytes(%s): %v", body, err)
	}
	return string(out)
}

const (
	core = "/api/v1/namespaces/n/"
	capi = "/apis/cluster.x-k8s.io/v1beta2/namespaces/n/"
)

// TestVectors is the worked examples of the specification, in both directions.
func TestVectors(t *testing.T) {
	for name, tc := range map[string]struct{ method, path, view, stored string }{
		"When a Secret is owned by a Cluster it should rename the owner only": {"POST", core + "secrets",
			`{"apiVersion":"v1","kind":"Secret","type":"cluster.x-k8s.io/secret","metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"c"},"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"c","uid":"u"}]}}`,
			`{"apiVersion":"v1","kind":"Secret","type":"cluster.x-k8s.io/secret","metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"c"},"ownerReferences":[{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","kind":"Cluster","name":"c","uid":"u"}]}}`},
		"When a Machine names its bootstrap config by group it should rename that, and no annotation or finalizer": {"PUT", capi + "machines/m",
			`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"annotations":{"cluster.x-k8s.io/cloned-from-groupkind":"AWSMachineTemplate.infrastructure.cluster.x-k8s.io"},"finalizers":["machine.cluster.x-k8s.io"]},"spec":{"bootstrap":{"configRef":{"apiGroup":"bootstrap.cluster.x-k8s.io","kind":"K","name":"k"}}}}`,
			`{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","kind":"Machine","metadata":{"annotations":{"cluster.x-k8s.io/cloned-from-groupkind":"AWSMachineTemplate.infrastructure.cluster.x-k8s.io"},"finalizers":["machine.cluster.x-k8s.io"]},"spec":{"bootstrap":{"configRef":{"apiGroup":"bootstrap.cluster.hypershift.openshift.io","kind":"K","name":"k"}}}}`},
		"When a HostedControlPlane is owned by a Cluster it should rename the owner and no label": {"PUT", "/apis/hypershift.openshift.io/v1beta1/namespaces/n/hostedcontrolplanes/h",
			`{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"c"},"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta1"}]},"spec":{"configuration":{"apiVersion":"cluster.x-k8s.io/v1beta1"}}}`,
			`{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"c"},"ownerReferences":[{"apiVersion":"cluster.hypershift.openshift.io/v1beta1"}]},"spec":{"configuration":{"apiVersion":"cluster.x-k8s.io/v1beta1"}}}`},
		"When a Role names groups it should rename those of Cluster API": {"POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles",
			`{"rules":[{"apiGroups":["cluster.x-k8s.io","infrastructure.cluster.x-k8s.io",""],"resourceNames":["a.cluster.x-k8s.io"],"resources":["*"],"verbs":["*"]},{"resourceNames":["machines.cluster.x-k8s.io"],"resources":["customresourcedefinitions/status"]}]}`,
			`{"rules":[{"apiGroups":["cluster.hypershift.openshift.io","infrastructure.cluster.hypershift.openshift.io",""],"resourceNames":["a.cluster.x-k8s.io"],"resources":["*"],"verbs":["*"]},{"resourceNames":["machines.cluster.hypershift.openshift.io"],"resources":["customresourcedefinitions/status"]}]}`},
		"When a ConfigMap holds a manifest it should leave it alone": {"POST", core + "configmaps",
			`{"data":{"manifest":"apiVersion: cluster.x-k8s.io/v1beta1"}}`, `{"data":{"manifest":"apiVersion: cluster.x-k8s.io/v1beta1"}}`},
		"When a Status says what was not found it should rename group and message": {"GET", capi + "machines/x",
			`{"kind":"Status","details":{"name":"x","group":"cluster.x-k8s.io","kind":"machines"},"message":"machines.cluster.x-k8s.io \"x\" not found"}`,
			`{"kind":"Status","details":{"name":"x","group":"cluster.hypershift.openshift.io","kind":"machines"},"message":"machines.cluster.hypershift.openshift.io \"x\" not found"}`},
		"When a Status says that a definition was not found it should rename its name, whatever it is called": {"GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nothing.cluster.x-k8s.io",
			`{"kind":"Status","details":{"name":"nothing.cluster.x-k8s.io","group":"apiextensions.k8s.io","kind":"customresourcedefinitions"},"message":"customresourcedefinitions.apiextensions.k8s.io \"nothing.cluster.x-k8s.io\" not found"}`,
			`{"kind":"Status","details":{"name":"nothing.cluster.hypershift.openshift.io","group":"apiextensions.k8s.io","kind":"customresourcedefinitions"},"message":"customresourcedefinitions.apiextensions.k8s.io \"nothing.cluster.hypershift.openshift.io\" not found"}`},
		"When a Status is about a HostedCluster it should leave it alone": {"GET", "/apis/hypershift.openshift.io/v1beta1/namespaces/n/hostedclusters/x",
			`{"kind":"Status","message":"hostedclusters.hypershift.openshift.io \"x\" not found"}`, `{"kind":"Status","message":"hostedclusters.hypershift.openshift.io \"x\" not found"}`},
		"When an access review asks for a group it should rename it": {"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			`{"spec":{"resourceAttributes":{"group":"cluster.x-k8s.io","resource":"machines"}}}`,
			`{"spec":{"resourceAttributes":{"group":"cluster.hypershift.openshift.io","resource":"machines"}}}`},
		"When a definition's metadata is read it should rename the name and no label": {"GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/awsclusters.infrastructure.cluster.x-k8s.io",
			`{"kind":"PartialObjectMetadata","metadata":{"name":"awsclusters.infrastructure.cluster.x-k8s.io","labels":{"cluster.x-k8s.io/v1beta1":"v1beta2"}}}`,
			`{"kind":"PartialObjectMetadata","metadata":{"name":"awsclusters.infrastructure.cluster.hypershift.openshift.io","labels":{"cluster.x-k8s.io/v1beta1":"v1beta2"}}}`},
		"When a ClusterClass patches templates it should rename selectors and no values": {"PUT", capi + "clusterclasses/c",
			`{"spec":{"patches":[{"definitions":[{"selector":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1"},"jsonPatches":[{"op":"add","path":"/x","value":{"apiVersion":"cluster.x-k8s.io/v1beta1"}}]}]}]}}`,
			`{"spec":{"patches":[{"definitions":[{"selector":{"apiVersion":"infrastructure.cluster.hypershift.openshift.io/v1beta1"},"jsonPatches":[{"op":"add","path":"/x","value":{"apiVersion":"cluster.x-k8s.io/v1beta1"}}]}]}]}}`},
		"When an extension's hook names its protocol it should leave it alone": {"PUT", "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs/e",
			`{"status":{"handlers":[{"requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"}}]}}`, `{"status":{"handlers":[{"requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"}}]}}`},
		"When a quota counts machines it should rename the key": {"POST", core + "resourcequotas",
			`{"spec":{"hard":{"count/machines.cluster.x-k8s.io":"5","pods":"3"}}}`, `{"spec":{"hard":{"count/machines.cluster.hypershift.openshift.io":"5","pods":"3"}}}`},
		"When labels and annotations are called like fields it should leave them alone": {"PUT", capi + "machines/m",
			`{"metadata":{"annotations":{"apiVersion":"cluster.x-k8s.io/v1beta1"},"labels":{"apiGroup":"cluster.x-k8s.io"}},"spec":{"selector":{"matchLabels":{"apiGroup":"cluster.x-k8s.io"}}}}`,
			`{"metadata":{"annotations":{"apiVersion":"cluster.x-k8s.io/v1beta1"},"labels":{"apiGroup":"cluster.x-k8s.io"}},"spec":{"selector":{"matchLabels":{"apiGroup":"cluster.x-k8s.io"}}}}`},
		"When a ConfigMap is owned by the platform's Cluster it should show it under the private name": {"PUT", core + "configmaps/c",
			`{"metadata":{"ownerReferences":[{"apiVersion":"cluster.hypershift.openshift.io/v1beta1"}]}}`, `{"metadata":{"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta1"}]}}`},
		"When an Event is about a Machine it should rename what it is about": {"POST", core + "events",
			`{"involvedObject":{"apiVersion":"cluster.x-k8s.io/v1beta2"},"message":"cluster.x-k8s.io/v1beta2 is mine"}`,
			`{"involvedObject":{"apiVersion":"cluster.hypershift.openshift.io/v1beta2"},"message":"cluster.x-k8s.io/v1beta2 is mine"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r := in(t, tc.method, tc.path)
			g.Expect(translate(t, r.Body(), tc.view)).To(Equal(tc.stored))
			g.Expect(translate(t, r.Answer(false), tc.stored)).To(Equal(tc.view))
		})
	}
}

func TestPatchVectors(t *testing.T) {
	r := in(t, "PATCH", capi+"machines/m")
	for view, stored := range map[string]string{
		`[{"op":"add","path":"/metadata/ownerReferences/-","value":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster"}},{"op":"test","path":"/metadata/finalizers/0","value":"machine.cluster.x-k8s.io"}]`: `[{"op":"add","path":"/metadata/ownerReferences/-","value":{"apiVersion":"cluster.hypershift.openshift.io/v1beta2","kind":"Cluster"}},{"op":"test","path":"/metadata/finalizers/0","value":"machine.cluster.x-k8s.io"}]`,
		`[{"op":"replace","path":"/spec/infrastructureRef/apiGroup","value":"infrastructure.cluster.x-k8s.io"}]`:                                                                                                  `[{"op":"replace","path":"/spec/infrastructureRef/apiGroup","value":"infrastructure.cluster.hypershift.openshift.io"}]`,
		`[ {"value" : {"apiGroup":"cluster.x-k8s.io"}, "path":"/spec/infrastructureRef" , "op":"test"} ]`:                                                                                                         `[ {"value" : {"apiGroup":"cluster.hypershift.openshift.io"}, "path":"/spec/infrastructureRef" , "op":"test"} ]`,
		`[{"op":"add","path":"/metadata/labels/cluster.x-k8s.io~1v1","value":"cluster.x-k8s.io"}]`:                                                                                                                `[{"op":"add","path":"/metadata/labels/cluster.x-k8s.io~1v1","value":"cluster.x-k8s.io"}]`,
		`[{"op":"move","from":"/metadata/ownerReferences/0","path":"/metadata/ownerReferences/1"}]`:                                                                                                               `[{"op":"move","from":"/metadata/ownerReferences/0","path":"/metadata/ownerReferences/1"}]`,
		`not JSON`: `not JSON`,
	} {
		g := NewWithT(t)
		g.Expect(patched(t, r.Body(), view)).To(Equal(stored))
		g.Expect(patched(t, r.Body(), stored)).To(Equal(view))
	}
	quota := in(t, "PATCH", core+"resourcequotas/q")
	NewWithT(t).Expect(patched(t, quota.Body(), `[{"op":"remove","path":"/spec/hard/count~1machines.cluster.x-k8s.io"}]`)).
		To(Equal(`[{"op":"remove","path":"/spec/hard/count~1machines.cluster.hypershift.openshift.io"}]`))
}

func TestPathVectors(t *testing.T) {
	for view, stored := range map[string]string{
		"/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/n/awsmachines?limit=500":                                                   "/apis/infrastructure.cluster.hypershift.openshift.io/v1beta2/namespaces/n/awsmachines?limit=500",
		"/api/v1/namespaces/n/events?fieldSelector=involvedObject.apiVersion%3Dcluster.x-k8s.io%2Fv1beta1%2CinvolvedObject.name%3Da&limit=1": "/api/v1/namespaces/n/events?fieldSelector=involvedObject.apiVersion%3Dcluster.hypershift.openshift.io%2Fv1beta1%2CinvolvedObject.name%3Da&limit=1",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.cluster.x-k8s.io":                                                  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.cluster.hypershift.openshift.io",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.name%3Dmachines.cluster.x-k8s.io":                    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.name%3Dmachines.cluster.hypershift.openshift.io",
		"/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.cluster.x-k8s.io":                                                               "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.cluster.hypershift.openshift.io",
		"/apis/cluster.x-k8s.io":                                                                           "/apis/cluster.hypershift.openshift.io",
		"/apis/cluster.x-k8s.io/v1beta1/":                                                                  "/apis/cluster.hypershift.openshift.io/v1beta1/",
		"/openapi/v3/apis/cluster.x-k8s.io/v1":                                                             "/openapi/v3/apis/cluster.hypershift.openshift.io/v1",
		"/apis/mycluster.x-k8s.io/v1/foos/cluster.x-k8s.io":                                                "/apis/mycluster.x-k8s.io/v1/foos/cluster.x-k8s.io",
		"/apis/cluster.x-k8s.io/v1beta1/watch/namespaces/n/machines/m%3Ax":                                 "/apis/cluster.hypershift.openshift.io/v1beta1/watch/namespaces/n/machines/m%3Ax",
		"/api/v1/nodes/n/proxy/..//apis/cluster.x-k8s.io%2F":                                               "/api/v1/nodes/n/proxy/..//apis/cluster.x-k8s.io%2F",
		"/apis/hostedcluster.hypershift.openshift.io/v1/x?labelSelector=cluster.x-k8s.io/cluster-name%3Dc": "/apis/hostedcluster.hypershift.openshift.io/v1/x?labelSelector=cluster.x-k8s.io/cluster-name%3Dc",
	} {
		for from, to := range map[string]string{view: stored, stored: view} {
			path, query, ask := cut(from)
			r, err := Parse("GET", path, query)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred(), from)
			g.Expect(r.Path + ask + r.Query).To(Equal(to))
		}
	}
	for _, path := range []string{"", "apis", "//apis/cluster.x-k8s.io/v1/machines", "/apis//cluster.x-k8s.io/v1", "/apis/cluster.x-k8s.io%2Fv1beta1/machines",
		"/apis/x/../cluster.x-k8s.io/v1/machines", "/apis/%2e%2e/x", "/ap%69s/cluster.x-k8s.io/v1", "/./apis/x", "/version/../apis/x", "/logs/%2e%2e/apis/cluster.x-k8s.io/v1/machines", "/apis/a%zz/v1"} {
		_, err := Parse("GET", path, "")
		NewWithT(t).Expect(err).To(MatchError(ErrPath), path)
	}
	escaped, err := Parse("GET", "/apis/cluster%2Ex-k8s.io/v1/machines/a%3Ab", "")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(escaped.Path).To(Equal("/apis/cluster.hypershift.openshift.io/v1/machines/a%3Ab"))
}

func cut(u string) (path, query, ask string) {
	for i := range len(u) {
		if u[i] == '?' {
			return u[:i], u[i+1:], "?"
		}
	}
	return u, "", ""
}

func patched(t testing.TB, p Plan, patch string) string {
	t.Helper()
	out, err := JSONPatch(p, nil, []byte(patch))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(out)
}
