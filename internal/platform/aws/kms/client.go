package kms

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/aws/session"
	"hcp.internal/platform/internal/contract/names"
)

// The plugin's service account, whose tokens the role trusts, and what those are for.
const (
	accountNamespace, accountName = "kube-system", "kms-provider"
	audience                      = "openshift"
	// tokenLife is the shortest that an API server gives.
	tokenLife = 600
	// agent is the name of the role's session.
	agent = "control-plane-operator"
)

// Tokens makes tokens with the administrator's kubeconfig of the control plane, which reader reads without a cache.
func Tokens(reader client.Reader) func(context.Context, *hyperv1.HostedControlPlane) (string, error) {
	return func(ctx context.Context, hcp *hyperv1.HostedControlPlane) (string, error) {
		secret := &corev1.Secret{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: hcp.Namespace, Name: names.ServiceNetworkKubeconfig}, secret); err != nil {
			return "", fmt.Errorf("reading the kubeconfig of the hosted cluster: %w", err)
		}
		cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
		if err != nil {
			return "", errors.New("the kubeconfig of the hosted cluster can't be read") // its text may quote it
		}
		cfg.Timeout = callTimeout / 2
		scheme := runtime.NewScheme()
		if err := errors.Join(corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil {
			return "", err
		}
		c, err := client.New(cfg, client.Options{Scheme: scheme})
		if err != nil {
			return "", fmt.Errorf("connecting to the hosted cluster: %w", err)
		}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: ptr.To[int64](tokenLife)}}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accountNamespace, Name: accountName}}
		if err := c.SubResource("token").Create(ctx, account, request); err != nil {
			return "", fmt.Errorf("asking the hosted cluster for a token: %w", err)
		}
		return request.Status.Token, nil
	}
}

// token is one that is at hand.
type token string

// GetIdentityToken implements stscreds.IdentityTokenRetriever.
func (t token) GetIdentityToken() ([]byte, error) { return []byte(t), nil }

// keys calls KMS in a role.
type keys struct {
	credentials aws.CredentialsProvider
	kms         *kms.Client
}

// open makes a client for the role of spec. It makes no request.
func open(ctx context.Context, spec *hyperv1.AWSKMSSpec, t string) (*keys, error) {
	cfg, err := session.Load(ctx, session.Options{Agent: agent, Region: spec.Region})
	if err != nil {
		return nil, err
	}
	cfg.Credentials = aws.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(cfg), spec.Auth.AWSKMSRoleARN, token(t),
		func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = agent }))
	return &keys{cfg.Credentials, kms.NewFromConfig(cfg)}, nil
}

// assume takes the role on.
func (k *keys) assume(ctx context.Context) error {
	_, err := k.credentials.Retrieve(ctx)
	return err
}

// encrypt tries the key.
func (k *keys) encrypt(ctx context.Context, arn string) error {
	_, err := k.kms.Encrypt(ctx, &kms.EncryptInput{KeyId: &arn, Plaintext: []byte("test")})
	return err
}
