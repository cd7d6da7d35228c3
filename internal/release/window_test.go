package release

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestCheckVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		check VersionCheck
		says  string // empty: allowed
	}{
		"When a Kubernetes release is in the window it should be allowed":         {check: VersionCheck{Target: "1.35.4"}},
		"When a Kubernetes release is too old it should name the window":          {check: VersionCheck{Target: "1.33.9"}, says: "older than this operator supports (1.34 to 1.36)"},
		"When a Kubernetes release is too new it should name the window":          {check: VersionCheck{Target: "1.37.0"}, says: "newer than this operator supports (1.34 to 1.36)"},
		"When Kubernetes goes to the next minor it should be allowed":             {check: VersionCheck{Target: "1.36.3", Current: "1.35.9"}},
		"When Kubernetes skips a minor it should name the one between":            {check: VersionCheck{Target: "1.36.3", Current: "1.34.1"}, says: "upgrade to a 1.35 release first"},
		"When Kubernetes goes back a minor it should be refused":                  {check: VersionCheck{Target: "1.35.3", Current: "1.36.3"}, says: "downgrading from 1.36.3 to 1.35.3 is not supported"},
		"When Kubernetes goes back a patch it should be allowed":                  {check: VersionCheck{Target: "1.36.2", Current: "1.36.3"}},
		"When the flavour changes it should be refused":                           {check: VersionCheck{Target: "4.20.0", Current: "1.36.3"}, says: "don't follow each other"},
		"When an OpenShift release is in the window it should be allowed":         {check: VersionCheck{Target: "4.20.3", NetworkType: "OVNKubernetes"}},
		"When OpenShift 5 is in the window it should be allowed":                  {check: VersionCheck{Target: "5.1.0"}},
		"When OpenShift goes from the last 4 to 5 it should be allowed":           {check: VersionCheck{Target: "5.1.0", Current: "4.23.9"}},
		"When OpenShift goes from 5.0 to 4.22 it should be a downgrade":           {check: VersionCheck{Target: "4.22.0", Current: "5.0.1"}, says: "downgrading"},
		"When OpenShift is newer than the window it should be refused":            {check: VersionCheck{Target: "5.2.0"}, says: "newer than this operator supports"},
		"When OpenShift is older than the window it should be refused":            {check: VersionCheck{Target: "4.13.0"}, says: "older than this operator supports"},
		"When OpenShift could never be hosted it should be refused":               {check: VersionCheck{Target: "4.7.0"}, says: "older than 4.8"},
		"When the major is unknown it should be refused":                          {check: VersionCheck{Target: "6.0.0"}, says: "unknown major"},
		"When a new cluster wants OpenShiftSDN it should be refused":              {check: VersionCheck{Target: "4.14.0", NetworkType: "OpenShiftSDN"}, says: "set spec.networking.networkType"},
		"When a new PowerVS cluster wants OpenShiftSDN it should be allowed":      {check: VersionCheck{Target: "4.14.0", NetworkType: "OpenShiftSDN", Platform: "PowerVS"}},
		"When a cluster on OpenShiftSDN goes to the next minor it should not":     {check: VersionCheck{Target: "4.15.0", Current: "4.14.0", NetworkType: "OpenShiftSDN"}, says: "not supported with network type OpenShiftSDN"},
		"When validation is skipped it should allow any version":                  {check: VersionCheck{Target: "1.20.0", Current: "1.36.0", Skip: true}},
		"When validation is skipped it should still refuse what is not a version": {check: VersionCheck{Target: "latest", Skip: true}, says: "write it as major.minor.patch"},
		"When it is a release candidate it should be allowed":                     {check: VersionCheck{Target: "1.36.0-rc.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := CheckVersion(tc.check)
			if tc.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.says)))
			}
		})
	}
}

func TestCheckVersionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := rapid.IntRange(30, 40).Draw(t, "from"), rapid.IntRange(30, 40).Draw(t, "to")
		patch := rapid.IntRange(0, 20).Draw(t, "patch")
		err := CheckVersion(VersionCheck{Target: fmt.Sprintf("1.%d.%d", to, patch), Current: fmt.Sprintf("1.%d.0", from)})
		allowed := to >= from && to <= from+1 && to >= 34 && to <= 36
		if allowed != (err == nil) {
			t.Fatalf("from 1.%d to 1.%d: %v", from, to, err)
		}
	})
}

func TestSupported(t *testing.T) {
	t.Run("When the window is listed it should be newest first", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(Supported()).To(Equal([]string{"5.1", "5.0", "4.23", "4.22", "4.21", "4.20", "4.19", "4.18", "4.17", "4.16", "4.15", "4.14"}))
		g.Expect(SupportedKubernetes()).To(Equal([]string{"1.36", "1.35", "1.34"}))
	})
}

func FuzzParseReferences(f *testing.F) {
	f.Add([]byte(`{"kind":"ImageStream","metadata":{"name":"1.36.3"},"spec":{"tags":[{"name":"etcd","from":{"kind":"DockerImage","name":"x/y@sha256:0"}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseReferences(data)
		if err != nil {
			return
		}
		if _, err := ParseVersion(r.Version); err != nil {
			t.Errorf("accepted version %q", r.Version)
		}
		for tag, image := range r.Images {
			if tag == "" || !plausiblePullSpec(image) {
				t.Errorf("accepted tag %q with image %q", tag, image)
			}
		}
	})
}
