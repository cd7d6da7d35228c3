package release_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"hcp.internal/platform/internal/oci/rewrite"
	"hcp.internal/platform/internal/release"
	"hcp.internal/platform/internal/release/bootimages"
	"hcp.internal/platform/internal/release/releasetest"
)

func TestLookup(t *testing.T) {
	t.Run("When the image is a Kubernetes release it should give version, images and architecture", func(t *testing.T) {
		g := NewWithT(t)
		reg := releasetest.New(t)
		image := reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
		got, err := release.NewRegistryProvider(release.Options{}).Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Image).To(Equal(image))
		g.Expect(got.Version).To(Equal("1.36.3"))
		g.Expect(got.KubernetesVersion).To(Equal("1.36.3"))
		g.Expect(got.Kubernetes).To(BeTrue())
		g.Expect(got.Arch).To(Equal("AMD64"))
		g.Expect(got.Images).To(Equal(reg.KubernetesTags()))
		g.Expect(got.Matches(got.Pinned())).To(BeTrue())
		again, err := release.NewRegistryProvider(release.Options{}).Lookup(t.Context(), got.Pinned(), nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again.Digest).To(Equal(got.Digest))
	})

	t.Run("When the image is an OpenShift payload it should tell its Kubernetes version", func(t *testing.T) {
		g := NewWithT(t)
		reg := releasetest.New(t)
		references := bytes.ReplaceAll(releasetest.References(t, "4.20.3", map[string]string{"hypershift": "quay.io/x/y@sha256:" + strings.Repeat("1", 64)}), []byte("kubernetes=4.20.3"), []byte("kubernetes=1.33.5"))
		image := reg.Push(t, "payload:4.20.3", releasetest.Image(t, map[string][]byte{"./release-manifests/image-references": references}))
		got, err := release.NewRegistryProvider(release.Options{}).Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Kubernetes).To(BeFalse())
		g.Expect(got.KubernetesVersion).To(Equal("1.33.5"))
	})

	t.Run("When the image is a manifest list it should call the architecture Multi", func(t *testing.T) {
		g := NewWithT(t)
		reg := releasetest.New(t)
		img := releasetest.Image(t, map[string][]byte{"release-manifests/image-references": releasetest.References(t, "1.36.3", reg.KubernetesTags())})
		index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}})
		ref, err := name.ParseReference(reg.Host + "/multi:1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(remote.WriteIndex(ref, index)).To(Succeed())
		got, err := release.NewRegistryProvider(release.Options{}).Lookup(t.Context(), reg.Host+"/multi:1", nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Arch).To(Equal(release.ArchMulti))
		g.Expect(got.Version).To(Equal("1.36.3"))
	})

	t.Run("When the image lists what machines boot from it should know it", func(t *testing.T) {
		g := NewWithT(t)
		reg := releasetest.New(t)
		list := `{"data": {"stream": "{\"architectures\": {\"x86_64\": {\"images\": {\"kubevirt\": {\"digest-ref\": \"disk\"}}}}}"}}`
		image := reg.Push(t, "release:4.22.0", releasetest.Image(t, map[string][]byte{
			"release-manifests/image-references": releasetest.References(t, "4.22.0", map[string]string{"etcd": "quay.io/etcd:1"}), bootimages.Path: []byte(list),
		}))
		got, err := release.NewRegistryProvider(release.Options{}).Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		images, err := got.BootImages.For("", "amd64")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(images.KubeVirt).To(Equal("disk"))
	})
	t.Run("When an upper layer replaces the references it should believe the upper one", func(t *testing.T) {
		g := NewWithT(t)
		reg := releasetest.New(t)
		image := reg.Push(t, "layers:1", releasetest.Image(t,
			map[string][]byte{"release-manifests/image-references": releasetest.References(t, "1.35.0", reg.KubernetesTags())},
			map[string][]byte{"release-manifests/image-references": releasetest.References(t, "1.36.0", reg.KubernetesTags())},
			map[string][]byte{"etc/other": []byte("x")}))
		got, err := release.NewRegistryProvider(release.Options{}).Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Version).To(Equal("1.36.0"))
	})
}

// pullSecret is a dockerconfigjson for one registry.
func pullSecret(registry, user, password string) []byte {
	return fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, registry, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

func TestLookupErrors(t *testing.T) {
	deny := func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "me" && password == "good" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		http.Error(w, "SECRET-OF-THE-SERVER", http.StatusUnauthorized)
		return true
	}
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, reg *releasetest.Registry) (image string)
		secret  func(reg *releasetest.Registry) []byte
		limits  release.Limits
		kind    error
		says    string
	}{
		"When the tag is missing it should say so": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
				return reg.Host + "/release:1.36.4"
			},
			kind: release.ErrNotFound, says: "check the repository and the tag or digest",
		},
		"When the repository is missing it should say so": {
			prepare: func(_ *testing.T, reg *releasetest.Registry) string { return reg.Host + "/nothing:1" },
			kind:    release.ErrNotFound,
		},
		"When nobody listens it should be unreachable": {
			prepare: func(_ *testing.T, reg *releasetest.Registry) string { reg.Close(); return reg.Host + "/release:1" },
			kind:    release.ErrUnreachable, says: "connection refused",
		},
		"When the registry has a server error it should be unreachable": {
			prepare: func(_ *testing.T, reg *releasetest.Registry) string {
				reg.Intercept = func(w http.ResponseWriter, _ *http.Request) bool {
					http.Error(w, "SECRET-OF-THE-SERVER", http.StatusBadGateway)
					return true
				}
				return reg.Host + "/release:1"
			},
			kind: release.ErrUnreachable, says: "status 502",
		},
		"When anonymous access is refused it should ask for credentials": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				image := reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
				reg.Intercept = deny
				return image
			},
			kind: release.ErrUnauthorized, says: "the pull secret needs credentials",
		},
		"When the credentials are wrong it should ask for credentials": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				image := reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
				reg.Intercept = deny
				return image
			},
			secret: func(reg *releasetest.Registry) []byte { return pullSecret(reg.Host, "me", "bad") },
			kind:   release.ErrUnauthorized,
		},
		"When the pull secret is no JSON it should not repeat it": {
			prepare: func(_ *testing.T, reg *releasetest.Registry) string { return reg.Host + "/release:1" },
			secret:  func(*releasetest.Registry) []byte { return []byte("SECRET-OF-THE-SERVER") },
			kind:    release.ErrBadPullSecret,
		},
		"When the reference is malformed it should say how to write one": {
			prepare: func(_ *testing.T, reg *releasetest.Registry) string { return reg.Host + "/UPPER case" },
			kind:    release.ErrBadReference, says: "registry/repository:tag",
		},
		"When the image is any other image it should not be a release": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				return reg.Push(t, "busybox:1", releasetest.Image(t, map[string][]byte{"bin/sh": []byte("x")}))
			},
			kind: release.ErrNotARelease, says: "no layer has release-manifests/image-references",
		},
		"When the references are garbage it should not be a release": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				return reg.Push(t, "garbage:1", releasetest.Image(t, map[string][]byte{"release-manifests/image-references": []byte(`{"kind": SECRET-OF-THE-SERVER`)}))
			},
			kind: release.ErrNotARelease, says: "not valid JSON",
		},
		"When the version is none it should not be a release": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				return reg.Push(t, "version:1", releasetest.Image(t, map[string][]byte{"release-manifests/image-references": releasetest.References(t, "latest", reg.KubernetesTags())}))
			},
			kind: release.ErrNotARelease, says: "not a version",
		},
		"When a tag holds a shell command it should not be a release": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				return reg.PushRelease(t, "1.36.3", map[string]string{"etcd": "x; rm -rf /"})
			},
			kind: release.ErrNotARelease,
		},
		"When the manifest is garbage it should not be a release": {
			prepare: func(_ *testing.T, reg *releasetest.Registry) string {
				reg.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.Contains(r.URL.Path, "/manifests/") {
						return false
					}
					w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
					fmt.Fprint(w, `]]]SECRET-OF-THE-SERVER`)
					return true
				}
				return reg.Host + "/release:1"
			},
			kind: release.ErrNotARelease,
		},
		"When a layer is larger than the limit it should stop reading": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				return reg.Push(t, "huge:1", releasetest.Image(t, map[string][]byte{"zeros": make([]byte, 8<<20)}))
			},
			limits: release.Limits{UncompressedBytes: 1 << 20},
			kind:   release.ErrNotARelease, says: "larger than what is read",
		},
		"When the references are larger than the limit it should not read them": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				return reg.Push(t, "hugefile:1", releasetest.Image(t, map[string][]byte{"release-manifests/image-references": make([]byte, 2<<20)}))
			},
			limits: release.Limits{FileBytes: 1 << 20},
			kind:   release.ErrNotARelease, says: "at most 1048576 bytes",
		},
		"When there are too many layers it should not read them": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				return reg.Push(t, "many:1", releasetest.Image(t, map[string][]byte{"a": nil}, map[string][]byte{"b": nil}, map[string][]byte{"c": nil}))
			},
			limits: release.Limits{Layers: 2},
			kind:   release.ErrNotARelease, says: "at most 2 are read",
		},
		"When the registry never answers it should give up in time": {
			prepare: func(_ *testing.T, reg *releasetest.Registry) string {
				reg.Intercept = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
				return reg.Host + "/release:1"
			},
			limits: release.Limits{Time: 200 * time.Millisecond},
			kind:   release.ErrUnreachable, says: "in time",
		},
		"When a layer trickles it should give up in time": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				image := reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
				reg.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.Contains(r.URL.Path, "/blobs/") {
						return false
					}
					w.WriteHeader(http.StatusOK)
					_, _ = w.Write([]byte{0x1f})
					w.(http.Flusher).Flush()
					<-r.Context().Done()
					return true
				}
				return image
			},
			limits: release.Limits{Time: 300 * time.Millisecond},
			kind:   release.ErrUnreachable,
		},
		"When the registry redirects for ever it should be unreachable": {
			prepare: func(_ *testing.T, reg *releasetest.Registry) string {
				reg.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
					http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
					return true
				}
				return reg.Host + "/release:1"
			},
			kind: release.ErrUnreachable,
		},
		"When the registry redirects to a metadata service it should not follow": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				image := reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
				reg.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if strings.Contains(r.URL.Path, "/blobs/") {
						http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusTemporaryRedirect)
						return true
					}
					return false
				}
				return image
			},
			kind: release.ErrUnreachable,
		},
		"When a layer is not what its digest says it should not be believed": {
			prepare: func(t *testing.T, reg *releasetest.Registry) string {
				image := reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
				reg.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.Contains(r.URL.Path, "/blobs/") {
						return false
					}
					fmt.Fprint(w, "something else")
					return true
				}
				return image
			},
			kind: release.ErrNotARelease,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			reg := releasetest.New(t)
			image := tc.prepare(t, reg)
			var secret []byte
			if tc.secret != nil {
				secret = tc.secret(reg)
			}
			_, err := release.NewRegistryProvider(release.Options{Limits: tc.limits}).Lookup(t.Context(), image, secret)
			g.Expect(err).To(MatchError(tc.kind))
			g.Expect(err.Error()).To(ContainSubstring(tc.says))
			g.Expect(err.Error()).NotTo(ContainSubstring("SECRET-OF-THE-SERVER"))
			g.Expect(release.Temporary(err)).To(Equal(errors.Is(tc.kind, release.ErrUnreachable)))
		})
	}
}

func TestCache(t *testing.T) {
	setup := func(t *testing.T) (reg *releasetest.Registry, requests *atomic.Int64, p *release.Registry, clk *clocktesting.FakePassiveClock, image string) {
		reg = releasetest.New(t)
		image = reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
		requests = &atomic.Int64{}
		reg.Intercept = func(http.ResponseWriter, *http.Request) bool { requests.Add(1); return false }
		clk = clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
		return reg, requests, release.NewRegistryProvider(release.Options{Clock: clk}), clk, image
	}
	t.Run("When a release was looked up it should not ask again at once, and only for the digest later", func(t *testing.T) {
		g := NewWithT(t)
		_, requests, p, clk, image := setup(t)
		_, err := p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		first := requests.Swap(0)
		_, err = p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(requests.Load()).To(BeZero())
		clk.SetTime(clk.Now().Add(2 * time.Minute))
		_, err = p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(requests.Load()).To(And(BeNumerically(">", 0), BeNumerically("<", first)))
	})
	t.Run("When another pull secret asks it should prove itself to the registry", func(t *testing.T) {
		g := NewWithT(t)
		reg, requests, p, _, image := setup(t)
		_, err := p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		requests.Store(0)
		_, err = p.Lookup(t.Context(), image, pullSecret(reg.Host, "a", "b"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(requests.Load()).NotTo(BeZero())
	})
	t.Run("When the tag moves it should be noticed after a minute", func(t *testing.T) {
		g := NewWithT(t)
		reg, _, p, clk, image := setup(t)
		_, err := p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		reg.Push(t, "release:1.36.3", releasetest.Image(t, map[string][]byte{"release-manifests/image-references": releasetest.References(t, "1.36.4", reg.KubernetesTags())}))
		clk.SetTime(clk.Now().Add(time.Minute))
		got, err := p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Version).To(Equal("1.36.4"))
	})
	t.Run("When the registry goes away it should answer with what it knew", func(t *testing.T) {
		g := NewWithT(t)
		reg, _, p, clk, image := setup(t)
		_, err := p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		reg.Close()
		clk.SetTime(clk.Now().Add(time.Hour))
		got, err := p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Version).To(Equal("1.36.3"))
	})
	t.Run("When many ask at once it should pull once", func(t *testing.T) {
		g := NewWithT(t)
		_, requests, p, _, image := setup(t)
		_, err := p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		alone := requests.Swap(0)
		_, _, p2, _, _ := setup(t)
		results := make(chan error, 20)
		for range 20 {
			go func() { _, err := p2.Lookup(context.WithoutCancel(t.Context()), image, nil); results <- err }()
		}
		for range 20 {
			g.Expect(<-results).To(Succeed())
		}
		g.Expect(requests.Load()).To(BeNumerically("<=", 2*alone))
	})
	t.Run("When a result is changed by its receiver it should not change the cache", func(t *testing.T) {
		g := NewWithT(t)
		_, _, p, _, image := setup(t)
		got, err := p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		got.Images["etcd"] = "evil"
		got, err = p.Lookup(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Images["etcd"]).NotTo(Equal("evil"))
	})
}

func TestMirrorsAndOverrides(t *testing.T) {
	t.Run("When a registry is overridden it should rewrite the release and its images", func(t *testing.T) {
		g := NewWithT(t)
		reg := releasetest.New(t)
		reg.PushRelease(t, "1.36.3", map[string]string{"etcd": "quay.example.com/x/etcd@sha256:" + strings.Repeat("1", 64)})
		p := release.NewRegistryProvider(release.Options{Overrides: []rewrite.Override{{Source: "quay.example.com", To: reg.Host}, {Source: "quay.example.com/x", To: reg.Host + "/y"}}})
		got, err := p.Lookup(t.Context(), "quay.example.com/release:1.36.3", nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Image).To(Equal("quay.example.com/release:1.36.3"))
		g.Expect(got.Images["etcd"]).To(HavePrefix(reg.Host + "/y/etcd@"))
	})
	t.Run("When the first mirror lacks the image it should try the next", func(t *testing.T) {
		g := NewWithT(t)
		reg := releasetest.New(t)
		reg.PushRelease(t, "1.36.3", reg.KubernetesTags())
		p := release.NewRegistryProvider(release.Options{}).WithMirrors([]rewrite.Mirror{{Source: "unreachable.invalid", Mirrors: []string{reg.Host + "/empty", reg.Host}}})
		got, err := p.Lookup(t.Context(), "unreachable.invalid/release:1.36.3", nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Version).To(Equal("1.36.3"))
	})
}

func TestInspect(t *testing.T) {
	t.Run("When any image is inspected it should give its labels", func(t *testing.T) {
		g := NewWithT(t)
		reg := releasetest.New(t)
		image := reg.Push(t, "operator:1", releasetest.Labelled(t, releasetest.Image(t, map[string][]byte{"bin/x": []byte("x")}), map[string]string{"a": "true"}))
		p := release.NewRegistryProvider(release.Options{})
		info, err := p.Inspect(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Labels).To(HaveKeyWithValue("a", "true"))
		_, err = p.Lookup(t.Context(), image, nil)
		g.Expect(err).To(MatchError(release.ErrNotARelease))
		info, err = p.Inspect(t.Context(), image, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Labels).To(HaveKeyWithValue("a", "true"))
	})
}
