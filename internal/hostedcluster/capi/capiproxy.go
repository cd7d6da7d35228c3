package capi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"hcp.internal/platform/internal/capigroup/translate"
)

// proxyPatience is how long the look for the proxy may take: it stands on the same loopback, and asks an API server that answers in milliseconds.
const proxyPatience = 30 * time.Second

// ExpectProxy returns an error unless cfg leads to a proxy that hides the groups of private types. Without one the operator would take the
// management cluster's standard groups for those of its hosted clusters, find none of their machines, and make them again.
func ExpectProxy(ctx context.Context, cfg *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, proxyPatience)
	defer cancel()
	hc, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("setting up the look for the proxy of private types: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return fmt.Errorf("reading the address of the management cluster: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base.String(), "/")+"/apis/"+translate.Private, nil)
	if err != nil {
		return fmt.Errorf("building the look for the proxy of private types: %w", err)
	}
	response, err := hc.Do(request)
	if err != nil {
		return fmt.Errorf("looking for the proxy of private types: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // so that the connection can be used again
	switch response.StatusCode {
	case http.StatusNotFound:
		return nil
	case http.StatusOK:
		return fmt.Errorf("%s serves group %s, so there is no proxy before it, and with --private-capi-types this operator must not talk to the management cluster itself: "+
			"give the kubeconfig that hcp-sidecar capi-proxy writes", base, translate.Private)
	}
	return fmt.Errorf("looking for the proxy of private types: %s answers with status %d", base, response.StatusCode)
}
