package create

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"

	"hcp.internal/platform/internal/cli/connect"
	"hcp.internal/platform/internal/cli/install"
)

// DefaultReleaseName is the ConfigMap in the operator's namespace with the release image, under its key image, that hosted clusters get when nobody
// names one. `hypershift local up` writes it; elsewhere an administrator may.
const DefaultReleaseName = "default-release"

const defaultReleaseKey = "image"

const (
	// streamTimeout bounds the question for the newest release; the servers answer within a second.
	streamTimeout = 20 * time.Second
	// maxStreamAnswer bounds the answer, which has some hundred bytes.
	maxStreamAnswer = 64 << 10
)

// streamName is what a stream may be called: it becomes part of a URL.
var streamName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,100}$`)

// streamServer is the public server of a stream: each architecture has its own, and the multi-architecture streams too.
func streamServer(stream string) string {
	arch := "amd64"
	for _, other := range []string{"multi", "arm64", "ppc64le", "s390x"} {
		if strings.HasSuffix(stream, "-"+other) {
			arch = other
		}
	}
	return "https://" + arch + ".ocp.releases.ci.openshift.org"
}

// resolveRelease finds out the release when no image was given: that of the stream, if one was named, else what the installation offers. Nobody but
// the management cluster is asked unless a stream was named. getClient is called when it is needed.
func (o *Options) resolveRelease(ctx context.Context, getClient func() (client.Client, error)) error {
	if o.ReleaseImage != "" {
		return nil
	}
	if o.ReleaseStream == "" {
		c, err := getClient()
		if err == nil {
			o.ReleaseImage, err = offeredRelease(ctx, c)
		}
		if err != nil {
			return fmt.Errorf("--release-image is required: name a release image, for example %s/hypershift/release:1.36.3 (%w)", o.exampleRegistry(), err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, streamTimeout)
	defer cancel()
	image, err := newestRelease(ctx, http.DefaultClient, streamServer(o.ReleaseStream), o.ReleaseStream)
	if err != nil {
		return fmt.Errorf("asking release stream %s for its newest release: %w; name a release with --release-image", o.ReleaseStream, err)
	}
	o.ReleaseImage = image
	return nil
}

func (o *Options) exampleRegistry() string {
	if o.Platform == hyperv1.LocalPlatform {
		return localRegistry
	}
	return "registry.example.com"
}

// offeredRelease is what the installation offers.
func offeredRelease(ctx context.Context, c client.Client) (string, error) {
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: install.DefaultNamespace, Name: DefaultReleaseName}
	if err := c.Get(ctx, key, cm); err != nil {
		return "", fmt.Errorf("the installation offers none in ConfigMap %s: %w", key, err)
	}
	image := strings.TrimSpace(cm.Data[defaultReleaseKey])
	if image == "" {
		return "", fmt.Errorf("ConfigMap %s of the installation has no key %s", key, defaultReleaseKey)
	}
	return image, nil
}

// OfferRelease makes an image the one that hosted clusters get when nobody names one.
func OfferRelease(ctx context.Context, c client.Client, image string) error {
	_, err := connect.Apply(ctx, c, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: install.DefaultNamespace, Name: DefaultReleaseName},
		Data:       map[string]string{defaultReleaseKey: image},
	})
	return err
}

// newestRelease asks a server of release streams.
func newestRelease(ctx context.Context, c *http.Client, server, stream string) (string, error) {
	if !streamName.MatchString(stream) {
		return "", fmt.Errorf("%q is no name of a release stream", stream)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/releasestream/"+url.PathEscape(stream)+"/latest", nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", server, resp.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxStreamAnswer))
	if err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	var latest struct {
		PullSpec string `json:"pullSpec"`
	}
	if json.Unmarshal(raw, &latest) != nil || latest.PullSpec == "" || strings.ContainsAny(latest.PullSpec, " \t\r\n") {
		return "", errors.New("the answer names no image")
	}
	return latest.PullSpec, nil
}
