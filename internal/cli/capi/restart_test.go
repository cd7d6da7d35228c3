package capi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/output"
)

func TestRestart(t *testing.T) {
	demo := func(annotations map[string]string) *hyperv1.HostedCluster {
		return &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "demo", Annotations: annotations}}
	}
	refused := &url.Error{Op: "Get", URL: "https://api.example.com", Err: syscall.ECONNREFUSED}
	o := &migrateOptions{namespace: "clusters", operator: "hypershift", watch: true, every: time.Millisecond}
	for name, tc := range map[string]struct {
		fails func(looks int) bool
		err   error
	}{
		"When the API server restarts --watch should look again":     {func(looks int) bool { return looks == 2 || looks == 3 }, nil},
		"When the API server doesn't answer at all it should say so": {func(int) bool { return true }, syscall.ECONNREFUSED},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			looks := 0
			asked := demo(map[string]string{hyperv1.HostedClusterScopeAnnotation: hyperv1.LegacyScope, hyperv1.PrivateCAPIMigrateAnnotation: "true"})
			c := fake.NewClientBuilder().WithScheme(connect.Scheme()).WithObjects(asked).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					hc, ok := obj.(*hyperv1.HostedCluster)
					if !ok {
						return c.Get(ctx, key, obj, opts...)
					}
					if looks++; tc.fails(looks) {
						return refused
					}
					if err := c.Get(ctx, key, obj, opts...); err != nil || looks == 1 {
						return err
					}
					hc.Annotations = map[string]string{hyperv1.PrivateCAPITypesAnnotation: "true"}
					return nil
				},
			}).Build()
			var out bytes.Buffer
			err := o.follow(t.Context(), c, &out, &bytes.Buffer{}, output.JSON, "demo")
			if tc.err != nil {
				g.Expect(err).To(MatchError(tc.err))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(looks).To(Equal(4))
			decoder := json.NewDecoder(&out)
			var before, after []Status
			g.Expect(decoder.Decode(&before)).To(Succeed())
			g.Expect(decoder.Decode(&after)).To(Succeed())
			g.Expect(before).To(HaveExactElements(HaveField("State", stateAsked)))
			g.Expect(after).To(HaveExactElements(HaveField("Types", "Private")))
		})
	}
}

func TestManyHostedClusters(t *testing.T) {
	t.Run("When there are more hosted clusters than one page has all of them should be looked at", func(t *testing.T) {
		g := NewWithT(t)
		const count = 1001
		builder := fake.NewClientBuilder().WithScheme(connect.Scheme())
		for i := range count {
			builder.WithObjects(&hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: fmt.Sprintf("demo-%04d", i)}})
		}
		c := builder.WithInterceptorFuncs(interceptor.Funcs{
			// A real API server answers in pages.
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				o := (&client.ListOptions{}).ApplyOptions(opts)
				from, _ := strconv.Atoi(o.Continue) // 0: the first page
				if err := c.List(ctx, list); err != nil {
					return err
				}
				l := list.(*hyperv1.HostedClusterList)
				if l.Items = l.Items[from:]; o.Limit > 0 && int64(len(l.Items)) > o.Limit {
					l.Items, l.Continue = l.Items[:o.Limit], strconv.Itoa(from+int(o.Limit))
				}
				return nil
			},
		}).Build()
		all, err := (&migrateOptions{}).clusters(t.Context(), c, "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all).To(HaveLen(count))
	})
}
