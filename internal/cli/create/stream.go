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
)

// DefaultReleaseStream is the stream of OpenShift releases for all architectures.
const DefaultReleaseStream = "4-stable-multi"

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

// resolveRelease asks the release stream for its newest release when no image was given.
func (o *Options) resolveRelease(ctx context.Context) error {
	if o.ReleaseImage != "" {
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
