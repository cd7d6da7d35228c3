// Package prober waits until a hosted API server answers and serves what a component needs: the init container that keeps
// components from crash-looping while their control plane starts.
package prober

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hcp.internal/platform/internal/sidecar/kubeapi"
)

const (
	// attemptTimeout bounds one request to the target.
	attemptTimeout = time.Second
	// eagerFor is how long attempts come at eagerInterval, later at lazyInterval: an API server is usually a few seconds away,
	// and a component shouldn't lose a second to a probe that just missed it.
	eagerFor      = 30 * time.Second
	eagerInterval = 250 * time.Millisecond
	lazyInterval  = time.Second
	// reportEvery is how often a still unmet condition is written to the log again.
	reportEvery = 30 * time.Second
	// stuckPod is how long a pod may have been terminating before it no longer counts: its node is gone.
	stuckPod = 10 * time.Minute
)

// Kind is one kind that must be served.
type Kind struct{ Group, Version, Kind string }

// ParseKind reads "group,version,kind"; the group may be empty.
func ParseKind(s string) (Kind, error) {
	parts := strings.Split(s, ",")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return Kind{}, fmt.Errorf("%q is not group,version,kind (example: apps,v1,Deployment; the core group is empty: ,v1,Pod)", s)
	}
	return Kind{Group: parts[0], Version: parts[1], Kind: parts[2]}, nil
}

func (k Kind) apiVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// Pods selects pods that must be gone: those of a namespace that carry a label.
type Pods struct{ Namespace, Selector string }

// ParsePods reads "namespace/label=value".
func ParsePods(s string) (Pods, error) {
	ns, selector, ok := strings.Cut(s, "/")
	if !ok || ns == "" || !strings.Contains(selector, "=") {
		return Pods{}, fmt.Errorf("%q is not namespace/label=value", s)
	}
	return Pods{Namespace: ns, Selector: selector}, nil
}

// Conditions are what must hold. The zero value of a field asks for nothing.
type Conditions struct {
	Target             string // URL that must answer 2xx; its certificate isn't verified, because no secret is sent there
	Kinds              []Kind
	Infrastructure     bool // infrastructures.config.openshift.io/cluster must exist
	PodsGone           *Pods
	ClusterRoleBinding string
}

// Prober checks conditions. Connect gives the client for everything but the target; it is called on each attempt until it
// works, because the kubeconfig may come later than the container.
type Prober struct {
	Conditions Conditions
	Connect    func() (*kubeapi.Client, error)
	Log        io.Writer
	Now        func() time.Time

	client *kubeapi.Client
	target *http.Client
}

// Wait returns nil once everything holds at the same time, or the context's error with the last unmet condition.
func (p *Prober) Wait(ctx context.Context) error {
	p.target = &http.Client{
		Timeout:   attemptTimeout,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, //nolint:forbidigo // because nothing is sent, and only whether it answers matters
	}
	start, reported, lastMessage := p.Now(), time.Time{}, ""
	for {
		err := p.check(ctx)
		now := p.Now()
		if err == nil {
			fmt.Fprintf(p.Log, "all conditions hold after %s\n", now.Sub(start).Round(time.Millisecond))
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waiting: %w (last: %w)", ctx.Err(), err)
		}
		if msg := err.Error(); msg != lastMessage || now.Sub(reported) >= reportEvery {
			fmt.Fprintf(p.Log, "waiting after %s: %s\n", now.Sub(start).Round(time.Second), msg)
			lastMessage, reported = msg, now
		}
		interval := lazyInterval
		if now.Sub(start) < eagerFor {
			interval = eagerInterval
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// check returns what doesn't hold.
func (p *Prober) check(ctx context.Context) error {
	if p.Conditions.Target != "" {
		if err := p.checkTarget(ctx); err != nil {
			return err
		}
	}
	if len(p.Conditions.Kinds) == 0 && !p.Conditions.Infrastructure && p.Conditions.PodsGone == nil && p.Conditions.ClusterRoleBinding == "" {
		return nil
	}
	if p.client == nil {
		client, err := p.Connect()
		if err != nil {
			return err
		}
		p.client = client
	}
	return errors.Join(p.checkKinds(ctx), p.checkObjects(ctx), p.checkPodsGone(ctx))
}

func (p *Prober) checkTarget(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Conditions.Target, nil)
	if err != nil {
		return fmt.Errorf("building request: %w", err)
	}
	resp, err := p.target.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("%s answers %s", p.Conditions.Target, resp.Status)
	}
	return nil
}

func (p *Prober) checkKinds(ctx context.Context) error {
	served := map[string]map[string]bool{}
	for _, k := range p.Conditions.Kinds {
		version := k.apiVersion()
		if served[version] == nil {
			kinds, err := p.client.Kinds(ctx, version)
			if err != nil {
				return fmt.Errorf("discovering %s: %w", version, err)
			}
			served[version] = kinds
		}
		if !served[version][k.Kind] {
			return fmt.Errorf("kind %s of %s is not served yet", k.Kind, version)
		}
	}
	return nil
}

func (p *Prober) checkObjects(ctx context.Context) error {
	var paths []string
	if p.Conditions.Infrastructure {
		paths = append(paths, "/apis/config.openshift.io/v1/infrastructures/cluster")
	}
	if name := p.Conditions.ClusterRoleBinding; name != "" {
		paths = append(paths, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/"+url.PathEscape(name))
	}
	for _, path := range paths {
		if err := p.client.Get(ctx, path, nil); err != nil {
			return fmt.Errorf("looking for %s: %w", path, err)
		}
	}
	return nil
}

func (p *Prober) checkPodsGone(ctx context.Context) error {
	pods := p.Conditions.PodsGone
	if pods == nil {
		return nil
	}
	query := url.Values{"labelSelector": {pods.Selector}, "limit": {"500"}}
	var list struct {
		Items []struct {
			Metadata struct {
				DeletionTimestamp *time.Time `json:"deletionTimestamp"`
			} `json:"metadata"`
		} `json:"items"`
	}
	path := "/api/v1/namespaces/" + url.PathEscape(pods.Namespace) + "/pods?" + query.Encode()
	if err := p.client.Get(ctx, path, &list); err != nil {
		return fmt.Errorf("listing pods of %s with %s: %w", pods.Namespace, pods.Selector, err)
	}
	left := 0
	for _, pod := range list.Items {
		if deleted := pod.Metadata.DeletionTimestamp; deleted == nil || p.Now().Sub(*deleted) < stuckPod {
			left++
		}
	}
	if left > 0 {
		return fmt.Errorf("%d pods of namespace %s with label %s are still there", left, pods.Namespace, pods.Selector)
	}
	return nil
}
