package conversion

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/config"
	"hcp.internal/platform/internal/capigroup/translate"
	"hcp.internal/platform/internal/contract/names"
)

const (
	// SecretName is where the certificates are, in the operator's namespace.
	SecretName = config.ConversionService + "-tls"

	// keepEvery is how long a new definition may be without its bundle. What is unchanged costs one list of metadata.
	keepEvery = 20 * time.Second
	// passTimeout bounds one pass.
	passTimeout = time.Minute
)

// Keeper keeps the webhook's certificates, and the bundles in the definitions that name its Service. Several may run at once: the Secret's
// resourceVersion decides who was first, and the others take what it says.
type Keeper struct {
	// Client writes; it must read live, and know Secrets and CustomResourceDefinitions.
	Client    client.Client
	Namespace string
	Clock     clock.WithTicker

	serving atomic.Pointer[tls.Certificate]
	seen    map[types.UID]string // resourceVersion of definitions that need nothing, by the bundle of now
	bundle  []byte
}

// GetCertificate is for a tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.serving.Load(); c != nil {
		return c, nil
	}
	return nil, errors.New("the webhook has no certificate yet")
}

// NeedLeaderElection says that every replica serves, so that every replica needs the certificate.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start passes until ctx ends.
func (k *Keeper) Start(ctx context.Context) error {
	ticker := k.Clock.NewTicker(keepEvery)
	defer ticker.Stop()
	for {
		if err := k.Pass(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "keeping the certificates of the conversion webhook")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Pass looks at everything once. It writes nothing if nothing changed.
func (k *Keeper) Pass(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	certs, err := k.certificates(ctx)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certs.Cert, certs.Key)
	if err != nil {
		return fmt.Errorf("loading the certificate of Secret %s/%s: %w", k.Namespace, SecretName, err)
	}
	k.serving.Store(&pair)
	return k.inject(ctx, certs.CABundle)
}

// certificates makes the Secret as Plan wants it.
func (k *Keeper) certificates(ctx context.Context) (Certificates, error) {
	secret := &corev1.Secret{}
	err := k.Client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: SecretName}, secret)
	if client.IgnoreNotFound(err) != nil {
		return Certificates{}, fmt.Errorf("reading Secret %s/%s: %w", k.Namespace, SecretName, err)
	}
	missing := err != nil
	have := Certificates{CABundle: secret.Data[keyCABundle], CAKey: secret.Data[keyCAKey], Cert: secret.Data[keyCert], Key: secret.Data[keyKey]}
	host := config.ConversionService + "." + k.Namespace
	want, err := Plan(k.Clock.Now(), []string{host + ".svc", host + ".svc.cluster.local"}, have)
	if err != nil || want.equal(have) {
		return want, err
	}
	data := map[string][]byte{keyCABundle: want.CABundle, keyCAKey: want.CAKey, keyCert: want.Cert, keyKey: want.Key}
	if missing {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: SecretName}, Type: corev1.SecretTypeTLS, Data: data}
		// Created and not applied: of two replicas that start at once, one must lose.
		err = k.Client.Create(ctx, secret, client.FieldOwner(names.HypershiftOperator))
	} else {
		secret.Data = data
		err = k.Client.Update(ctx, secret, client.FieldOwner(names.HypershiftOperator)) // by the resourceVersion that was read
	}
	if err != nil {
		return Certificates{}, fmt.Errorf("writing Secret %s/%s: %w", k.Namespace, SecretName, err)
	}
	return want, nil
}

// inject writes the bundle into the definitions of Cluster API that are converted by our Service.
func (k *Keeper) inject(ctx context.Context, bundle []byte) error {
	if !bytes.Equal(bundle, k.bundle) {
		k.seen, k.bundle = map[types.UID]string{}, bundle
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := k.Client.List(ctx, list); err != nil {
		return fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	var errs []error
	for i := range list.Items {
		meta := &list.Items[i]
		if translate.CRDName(meta.Name) == meta.Name || k.seen[meta.UID] == meta.ResourceVersion {
			continue
		}
		version, err := k.injectOne(ctx, meta.Name, bundle)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		k.seen[meta.UID] = version
	}
	return errors.Join(errs...)
}

// injectOne returns the resourceVersion that needs nothing more.
func (k *Keeper) injectOne(ctx context.Context, name string, bundle []byte) (string, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := k.Client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return "", ignoreGone(err, "reading CustomResourceDefinition "+name)
	}
	conv := crd.Spec.Conversion
	if conv == nil || conv.Webhook == nil || conv.Webhook.ClientConfig == nil || conv.Webhook.ClientConfig.Service == nil {
		return crd.ResourceVersion, nil
	}
	service := conv.Webhook.ClientConfig.Service
	if service.Namespace != k.Namespace || service.Name != config.ConversionService || bytes.Equal(conv.Webhook.ClientConfig.CABundle, bundle) {
		return crd.ResourceVersion, nil // somebody else's webhook, or done
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.ResourceVersion}, // the Service may be another's by now
		"spec":     map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{"caBundle": bundle}}}},
	})
	if err != nil {
		return "", err
	}
	if err := k.Client.Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(names.HypershiftOperator)); err != nil {
		return "", ignoreGone(err, "writing the CA bundle of CustomResourceDefinition "+name)
	}
	ctrl.LoggerFrom(ctx).Info("gave a definition the CA of the conversion webhook", "customResourceDefinition", name)
	return crd.ResourceVersion, nil
}

func ignoreGone(err error, doing string) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
