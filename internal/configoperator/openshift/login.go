package openshift

import (
	"encoding/base64"
	"errors"
	"net"
	"strconv"

	"golang.org/x/crypto/bcrypt"

	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/pki"
)

const (
	kubeadminPassword = "kubeadmin-password"
	kubeadmin         = "kubeadmin"
	// kubeadminHash is on the Secret with the password: what the hosted cluster has of it. The OAuth server starts anew when it changes.
	kubeadminHash = "hypershift.openshift.io/kubeadmin-secret-hash"
	kubeadminKey  = "Secret kube-system/kubeadmin"
)

// Bcrypt is the hash of a password, as the OAuth server compares it.
func Bcrypt(password []byte) ([]byte, error) {
	return bcrypt.GenerateFromPassword(password, bcrypt.DefaultCost)
}

// kubeadminUser gives the hosted cluster the hash of the first user's password. One that matches stays: every hash of a password is another.
func kubeadminUser(in Input) ([]Action, error) {
	first := in.secret(kubeadminPassword)
	if first == nil {
		return []Action{remove(core, "Secret", "kube-system", kubeadmin)}, nil
	}
	password := first.Data["password"]
	if len(password) == 0 {
		return nil, errors.New("secret kubeadmin-password of the control plane namespace has no key password")
	}
	hash, err := base64.StdEncoding.DecodeString(text(in.Hosted.Objects[kubeadminKey], "data", kubeadmin))
	if err != nil || !cheap(hash) || bcrypt.CompareHashAndPassword(hash, password) != nil {
		if hash, err = in.Bcrypt(password); err != nil {
			return nil, err
		}
	}
	return append(apply(secret("kube-system", kubeadmin, "Opaque", map[string][]byte{kubeadmin: hash})), Action{
		Do: EditPresent, Management: true, Object: reference(core, "Secret", in.HCP.Namespace, kubeadminPassword),
		Change: func(live map[string]any) { section(live, "metadata", "annotations")[kubeadminHash] = string(hash) },
	}), nil
}

// cheap says whether a hash takes no longer to compare than ours: somebody in the hosted cluster may have put one there that takes hours.
func cheap(hash []byte) bool {
	cost, err := bcrypt.Cost(hash)
	return err == nil && cost <= bcrypt.DefaultCost
}

// login is what users of OpenShift's OAuth server need: whom to trust, and the clients that ask it for tokens.
func login(in Input) ([]Action, error) {
	if !in.oauth() {
		return nil, nil
	}
	var errs []error
	var actions []Action
	if authority := in.configMap(oauthBundle, pki.CACertKey); authority != "" {
		actions = apply(annotate(configMap(managedConfig, "oauth-serving-cert", map[string]string{names.CABundleKey: authority}), owningComponent, "apiserver-auth"))
	} else {
		errs = append(errs, errors.New("ConfigMap oauth-master-ca-bundle of the control plane namespace has no ca.crt yet"))
	}
	actions = append(actions, apply(load("oauth-trust.yaml")...)...)
	if in.OAuthHost == "" {
		return actions, errors.Join(append(errs, errors.New("where the OAuth server is published is not known yet"))...)
	}
	base := "https://" + net.JoinHostPort(in.OAuthHost, strconv.Itoa(int(in.OAuthPort))) + "/oauth/token/"
	client := func(name string, challenges bool, redirects ...string) Action {
		return edit("oauth.openshift.io/v1", "OAuthClient", "", name, func(live map[string]any) {
			live["redirectURIs"], live["grantMethod"] = list(redirects...), "auto"
			if challenges {
				live["respondWithChallenges"] = true
			}
			if name == browserClient {
				setIfEmpty(live, "secret", base64.RawURLEncoding.EncodeToString(in.Random(clientSecretBytes)))
			}
		})
	}
	return append(actions,
		client(browserClient, false, base+"display"),
		client("openshift-challenging-client", true, base+"implicit"),
		client("openshift-cli-client", false, "http://127.0.0.1/callback", "http://[::1]/callback"),
	), errors.Join(errs...)
}

const (
	browserClient = "openshift-browser-client"
	oauthBundle   = "oauth-master-ca-bundle"
	// clientSecretBytes make 32 characters.
	clientSecretBytes = 24
)

// monitoring has the hosted cluster's Prometheus ask kube-apiserver, which it reaches like anybody else.
func monitoring(Input) ([]Action, error) {
	return apply(load("servicemonitor.yaml")...), nil
}
