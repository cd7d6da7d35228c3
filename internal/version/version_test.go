package version

import (
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/version"
)

const full = "0123456789abcdef0123456789abcdef01234567"

func TestCommitFrom(t *testing.T) {
	vcs := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: full}, {Key: "vcs.modified", Value: "false"}}}
	dirty := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: full}}}
	module := &debug.BuildInfo{Main: debug.Module{Version: "v0.1.1-0.20260102030405-fedcba987654"}}
	for name, tc := range map[string]struct {
		linked, archive string
		info            *debug.BuildInfo
		want            string
	}{
		"When the linker set it it should win":                           {"aaaaaaaaaaaa", full, vcs, "aaaaaaaaaaaa"},
		"When make had no git an archive should say it":                  {"unknown", full + "\n", nil, "0123456789ab"},
		"When the archive's line is not filled in the go command should": {"", "$Format:%H$\n", vcs, "0123456789ab"},
		"When there were changes it should say so":                       {"", "$Format:%H$\n", dirty, "0123456789ab-dirty"},
		"When the module was installed by its path its version should":   {"", "", module, "fedcba987654"},
		"When nothing knows it should say that":                          {"", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, Unknown},
		"When there is not even information on the build it should, too": {"", "", nil, Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(commitFrom(tc.linked, tc.archive, tc.info)).To(Equal(tc.want))
		})
	}
}

func TestSemver(t *testing.T) {
	g := NewWithT(t)
	_, err := version.ParseSemantic(Semver())
	g.Expect(err).NotTo(HaveOccurred(), "the file VERSION")
	g.Expect(Semver()).NotTo(HavePrefix("v"))
	g.Expect(Build{Version: "1.2.3", Commit: "0123456789ab", Go: "go1.26.0", Platform: "linux/amd64"}.String()).
		To(Equal("v1.2.3, commit 0123456789ab (go1.26.0, linux/amd64)"))
}

func TestCompare(t *testing.T) {
	build := func(version, commit string) Build { return Build{Version: version, Commit: commit} }
	for name, tc := range map[string]struct {
		client, server Build
		want           Verdict
		message        string
	}{
		"When both are one build it should say so":                       {build("1.2.0", "a"), build("1.2.0", "a"), Same, "same build"},
		"When nobody knows a commit it should go by versions":            {build("1.2.0", Unknown), build("1.2.0", Unknown), Supported, "same version"},
		"When commits of one version differ it should say that":          {build("1.2.0-dev", "a"), build("1.2.0-dev", "b"), Supported, "different commits"},
		"When patches differ it should be supported":                     {build("1.2.0", "a"), build("1.2.3", "b"), Supported, "same minor version"},
		"When the client is one minor behind it should be supported":     {build("1.2.9", "a"), build("1.3.0", "b"), Supported, "one minor version apart"},
		"When the client is one minor ahead it should be supported":      {build("1.3.0", "a"), build("1.2.0", "b"), Supported, "one minor version apart"},
		"When the client is two behind it should name the one to use":    {build("1.2.0", "a"), build("1.4.1", "b"), Unsupported, "use a client of v1.4"},
		"When the client is two ahead it should say to upgrade":          {build("1.4.0", "a"), build("1.2.1", "b"), Unsupported, "upgrade the server"},
		"When majors differ it should be unsupported":                    {build("2.0.0", "a"), build("1.0.0", "b"), Unsupported, "upgrade the server"},
		"When the server is from before versions it should say so":       {build("1.2.0", "a"), build("", "b"), Undetermined, "commit b"},
		"When the server's version is nonsense it should say so":         {build("1.2.0", "a"), build("new", "b"), Undetermined, `"new"`},
		"When the server is of before but the commit it should not fail": {build("1.2.0", "a"), build("", "a"), Undetermined, "no version"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			skew := Compare(tc.client, tc.server)
			g.Expect(skew.Verdict).To(Equal(tc.want), skew.Message)
			g.Expect(skew.Message).To(ContainSubstring(tc.message))
		})
	}
}

func TestCompareManagement(t *testing.T) {
	for name, tc := range map[string]struct {
		kubernetes string
		want       Verdict
	}{
		"When it is the oldest it should be supported":          {"v1.30.0", Supported},
		"When somebody has built it it should be supported":     {"v1.34.1-gke.100", Supported},
		"When it is older it should be told to be upgraded":     {"v1.29.9", Unsupported},
		"When it says nothing that is a version it should pass": {"main", Undetermined},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(CompareManagement(tc.kubernetes).Verdict).To(Equal(tc.want))
		})
	}
}

func TestCompareUpgrade(t *testing.T) {
	for name, tc := range map[string]struct {
		installed, next string
		want            Verdict
		message         string
	}{
		"When the version stays it should be supported":              {"1.2.0", "1.2.0", Supported, "may be replaced"},
		"When the next minor follows it should be supported":         {"1.2.3", "1.3.0-dev", Supported, "may be replaced"},
		"When it goes back by one minor it should be supported":      {"1.3.0", "1.2.9", Supported, "may be replaced"},
		"When the next major begins it should be supported":          {"0.9.1", "1.0.0", Supported, "may be replaced"},
		"When a minor is left out it should name the one to take":    {"1.2.3", "1.4.0", Unsupported, "install v1.3 first"},
		"When it goes back by two it should say so":                  {"1.4.0", "1.2.0", Unsupported, "go back one minor version after the other"},
		"When the beginning of a major is left out it should say so": {"1.4.0", "2.1.0", Unsupported, "then to v2.0"},
		"When nothing is noted it should be replaced":                {"", "1.2.0", Undetermined, "isn't known"},
		"When what is noted is nonsense it should be replaced":       {"new", "1.2.0", Undetermined, `"new"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			skew := CompareUpgrade(tc.installed, tc.next)
			g.Expect(skew.Verdict).To(Equal(tc.want), skew.Message)
			g.Expect(skew.Message).To(ContainSubstring(tc.message))
		})
	}
}

func TestCompareControlPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		operator, controlPlane string
		want                   Verdict
		message                string
	}{
		"When both are of one minor it should be supported":          {"1.2.0", "1.2.3", Supported, "the operator's minor"},
		"When it is one behind it should be supported":               {"1.3.0", "1.2.3", Supported, "one minor version behind"},
		"When it is two behind it should say what to do":             {"1.4.0", "1.2.3", Unsupported, "release of v1.4"},
		"When it is ahead it should say what to do":                  {"1.2.0", "1.3.0", Unsupported, "upgrade the operator"},
		"When it is of the major before it should say what to do":    {"2.0.0", "1.9.0", Unsupported, "release of v2.0"},
		"When its image doesn't tell it should say so":               {"1.2.0", "", Undetermined, "image"},
		"When the operator doesn't tell its version it should, too":  {"", "1.2.0", Undetermined, "operator"},
		"When it is of the first minor of all it should not go wild": {"1.0.0", "1.0.0", Supported, "the operator's minor"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			skew := CompareControlPlane(tc.operator, tc.controlPlane)
			g.Expect(skew.Verdict).To(Equal(tc.want), skew.Message)
			g.Expect(skew.Message).To(ContainSubstring(tc.message))
		})
	}
}
