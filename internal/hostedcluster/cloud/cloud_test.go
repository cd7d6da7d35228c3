package cloud

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func TestPrivatePlatform(t *testing.T) {
	of := func(t *testing.T, platform string) Flags {
		var f Flags
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		f.Add(fs)
		NewWithT(t).Expect(fs.Parse([]string{"--private-platform=" + platform})).To(Succeed())
		return f
	}
	for name, c := range map[string]struct{ platform, env, want string }{
		"is Azure with a resource group": {"Azure", "AZURE_RESOURCE_GROUP", ""},
		"is Azure without one":           {"Azure", "", "AZURE_RESOURCE_GROUP in the environment must name the resource group"},
		"is AWS with a region":           {"AWS", "AWS_REGION", ""},
		"is AWS without one":             {"AWS", "", "AWS_REGION in the environment must name the region"},
		"is none":                        {"None", "", ""},
		"is another":                     {"GCP", "", "must be AWS, Azure or None"},
	} {
		t.Run("When the private platform "+name+" it should be taken or refused with what to do", func(t *testing.T) {
			g := NewWithT(t)
			for _, env := range []string{"AZURE_RESOURCE_GROUP", "AWS_REGION"} {
				t.Setenv(env, "")
			}
			if c.env != "" {
				t.Setenv(c.env, "some")
			}
			f := of(t, c.platform)
			if err := f.Validate(); c.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.want)))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(f.AzureLink()).To(Equal(c.platform == "Azure"))
			g.Expect(f.PrivateLink()).To(Equal(c.platform == "AWS"))
		})
	}
	t.Run("When a kubeconfig is given the program beside should get it", func(t *testing.T) {
		NewWithT(t).Expect(azureArguments("k", true)).To(Equal([]string{"azure-management", "--private-capi-types=true", "--kubeconfig=k"}))
	})
}
