package install

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	someUUID  = "6c1f5f2c-9a0d-4a1e-8d57-0d5b2b8f0b11"
	azureFile = `{"subscriptionId":"s","tenantId":"t","clientId":"c","clientSecret":"the-secret"}`
)

func TestAzure(t *testing.T) {
	for name, c := range map[string]struct {
		azure Azure
		want  string
	}{
		"is asked for with credentials":        {Azure{Private: true, ResourceGroup: "g", Credentials: []byte(azureFile)}, ""},
		"is asked for with a Secret":           {Azure{Private: true, ResourceGroup: "g", Secret: "s", SecretKey: "k", Subscription: someUUID}, ""},
		"is asked for with an identity":        {Azure{Private: true, ResourceGroup: "g", ClientID: someUUID, Subscription: someUUID}, ""},
		"isn't asked for":                      {Azure{}, ""},
		"has flags and isn't asked for":        {Azure{ResourceGroup: "g"}, "give --private-platform Azure, too"},
		"has no credentials":                   {Azure{Private: true, ResourceGroup: "g", Subscription: someUUID}, "give exactly one of them"},
		"has credentials twice":                {Azure{Private: true, ResourceGroup: "g", Subscription: someUUID, Secret: "s", ClientID: someUUID}, "give exactly one of them"},
		"has no resource group":                {Azure{Private: true, Credentials: []byte(azureFile)}, "--azure-pls-resource-group"},
		"has a Secret and no subscription":     {Azure{Private: true, ResourceGroup: "g", Secret: "s"}, "--azure-pls-subscription-id"},
		"has a subscription that can't be one": {Azure{Private: true, ResourceGroup: "g", Secret: "s", Subscription: "mine"}, `--azure-pls-subscription-id "mine": must be a UUID`},
		"has a client ID that can't be one":    {Azure{Private: true, ResourceGroup: "g", ClientID: "mine", Subscription: someUUID}, `--azure-pls-managed-identity-client-id "mine": must be a UUID`},
	} {
		t.Run("When private access "+name+" it should be taken, or refused with what to write", func(t *testing.T) {
			g := NewWithT(t)
			errs := c.azure.validate()
			if c.want == "" {
				g.Expect(errs).To(BeEmpty())
				return
			}
			g.Expect(errs).To(ContainElement(MatchError(ContainSubstring(c.want))))
		})
	}
	pod := func(a Azure) *appsv1.Deployment {
		o := NewOptions()
		o.Image, o.Azure, o.capi = "r/i:1", a, &capiChoice{}
		return deployments(o)[0].(*appsv1.Deployment)
	}
	t.Run("When there are credentials the operator should find them in a file", func(t *testing.T) {
		g := NewWithT(t)
		d := pod(Azure{Private: true, ResourceGroup: "g", Secret: "mine", SecretKey: "k", Subscription: someUUID})
		main := d.Spec.Template.Spec.Containers[0]
		g.Expect(main.Args).To(ContainElement("--private-platform=Azure"))
		g.Expect(main.Env).To(ContainElements(corev1.EnvVar{Name: "AZURE_CREDENTIALS_FILE", Value: "/etc/azure/k"}, corev1.EnvVar{Name: "AZURE_RESOURCE_GROUP", Value: "g"}, corev1.EnvVar{Name: "AZURE_SUBSCRIPTION_ID", Value: someUUID}))
		g.Expect(d.Spec.Template.Spec.Volumes).To(ContainElement(HaveField("VolumeSource.Secret.SecretName", "mine")))
	})
	t.Run("When there is an identity pod and service account should be marked for it", func(t *testing.T) {
		g := NewWithT(t)
		a := Azure{Private: true, ResourceGroup: "g", ClientID: someUUID, Subscription: someUUID}
		d := pod(a)
		g.Expect(d.Spec.Template.Labels).To(HaveKeyWithValue("azure.workload.identity/use", "true"))
		g.Expect(d.Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "AZURE_CLIENT_ID", Value: someUUID}))
		g.Expect(serviceAccount(Options{Azure: a}).Annotations).To(HaveKeyWithValue("azure.workload.identity/client-id", someUUID))
	})
	t.Run("When a file isn't one of credentials it should say what it has to be, and nothing of it", func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "creds")
		g.Expect(os.WriteFile(path, []byte(`{"clientSecret":"the-secret"}`), 0o600)).To(Succeed())
		err := loadAzure(path, &Azure{})
		g.Expect(err).To(MatchError(And(ContainSubstring("subscriptionId, tenantId, clientId and clientSecret"), Not(ContainSubstring("the-secret")))))
		g.Expect(os.WriteFile(path, []byte(azureFile), 0o600)).To(Succeed())
		a := Azure{}
		g.Expect(loadAzure(path, &a)).To(Succeed())
		g.Expect(azureObjects(Options{Azure: a})).To(HaveLen(1))
	})
}
