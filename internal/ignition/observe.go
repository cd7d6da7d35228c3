package ignition

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/names"
	"hcp.internal/platform/internal/contract/nodeconfig"
	"hcp.internal/platform/internal/contract/token"
	"hcp.internal/platform/internal/ignition/payload"
	"hcp.internal/platform/internal/pki"
	"hcp.internal/platform/internal/release"
)

const clusterDomain = "cluster.local"

// dnsIndex is the place of the DNS Service's address in the first service network, as everywhere.
const dnsIndex = 10

// errWaiting is wrapped by errors that end when somebody else has made an object.
var errWaiting = errors.New("waiting")

// inputs gathers what the payload of a token Secret is made of. It returns the release's flavour with it.
func (r *Reconciler) inputs(ctx context.Context, secret *corev1.Secret) (in payload.Inputs, kubernetes bool, err error) {
	if in.Config, err = decodeConfig(secret.Data[token.ConfigKey]); err != nil {
		return in, false, &payload.InvalidError{Err: err}
	}
	hcp, err := r.hostedControlPlane(ctx)
	if err != nil {
		return in, false, err
	}
	pullSecret, err := r.secretKey(ctx, names.PullSecret, names.DockerConfigKey)
	if err != nil {
		return in, false, err
	}
	image := string(secret.Data[token.ReleaseKey])
	if image == "" {
		return in, false, fmt.Errorf("%w for key %s of secret %s", errWaiting, token.ReleaseKey, secret.Name)
	}
	if hcp.Spec.AdditionalTrustBundle != nil {
		if in.TrustBundle, err = r.configMapKey(ctx, names.UserCABundle, names.CABundleKey); err != nil {
			return in, false, err
		}
	}
	found, err := release.WithTrustOf(r.Releases, in.TrustBundle).Lookup(ctx, image, pullSecret)
	if err != nil {
		return in, false, fmt.Errorf("looking up release %s: %w", image, err)
	}
	in.Version, in.Images, in.PullSecret = found.Version, found.Images, pullSecret
	// Machines of platform Local are containers; those of a cloud are only where it is emulated.
	in.Nested = hcp.Spec.Platform.Type == hyperv1.LocalPlatform || hcp.Annotations[names.ContainerMachinesAnnotation] == "true"
	in.ClusterDomain = clusterDomain
	if in.ClusterDNS, err = clusterDNS(&hcp.Spec.Networking); err != nil {
		return in, false, &payload.InvalidError{Err: err}
	}
	if in.BootstrapKubeconfig, err = r.secretKey(ctx, bootstrapKubeconfigSecret, pki.KubeconfigKey); err != nil {
		return in, false, err
	}
	if in.KubeletCA, err = r.configMapKey(ctx, kubeletCAConfigMap, pki.CACertKey); err != nil {
		return in, false, err
	}
	in.Proxy = proxyOf(hcp)
	if !found.Kubernetes {
		return in, false, r.openShift(ctx, secret, hcp, found, &in)
	}
	if err := readNodeKeys(secret, &in); err != nil {
		return in, false, &payload.InvalidError{Err: err}
	}
	return in, found.Kubernetes, nil
}

// readNodeKeys reads the labels and taints of nodes. One label says with which configuration a node began: nothing else does, since Cluster
// API gives all Machines of a MachineSet its newest user data.
func readNodeKeys(secret *corev1.Secret, in *payload.Inputs) error {
	if data := secret.Data[token.NodeLabelsKey]; len(data) > 0 {
		if err := json.Unmarshal(data, &in.Labels); err != nil {
			return fmt.Errorf("key %s of secret %s is not a JSON object of strings", token.NodeLabelsKey, secret.Name)
		}
	}
	if data := secret.Data[token.NodeTaintsKey]; len(data) > 0 {
		if err := json.Unmarshal(data, &in.Taints); err != nil {
			return fmt.Errorf("key %s of secret %s is not a JSON list of taints", token.NodeTaintsKey, secret.Name)
		}
	}
	if _, name, ok := strings.Cut(secret.Annotations[hyperv1.NodePoolAnnotation], "/"); ok {
		if in.Labels == nil {
			in.Labels = map[string]string{}
		}
		in.Labels[hyperv1.NodePoolLabel] = name
		if hash, ok := token.HashOf(name, secret.Name); ok {
			in.Labels[hyperv1.NodePoolFirstConfigVersionLabel] = hash
		}
	}
	return nil
}

// hostedControlPlane is the one of the namespace.
func (r *Reconciler) hostedControlPlane(ctx context.Context) (*hyperv1.HostedControlPlane, error) {
	list := &hyperv1.HostedControlPlaneList{}
	if err := r.Live.List(ctx, list, client.InNamespace(r.Namespace), client.Limit(2)); err != nil {
		return nil, fmt.Errorf("listing HostedControlPlanes of %s: %w", r.Namespace, err)
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%w for one HostedControlPlane in %s, there are %d", errWaiting, r.Namespace, len(list.Items))
	}
	return &list.Items[0], nil
}

func (r *Reconciler) secretKey(ctx context.Context, name, key string) ([]byte, error) {
	s := &corev1.Secret{}
	if err := r.read(ctx, name, s); err != nil {
		return nil, err
	}
	if len(s.Data[key]) == 0 {
		return nil, fmt.Errorf("%w for key %s of secret %s", errWaiting, key, name)
	}
	return s.Data[key], nil
}

func (r *Reconciler) configMapKey(ctx context.Context, name, key string) ([]byte, error) {
	cm := &corev1.ConfigMap{}
	if err := r.read(ctx, name, cm); err != nil {
		return nil, err
	}
	if cm.Data[key] == "" {
		return nil, fmt.Errorf("%w for key %s of config map %s", errWaiting, key, name)
	}
	return []byte(cm.Data[key]), nil
}

func (r *Reconciler) read(ctx context.Context, name string, into client.Object) error {
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w for %T %s", errWaiting, into, name)
	}
	if err != nil {
		return fmt.Errorf("reading %T %s: %w", into, name, err)
	}
	return nil
}

// decodeConfig undoes gzip and, around it, base64, which older writers leave out.
func decodeConfig(data []byte) (string, error) {
	if len(data) == 0 {
		return "", nil
	}
	if decoded, err := base64.StdEncoding.DecodeString(string(data)); err == nil {
		data = decoded
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("key %s is not compressed by gzip", token.ConfigKey)
	}
	text, err := io.ReadAll(io.LimitReader(reader, nodeconfig.MaxSize+1))
	if err != nil {
		return "", fmt.Errorf("key %s is damaged: %w", token.ConfigKey, err)
	}
	if len(text) > nodeconfig.MaxSize {
		return "", fmt.Errorf("key %s holds more than %d MiB", token.ConfigKey, nodeconfig.MaxSize>>20)
	}
	return string(text), nil
}

// encodePayload is what decodeConfig undoes. The same data gives the same bytes.
func encodePayload(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b) // no name, no time
	if _, err := w.Write(data); err != nil {
		return nil, fmt.Errorf("compressing the payload: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing the payload: %w", err)
	}
	return []byte(base64.StdEncoding.EncodeToString(b.Bytes())), nil
}

// clusterDNS is the tenth address of the first service network.
func clusterDNS(n *hyperv1.ClusterNetworking) (string, error) {
	if len(n.ServiceNetwork) == 0 {
		return "", errors.New("spec.networking.serviceNetwork is empty")
	}
	prefix, err := netip.ParsePrefix(string(n.ServiceNetwork[0].CIDR))
	if err != nil {
		return "", fmt.Errorf("spec.networking.serviceNetwork[0].cidr: %w", err)
	}
	addr := prefix.Masked().Addr()
	for range dnsIndex {
		addr = addr.Next()
	}
	if !prefix.Contains(addr) {
		return "", fmt.Errorf("spec.networking.serviceNetwork[0].cidr %s is too small", prefix)
	}
	return addr.String(), nil
}

// proxyOf is the cluster's proxy, with what must never go through it: the networks of the cluster and its names.
func proxyOf(hcp *hyperv1.HostedControlPlane) payload.Proxy {
	if hcp.Spec.Configuration == nil || hcp.Spec.Configuration.Proxy == nil {
		return payload.Proxy{}
	}
	p := hcp.Spec.Configuration.Proxy
	if p.HTTPProxy == "" && p.HTTPSProxy == "" {
		return payload.Proxy{}
	}
	direct := []string{"127.0.0.1", "localhost", ".svc", "." + clusterDomain}
	for _, n := range hcp.Spec.Networking.ClusterNetwork {
		direct = append(direct, string(n.CIDR))
	}
	for _, n := range hcp.Spec.Networking.ServiceNetwork {
		direct = append(direct, string(n.CIDR))
	}
	for _, n := range hcp.Spec.Networking.MachineNetwork {
		direct = append(direct, string(n.CIDR))
	}
	for own := range strings.SplitSeq(p.NoProxy, ",") {
		if own = strings.TrimSpace(own); own != "" {
			direct = append(direct, own)
		}
	}
	slices.Sort(direct)
	return payload.Proxy{HTTP: p.HTTPProxy, HTTPS: p.HTTPSProxy, No: strings.Join(slices.Compact(direct), ",")}
}

// lookupTimeout of the inputs, of which the release may come from a registry far away.
const lookupTimeout = time.Minute

// payload makes the payload, or takes the one that was made of the same inputs.
func (r *Reconciler) payload(ctx context.Context, secret *corev1.Secret) ([]byte, error) {
	lookup, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	in, kubernetes, err := r.inputs(lookup, secret)
	if err != nil {
		return nil, err
	}
	generator := r.OpenShift
	if kubernetes {
		generator = r.Kubernetes
	}
	key := in.Key()
	if data, ok := r.payloads.get(secret.Name, key); ok {
		r.Metrics.hit()
		return data, nil
	}
	r.Metrics.missed()
	start := r.Clock.Now()
	data, err := generator.Generate(ctx, in) // which bounds itself: what takes a moment for one release takes minutes for another
	if !kubernetes {
		if err := r.reportRelease(ctx, err); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	r.Metrics.generated(r.Clock.Since(start))
	r.payloads.put(secret.Name, key, data)
	return data, nil
}
