package etcd

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/sidecar/etcdinit"
)

func contextOf(t *testing.T, mutate func(*hyperv1.HostedControlPlane), objs ...client.Object) component.WorkloadContext {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, hyperv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	hcp := &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo"}}
	hcp.Spec.InfraID = "demo-abcde"
	hcp.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
	hcp.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{}}
	if mutate != nil {
		mutate(hcp)
	}
	return component.WorkloadContext{
		Context: t.Context(), HCP: hcp, Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).Build(),
		Release: &release.Release{Version: "1.36.3", Images: map[string]string{"etcd": "r/etcd:1", "controlplane-operator": "r/hcp:1"}},
	}
}

func render(t *testing.T, ctx component.WorkloadContext) (*appsv1.StatefulSet, map[string]client.Object) {
	t.Helper()
	out, err := NewComponent().Render(ctx)
	if err != nil {
		t.Fatal(err)
	}
	manifests := map[string]client.Object{}
	for _, m := range out.Manifests {
		manifests[m.GetName()] = m
	}
	return out.Workload.(*appsv1.StatefulSet), manifests
}

func initNames(s *appsv1.StatefulSet) []string {
	names := []string{}
	for _, c := range s.Spec.Template.Spec.InitContainers {
		names = append(names, c.Name)
	}
	return names
}

func singleReplica(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.ControllerAvailabilityPolicy = hyperv1.SingleReplica
}

func fromSnapshot(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.Etcd.Managed.Storage.RestoreSnapshotURL = []string{"https://backups/demo.db"}
}

func TestMembers(t *testing.T) {
	t.Run("When replicas are single a member should start without init containers", func(t *testing.T) {
		g := NewWithT(t)
		s, manifests := render(t, contextOf(t, singleReplica))
		g.Expect(s.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(initNames(s)).To(BeEmpty())
		g.Expect(s.Spec.Template.Spec.Containers[0].Lifecycle).To(BeNil(), "there is no other to send clients to meanwhile")
		g.Expect(s.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--config-file=/etc/etcd/config/etcd.yaml"}))
		g.Expect(manifests["etcd-config"].(*corev1.ConfigMap).Data["etcd.yaml"]).NotTo(ContainSubstring("$("), "etcd itself expands nothing")
	})
	t.Run("When it is highly available each member should find itself in the configuration", func(t *testing.T) {
		g := NewWithT(t)
		s, manifests := render(t, contextOf(t, nil))
		g.Expect(s.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		g.Expect(initNames(s)).To(Equal([]string{"reset-member"}))
		g.Expect(s.Spec.Template.Spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds).To(BeNumerically(">", 0), "it serves until nobody is sent to it")
		file := filepath.Join(t.TempDir(), "etcd.yaml")
		g.Expect(os.WriteFile(file, []byte(manifests["etcd-config"].(*corev1.ConfigMap).Data["etcd.yaml"]), 0o600)).To(Succeed())
		for _, pod := range []string{"etcd-0", "etcd-1", "etcd-2"} {
			t.Setenv("POD_NAME", pod)
			_, member, err := etcdinit.Load(file, "", "")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(member.Self).To(Equal(etcdinit.Peer{Name: pod, URL: "https://" + pod + ".etcd-discovery.ns.svc:2380"}))
			g.Expect(member.Founders).To(HaveLen(3))
		}
	})
	t.Run("When init containers have arguments their program should know them", func(t *testing.T) {
		g := NewWithT(t)
		s, _ := render(t, contextOf(t, nil))
		reset := component.Container(&s.Spec.Template.Spec, "reset-member")
		cmd, rest, err := etcdinit.Command().Find(append(reset.Command[2:], reset.Args...))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cmd.Name()).To(Equal("reset-member"))
		g.Expect(cmd.ParseFlags(rest)).To(Succeed())
	})
}

func TestFounded(t *testing.T) {
	report := func(version string) client.Object {
		return &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "etcd"}, Status: hyperv1.ControlPlaneComponentStatus{Version: version}}
	}
	began := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	marker := func(of, says string, age time.Duration) client.Object {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "etcd-founded", CreationTimestamp: metav1.NewTime(began.Add(age))}, Data: map[string]string{"founded": says}}
		if of != "" {
			cm.Data["cluster"] = of
		}
		return cm
	}
	says := func(what string) map[string]string { return map[string]string{"founded": what, "cluster": "new"} }
	for name, tc := range map[string]struct {
		objs   []client.Object
		bare   bool // there is no snapshot to load
		want   bool
		marker map[string]string // nil: none
	}{
		"When there is nothing yet members may found the cluster":                     {},
		"When the members have never been complete they may found the cluster":        {objs: []client.Object{report("")}},
		"When the members have been complete once they should never found it again":   {objs: []client.Object{report("1.36.3")}, want: true, marker: says("true")},
		"When the report is gone but it was founded they should never found it again": {objs: []client.Object{marker("new", "true", time.Minute)}, want: true, marker: says("true")},
		"When an older version said that it was founded they should never found it again": {
			objs: []client.Object{marker("", "true", time.Minute)}, want: true, marker: says("true")},
		"When the marker is of the control plane that was saved they should load the snapshot": {
			objs: []client.Object{marker("old", "true", -time.Second)}, marker: says("false")},
		"When an older version saved the marker they should load the snapshot": {objs: []client.Object{marker("", "true", -time.Second)}, marker: says("false")},
		"When the marker came back in the same second they should load the snapshot": {
			objs: []client.Object{marker("", "true", 0)}, marker: says("false")},
		"When the marker was rewritten and they are still loading they should go on": {objs: []client.Object{marker("new", "false", -time.Second)}, marker: says("false")},
		"When they have loaded the snapshot they should never found it again": {
			objs: []client.Object{marker("new", "false", -time.Second), report("1.36.3")}, want: true, marker: says("true")},
		"When volumes came back with the marker a member without one should not found again": {
			objs: []client.Object{marker("old", "true", -time.Second)}, bare: true, want: true, marker: says("true")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, manifests := render(t, contextOf(t, func(hcp *hyperv1.HostedControlPlane) {
				hcp.UID, hcp.CreationTimestamp = "new", metav1.NewTime(began)
				if !tc.bare {
					fromSnapshot(hcp)
				}
			}, tc.objs...))
			if tc.marker == nil {
				g.Expect(manifests).NotTo(HaveKey("etcd-founded"))
			} else {
				g.Expect(manifests).To(HaveKeyWithValue("etcd-founded", HaveField("Data", Equal(tc.marker))))
			}
			want := []string{"etcd-init", "reset-member"}
			if tc.want {
				want = want[1:] // A snapshot of long ago would contradict the other members.
			}
			g.Expect(initNames(s)).To(Equal(want))
		})
	}
	t.Run("When the cluster is founded members should not restart for that", func(t *testing.T) {
		g := NewWithT(t)
		before, _ := render(t, contextOf(t, nil))
		after, _ := render(t, contextOf(t, nil, report("1.36.3")))
		g.Expect(after.Spec.Template).To(Equal(before.Spec.Template))
	})
}

func TestRestoredShard(t *testing.T) {
	shard := func(url string, storage *hyperv1.EtcdShardStorage) func(*hyperv1.HostedControlPlane) {
		return func(hcp *hyperv1.HostedControlPlane) {
			hcp.Spec.Etcd.Managed.Storage.RestoreSnapshotURL = []string{url}
			hcp.Spec.Etcd.Managed.Shards = []hyperv1.ManagedEtcdShard{{Name: "leases", Replicas: 3, Storage: storage}}
			hcp.Status.Conditions = []metav1.Condition{{Type: snapshotRestored, Status: metav1.ConditionTrue}} // of the main etcd
		}
	}
	const backup = "s3://backups/1.db.enc"
	for name, tc := range map[string]struct {
		hcp  func(*hyperv1.HostedControlPlane)
		objs []client.Object
		want []string
	}{
		"When there is a backup a shard should look for its part of it": {shard(backup, nil), nil, []string{"etcd-init", "reset-member"}},
		"When the shard was founded it should be left alone": {
			shard(backup, nil), []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "etcd-leases-founded", CreationTimestamp: metav1.Now()}}}, []string{"reset-member"}},
		"When the snapshot is one of the main etcd alone a shard should begin empty": {shard("https://backups/1.db", nil), nil, []string{"reset-member"}},
		"When its data goes with its pods a shard should begin empty": {
			shard(backup, &hyperv1.EtcdShardStorage{Type: hyperv1.EmptyDirEtcdShardStorage}), nil, []string{"reset-member"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := ShardComponent("leases").Render(contextOf(t, tc.hcp, tc.objs...))
			g.Expect(err).NotTo(HaveOccurred())
			s := out.Workload.(*appsv1.StatefulSet)
			g.Expect(initNames(s)).To(Equal(tc.want))
			if len(tc.want) == 1 {
				return
			}
			init := component.Container(&s.Spec.Template.Spec, restoreContainer)
			g.Expect(init.Args).To(ContainElement("--shard=leases"))
			g.Expect(init.Env).To(ContainElement(corev1.EnvVar{Name: restoreVariable, Value: backup}))
			g.Expect(init.VolumeMounts).To(ContainElement(HaveField("MountPath", "/etc/etcd/restore")))
		})
	}
}

func TestStorage(t *testing.T) {
	volume := func(v hyperv1.PersistentVolumeEtcdStorageSpec) func(*hyperv1.HostedControlPlane) {
		return func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Etcd.Managed.Storage.PersistentVolume = &v }
	}
	for name, tc := range map[string]struct {
		hcp   func(*hyperv1.HostedControlPlane)
		size  string
		class *string
		err   string
	}{
		"When nothing is said a volume should have 8Gi of the default class": {size: "8Gi"},
		"When size and class are given it should be those": {
			hcp: volume(hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("20Gi")), StorageClassName: ptr.To("fast")}), size: "20Gi", class: ptr.To("fast"),
		},
		"When the size is not positive it should say which field": {
			hcp: volume(hyperv1.PersistentVolumeEtcdStorageSpec{Size: ptr.To(resource.MustParse("-1Gi"))}), err: "spec.etcd.managed.storage.persistentVolume.size is -1Gi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := NewComponent().Render(contextOf(t, tc.hcp))
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			claim := out.Workload.(*appsv1.StatefulSet).Spec.VolumeClaimTemplates[0].Spec
			g.Expect(claim.Resources.Requests.Storage().String()).To(Equal(tc.size))
			g.Expect(claim.StorageClassName).To(Equal(tc.class))
		})
	}
}
