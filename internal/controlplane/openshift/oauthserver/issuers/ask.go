package issuers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hcp.internal/platform/internal/clip"
)

const (
	// askTimeout bounds one request with all that it needs, as published.
	askTimeout = 30 * time.Second
	// maxAnswer bounds what is read of an answer: discovery documents have some 2 KiB.
	maxAnswer = 256 << 10
	// maxHeader bounds its headers.
	maxHeader = 64 << 10
	// maxRedirects bounds how often an issuer may send us on.
	maxRedirects = 3
	// maxURL bounds the URLs that an issuer tells, which become a part of the OAuth server's configuration.
	maxURL = 2048
)

// URLs are the endpoints of an issuer, each https. UserInfo may be empty.
type URLs struct {
	Authorize, Token, UserInfo string
}

// problem is an error whose text is ours alone, so that it may be told in a condition.
type problem string

func (p problem) Error() string { return string(p) }

// Client asks over connections that Dial opens.
type Client struct {
	// Dial connects to host:port.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Trust is PEM that is trusted besides the system's authorities and the provider's own.
	Trust []byte
}

// URLs implements Asker.
func (c *Client) URLs(ctx context.Context, q Question) (URLs, error) {
	issuer, err := url.Parse(q.Issuer)
	if err != nil || issuer.Scheme != "https" || issuer.Host == "" || issuer.User != nil || issuer.RawQuery != "" || issuer.Fragment != "" {
		return URLs{}, problem("the issuer must be a URL https://host[:port][/path] without user, query and fragment")
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(q.Issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return URLs{}, problem("the issuer is no URL")
	}
	client, done, err := c.client(q)
	if err != nil {
		return URLs{}, err
	}
	defer done()
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return problem(fmt.Sprintf("it redirects more than %d times", maxRedirects))
		}
		if req.URL.Scheme != "https" {
			return problem("it redirects to a URL that is not https")
		}
		return nil
	}
	status, body, err := send(client, req)
	if err != nil {
		return URLs{}, err
	}
	if status != http.StatusOK {
		return URLs{}, problem(fmt.Sprintf("it answered %d", status))
	}
	var document struct {
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
		UserInfo  string `json:"userinfo_endpoint"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return URLs{}, problem("its answer is no discovery document: it must be JSON")
	}
	for _, u := range []struct {
		field, value string
		optional     bool
	}{{"authorization_endpoint", document.Authorize, false}, {"token_endpoint", document.Token, false}, {"userinfo_endpoint", document.UserInfo, true}} {
		if u.value == "" && u.optional {
			continue
		}
		if err := endpoint(u.value); err != nil {
			return URLs{}, problem(fmt.Sprintf("%s of its discovery document %s", u.field, err))
		}
	}
	return URLs{document.Authorize, document.Token, document.UserInfo}, nil
}

// endpoint says what is wrong with a URL that users are sent to, or that gets their codes and passwords.
func endpoint(value string) error {
	switch u, err := url.Parse(value); {
	case value == "":
		return problem("is missing")
	case len(value) > maxURL:
		return problem(fmt.Sprintf("is longer than %d bytes", maxURL))
	case err != nil || u.Scheme != "https" || u.Host == "" || u.Fragment != "" || u.User != nil:
		return problem("must be a URL https://host[:port][/path] without user and fragment")
	}
	return nil
}

// Password implements Asker. It asks for a token of a user that is not there: an issuer that takes passwords refuses this one, and others the way.
func (c *Client) Password(ctx context.Context, token string, q Question) (bool, error) {
	if err := endpoint(token); err != nil {
		return false, problem("the URL for tokens " + err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	form := url.Values{
		"grant_type": {"password"}, "scope": {"openid"}, "username": {"test"}, "password": {"test"},
		"client_id": {q.ClientID}, "client_secret": {q.ClientSecret},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, token, strings.NewReader(form.Encode()))
	if err != nil {
		return false, problem("the URL for tokens is no URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client, done, err := c.client(q)
	if err != nil {
		return false, err
	}
	defer done()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the request has the client's password
	_, body, err := send(client, req)
	if err != nil {
		return false, err
	}
	var answer struct {
		Error       string `json:"error"`
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return false, nil
	}
	return answer.Error == "invalid_grant" || answer.AccessToken != "", nil
}

// client is for one request: what a provider is trusted with is no other's. done ends its connections.
func (c *Client) client(q Question) (*http.Client, func(), error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // an image without authorities: those of the user are left
	}
	roots.AppendCertsFromPEM(c.Trust)
	if len(q.CA) > 0 && !roots.AppendCertsFromPEM(q.CA) {
		return nil, nil, problem("openID.ca: key ca.crt of the ConfigMap holds no certificate in PEM")
	}
	transport := &http.Transport{
		DialContext: c.Dial, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
		TLSHandshakeTimeout: askTimeout, ResponseHeaderTimeout: askTimeout, MaxResponseHeaderBytes: maxHeader,
	}
	return &http.Client{Transport: transport}, transport.CloseIdleConnections, nil
}

func send(client *http.Client, req *http.Request) (status int, body []byte, _ error) {
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err := context.Cause(req.Context()); err != nil {
		return 0, nil, err // before what came: net/http may give the answer of a connection that was cut off for this
	}
	if err != nil {
		return 0, nil, err
	}
	if len(body) > maxAnswer {
		return 0, nil, problem(fmt.Sprintf("its answer has more than %d bytes", maxAnswer))
	}
	return resp.StatusCode, body, nil
}

// told is an error as a condition may tell it: in our words, without addresses and ports that change, and without what the other side said.
func told(q Question, err error) error {
	whom := fmt.Sprintf("issuer %q", clip.To(q.Issuer, maxURL))
	if q.Issuer == "" {
		whom = "the provider's URL for tokens"
	}
	var own problem
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var network net.Error
	switch {
	case errors.As(err, &own):
		return fmt.Errorf("asking %s: %w", whom, own)
	case errors.As(err, &authority):
		return fmt.Errorf("asking %s: its certificate is signed by an unknown authority: put that into the ConfigMap that openID.ca names, key ca.crt", whom)
	case errors.As(err, &name):
		return fmt.Errorf("asking %s: its certificate is for other names", whom)
	case errors.As(err, &invalid):
		return fmt.Errorf("asking %s: its certificate is not valid", whom)
	case errors.As(err, &record):
		return fmt.Errorf("asking %s: it does not speak TLS", whom)
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("asking %s: no answer within %s", whom, askTimeout)
	}
	return fmt.Errorf("asking %s: it can't be reached from the network of the hosted cluster; a node has to run there, and to reach it", whom)
}
