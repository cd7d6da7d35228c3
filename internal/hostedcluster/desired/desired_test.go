package desired

import (
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/hostedcluster/state"
	"hcp.internal/platform/internal/hostedcluster/statetest"
	"hcp.internal/platform/internal/pki"
)

func TestHostedControlPlane(t *testing.T) {
	// Fields that the two kinds share have the same name; what is renamed or left out on purpose is listed.
	renamed := map[string]string{"Release": "ReleaseImage", "ControlPlaneRelease": "ControlPlaneReleaseImage"}
	t.Run("When a field exists in both kinds it should be copied", func(t *testing.T) {
		g := NewWithT(t)
		target := reflect.TypeFor[hyperv1.HostedControlPlaneSpec]()
		for i := range reflect.TypeFor[hyperv1.HostedClusterSpec]().NumField() {
			field := reflect.TypeFor[hyperv1.HostedClusterSpec]().Field(i)
			name := field.Name
			if r, ok := renamed[name]; ok {
				name = r
			}
			_, ok := target.FieldByName(name)
			g.Expect(ok).To(BeTrue(), "HostedControlPlane has no %s", name)
			obs := statetest.Seen()
			before := HostedControlPlane(obs).Spec
			fill(reflect.ValueOf(&obs.HC.Spec).Elem().Field(i))
			after := HostedControlPlane(obs).Spec
			if name == "PullSecret" {
				continue // always the name of the copy
			}
			g.Expect(reflect.DeepEqual(reflect.ValueOf(before).FieldByName(name).Interface(), reflect.ValueOf(after).FieldByName(name).Interface())).To(BeFalse(), "%s is not copied", name)
		}
	})
	t.Run("When a mirrored annotation is removed it should go from the HostedControlPlane, too", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen(func(obs *state.Observed) {
			obs.HC.Annotations = map[string]string{hyperv1.KubeAPIServerGOGCAnnotation: "50", "resource-request-override.hypershift.openshift.io/etcd.etcd": "cpu=1", "other": "x"}
		})
		g.Expect(HostedControlPlane(obs).Annotations).To(Equal(map[string]string{hyperv1.HostedClusterAnnotation: "clusters/demo", hyperv1.KubeAPIServerGOGCAnnotation: "50",
			"resource-request-override.hypershift.openshift.io/etcd.etcd": "cpu=1", hyperv1.DisableClusterAutoscalerAnnotation: "true"}))
		obs.HC.Annotations = nil
		g.Expect(HostedControlPlane(obs).Annotations).NotTo(HaveKey(hyperv1.KubeAPIServerGOGCAnnotation))
	})
	t.Run("When metrics are to be forwarded by the old annotation it should do so, unless the field says otherwise", func(t *testing.T) {
		g := NewWithT(t)
		forwards := func(mode hyperv1.MetricsForwardingMode, annotated bool) (hyperv1.MetricsForwardingMode, bool) {
			hcp := HostedControlPlane(statetest.Seen(func(obs *state.Observed) {
				obs.HC.Spec.Monitoring.MetricsForwarding.Mode = mode
				if annotated {
					obs.HC.Annotations[hyperv1.EnableMetricsForwarding] = ""
				}
			}))
			_, told := hcp.Annotations[hyperv1.EnableMetricsForwarding]
			return hcp.Spec.Monitoring.MetricsForwarding.Mode, told
		}
		for _, tc := range []struct {
			mode             hyperv1.MetricsForwardingMode
			annotated, after bool
			want             hyperv1.MetricsForwardingMode
		}{
			{"", false, false, ""}, {"", true, true, hyperv1.MetricsForwardingForward}, {hyperv1.MetricsForwardingForward, false, true, hyperv1.MetricsForwardingForward},
			{hyperv1.MetricsForwardingNone, true, false, hyperv1.MetricsForwardingNone},
		} {
			mode, told := forwards(tc.mode, tc.annotated)
			g.Expect(mode).To(Equal(tc.want), "%+v", tc)
			g.Expect(told).To(Equal(tc.after), "%+v", tc)
		}
	})
	t.Run("When the validity of certificates is set it should reach who makes them", func(t *testing.T) {
		obs := statetest.Seen(func(obs *state.Observed) {
			obs.HC.Annotations = map[string]string{pki.ValidityAnnotation: "2160h", pki.RenewalAnnotation: "0.3"}
		})
		NewWithT(t).Expect(HostedControlPlane(obs).Annotations).To(And(HaveKeyWithValue(pki.ValidityAnnotation, "2160h"), HaveKeyWithValue(pki.RenewalAnnotation, "0.3")))
	})
	t.Run("When a restart is ordered it should be passed on once, so that a later one stays", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen(func(obs *state.Observed) { obs.HC.Annotations[hyperv1.RestartDateAnnotation] = "one" })
		obs.HCP = HostedControlPlane(obs)
		g.Expect(obs.HCP.Annotations).To(And(HaveKeyWithValue(hyperv1.RestartDateAnnotation, "one"), HaveKeyWithValue(hyperv1.PreviousRestartDateAnnotation, "one")))
		obs.HCP.Annotations[hyperv1.RestartDateAnnotation] = "by-certificate"
		obs.HCP = HostedControlPlane(obs)
		g.Expect(obs.HCP.Annotations).To(HaveKeyWithValue(hyperv1.RestartDateAnnotation, "by-certificate"))
		obs.HC.Annotations[hyperv1.RestartDateAnnotation] = "two"
		g.Expect(HostedControlPlane(obs).Annotations).To(HaveKeyWithValue(hyperv1.RestartDateAnnotation, "two"))
	})
	t.Run("When encryption and audit are taken out of the spec they should stay", func(t *testing.T) {
		g := NewWithT(t)
		obs := statetest.Seen(func(obs *state.Observed) {
			obs.HCP = &hyperv1.HostedControlPlane{Spec: hyperv1.HostedControlPlaneSpec{AuditWebhook: &corev1.LocalObjectReference{Name: "a"}, SecretEncryption: &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC}}}
		})
		g.Expect(HostedControlPlane(obs).Spec.AuditWebhook).To(HaveValue(Equal(corev1.LocalObjectReference{Name: "a"})))
		g.Expect(HostedControlPlane(obs).Spec.SecretEncryption).NotTo(BeNil())
	})
}

// fill makes a value different from what it was.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString(v.String() + "filled")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf("v"))
	case reflect.Struct:
		for i := range v.NumField() {
			switch v.Field(i).Kind() {
			case reflect.String, reflect.Slice, reflect.Pointer:
				fill(v.Field(i))
				return
			}
		}
		if v.NumField() > 0 {
			fill(v.Field(0))
		}
	}
}

func TestPodSecurity(t *testing.T) {
	override := func(o *state.Observed, level string) {
		o.HC.Annotations[hyperv1.PodSecurityAdmissionLabelOverrideAnnotation] = level
	}
	local := func(o *state.Observed) { o.HC.Spec.Platform.Type = hyperv1.LocalPlatform }
	for name, tc := range map[string]struct {
		world func(*state.Observed)
		want  string
	}{
		"When nobody says anything it should be restricted":                           {world: func(*state.Observed) {}, want: "restricted"},
		"When the operator's image is not ours it should be restricted all the same":  {world: func(o *state.Observed) { o.OperatorLabels = map[string]string{} }, want: "restricted"},
		"When machines are pods of the namespace it should be privileged":             {world: local, want: "privileged"},
		"When the annotation names a level it should be that":                         {world: func(o *state.Observed) { override(o, "baseline") }, want: "baseline"},
		"When the annotation names no level it should be restricted":                  {world: func(o *state.Observed) { override(o, "none") }, want: "restricted"},
		"When the annotation and the platform disagree it should be the annotation's": {world: func(o *state.Observed) { local(o); override(o, "restricted") }, want: "restricted"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(podSecurity(statetest.Seen(tc.world).HC)).To(HaveKeyWithValue(hyperv1.PodSecurityEnforceLabel, tc.want))
		})
	}
}

func TestPrometheusRights(t *testing.T) {
	of := func(namespace string) (*rbacv1.Role, *rbacv1.RoleBinding) {
		objs := PrometheusRights(statetest.Seen(func(obs *state.Observed) { obs.Management.Prometheus = namespace }))
		return objs[0].(*rbacv1.Role), objs[1].(*rbacv1.RoleBinding)
	}
	t.Run("When the management cluster is one of OpenShift its monitoring should find Pods of the control plane", func(t *testing.T) {
		g := NewWithT(t)
		role, binding := of("")
		g.Expect([]string{role.Namespace, role.Name}).To(Equal([]string{"clusters-demo", "openshift-prometheus"}))
		g.Expect(role.Rules[0]).To(Equal(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services", "endpoints", "pods"}, Verbs: []string{"get", "list", "watch"}}))
		g.Expect(binding.RoleRef.Name).To(Equal(role.Name))
		g.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "openshift-monitoring", Name: "prometheus-k8s"}}))
	})
	t.Run("When Prometheus runs elsewhere it should have the rights", func(t *testing.T) {
		_, binding := of("monitoring")
		NewWithT(t).Expect(binding.Subjects[0].Namespace).To(Equal("monitoring"))
	})
}

func TestKubeVirtStorageRights(t *testing.T) {
	of := func(change func(*state.Observed)) []client.Object {
		return KubeVirtStorageRights(statetest.Seen(func(obs *state.Observed) {
			obs.HC.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: &hyperv1.KubevirtPlatformSpec{}}
			obs.Target.Kubernetes = false
			change(obs)
		}))
	}
	t.Run("When virtual machines run in the management cluster the storage driver should look at its volumes", func(t *testing.T) {
		g := NewWithT(t)
		objs := of(func(*state.Observed) {})
		g.Expect(objs).To(HaveLen(2))
		role, binding := objs[0].(*rbacv1.ClusterRole), objs[1].(*rbacv1.ClusterRoleBinding)
		g.Expect(role.Name).To(Equal("clusters-demo-kubevirt-csi-cluster"))
		g.Expect(role.Labels).To(Equal(map[string]string{"hypershift.openshift.io/owner.namespace": "clusters", "hypershift.openshift.io/owner.name": "demo"}))
		g.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "clusters-demo", Name: "kubevirt-csi"}}))
	})
	for name, change := range map[string]func(*state.Observed){
		"they run elsewhere": func(obs *state.Observed) {
			obs.HC.Spec.Platform.Kubevirt.Credentials = &hyperv1.KubevirtPlatformCredentials{}
		},
		"there is no storage driver": func(obs *state.Observed) {
			obs.HC.Spec.Platform.Kubevirt.StorageDriver = &hyperv1.KubevirtStorageDriverSpec{Type: "None"}
		},
		"the release is one of Kubernetes":        func(obs *state.Observed) { obs.Target.Kubernetes = true },
		"the platform is another":                 func(obs *state.Observed) { obs.HC.Spec.Platform = hyperv1.PlatformSpec{Type: hyperv1.NonePlatform} },
		"it is not known yet what the release is": func(obs *state.Observed) { obs.Target = nil },
	} {
		t.Run("When "+name+" nobody should get rights to volumes", func(t *testing.T) {
			NewWithT(t).Expect(of(change)).To(BeEmpty())
		})
	}
}
