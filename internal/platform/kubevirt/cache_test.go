package kubevirt

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/platform/machine"
	"hcp.internal/platform/internal/sidecar/kubeapi"
)

func TestDecideCache(t *testing.T) {
	const pool = types.UID("6f2c")
	named := func(name string) *hyperv1.NodePoolPlatformStatus {
		return &hyperv1.NodePoolPlatformStatus{KubeVirt: &hyperv1.KubeVirtNodePoolStatus{CacheName: name}}
	}
	fresh := decideCache(nil, "h1", pool, nil, nil).Status.KubeVirt.CacheName
	for name, tc := range map[string]struct {
		list   []kept
		hash   string
		before *hyperv1.NodePoolPlatformStatus
		want   machine.KeptImage
	}{
		"When nothing is there it should be made, by a name that is always the same": {nil, "h1", nil, machine.KeptImage{Status: named(fresh)}},
		"When the image is there under any name it should be taken":                  {[]kept{{"a", "h1"}}, "h1", nil, machine.KeptImage{Status: named("a"), There: true}},
		"When it is there twice one should be taken, and the other be old":           {[]kept{{"b", "h1"}, {"a", "h1"}}, "h1", nil, machine.KeptImage{Status: named("a"), There: true, Old: []string{"b"}}},
		"When another image is there it should be old":                               {[]kept{{"a", "h0"}}, "h1", named("a"), machine.KeptImage{Status: named(fresh), Old: []string{"a"}}},
		"When none is wanted any more all should be old, and be known until they go": {[]kept{{"a", "h0"}}, "", named("a"), machine.KeptImage{Status: named("a"), There: true, Old: []string{"a"}}},
		"When none is wanted and none is left nothing should be told of":             {nil, "", named("a"), machine.KeptImage{There: true}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(*decideCache(tc.list, tc.hash, pool, nil, tc.before)).To(Equal(tc.want))
		})
	}
	t.Run("When it is another pool's the name should be another", func(t *testing.T) {
		NewWithT(t).Expect(decideCache(nil, "h1", "77aa", nil, nil).Status.KubeVirt.CacheName).NotTo(Equal(fresh))
	})
}

func TestNobodyIsAskedForNothing(t *testing.T) {
	ask := func(change func(*hyperv1.KubevirtNodePoolPlatform)) (*machine.KeptImage, error) {
		pool := &hyperv1.NodePool{}
		pool.Spec.Platform.Kubevirt = &hyperv1.KubevirtNodePoolPlatform{RootVolume: &hyperv1.KubevirtRootVolume{Image: &hyperv1.KubevirtDiskImage{ContainerDiskImage: ptr.To("r/own:1")}}}
		change(pool.Spec.Platform.Kubevirt)
		var nobody client.Reader
		return Platform{}.KeptImage(t.Context(), nobody, machine.Input{HostedCluster: &hyperv1.HostedCluster{}, NodePool: pool})
	}
	for name, change := range map[string]func(*hyperv1.KubevirtNodePoolPlatform){
		"When a pool keeps no image": func(*hyperv1.KubevirtNodePoolPlatform) {},
		"When the image is the user's own": func(p *hyperv1.KubevirtNodePoolPlatform) {
			p.RootVolume.CacheStrategy = &hyperv1.KubevirtCachingStrategy{Type: "PVC"}
		},
		"When the pool is not described well": func(p *hyperv1.KubevirtNodePoolPlatform) { p.RootVolume = nil },
	} {
		t.Run(name+" it should keep none and ask nobody", func(t *testing.T) {
			kept, err := ask(change)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(kept).To(BeNil())
		})
	}
}

func TestOtherCluster(t *testing.T) {
	asked, answer, code := []string{}, "", http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(answer)) // the test's own server
	}))
	defer server.Close()
	api, err := kubeapi.FromKubeconfigBytes([]byte("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: \"" +
		server.URL + "\"}}]\nusers: [{name: u, user: {token: t}}]\n"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	o := otherVolumes{api, "vms"}
	t.Run("When its objects have names that are none they should not become part of requests", func(t *testing.T) {
		g := NewWithT(t)
		answer = `{"items":[{"metadata":{"name":"../secrets/x"}},{"metadata":{"name":"good","annotations":{"hypershift.openshift.io/kubevirt-boot-image-hash":"h"}}},{"metadata":{"name":"gone","deletionTimestamp":"2026-01-01T00:00:00Z"}}]}`
		g.Expect(o.list(context.Background(), "6f2c")).To(Equal([]kept{{"good", "h"}}))
		g.Expect(asked).To(Equal([]string{"GET /apis/cdi.kubevirt.io/v1beta1/namespaces/vms/datavolumes"}))
	})
	t.Run("When it has more of them than a pool may have the rest should not be looked at", func(t *testing.T) {
		answer = `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"metadata":{"name":"a"}},`, 200), ",") + `]}`
		list, err := o.list(context.Background(), "6f2c")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(list).To(HaveLen(maxVolumes))
	})
	t.Run("When it refuses its answer should not be repeated, and the remedy be told", func(t *testing.T) {
		g := NewWithT(t)
		code, answer = http.StatusForbidden, "secret text"
		for _, err := range []error{errOf(o.list(context.Background(), "6f2c")), o.create(context.Background(), dataVolumeTemplate{Metadata: meta{Name: "a"}}), o.remove(context.Background(), "a")} {
			g.Expect(err).To(MatchError(And(ContainSubstring("kubeconfig must allow"), Not(ContainSubstring("secret text")))))
		}
	})
	t.Run("When an object is gone already that should be fine", func(t *testing.T) {
		code = http.StatusNotFound
		NewWithT(t).Expect(o.remove(context.Background(), "a")).To(Succeed())
	})
}

func errOf(_ []kept, err error) error { return err }
