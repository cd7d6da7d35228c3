package kubevirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/sidecar/kubeapi"
)

var dataVolumeKind = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}

// maxVolumes bounds how many volumes of one pool are looked at; there is one of each image that its machines still run.
const maxVolumes = 50

// volumes are DataVolumes of a namespace, of the management cluster or of another.
type volumes interface {
	// list gives those that keep boot images of a pool.
	list(ctx context.Context, pool types.UID) ([]kept, error)
	// create makes one; that it is there is fine.
	create(ctx context.Context, dv dataVolumeTemplate) error
	// remove deletes one; that it is gone is fine.
	remove(ctx context.Context, name string) error
	// close ends connections.
	close()
}

// errNoKubeconfig says that there is no kubeconfig of the cluster that runs the virtual machines.
var errNoKubeconfig = errors.New("there is no Secret with the kubeconfig of the cluster that runs the virtual machines: create it")

// otherCluster is the cluster that a kubeconfig leads to: that of the user's Secret or, where that is gone, of its copy beside the control plane.
func otherCluster(ctx context.Context, live client.Reader, credentials *hyperv1.KubevirtPlatformCredentials, namespace, hcpNamespace string) (*kubeapi.Client, error) {
	if credentials.InfraKubeConfigSecret == nil || credentials.InfraNamespace == "" {
		return nil, errors.New("credentials need infraKubeConfigSecret and infraNamespace")
	}
	key := credentials.InfraKubeConfigSecret.Key
	if key == "" {
		key = kubeconfigKey
	}
	for _, from := range []struct{ namespace, name, key string }{{namespace, credentials.InfraKubeConfigSecret.Name, key}, {hcpNamespace, InfraSecret, kubeconfigKey}} {
		secret := &corev1.Secret{}
		err := live.Get(ctx, client.ObjectKey{Namespace: from.namespace, Name: from.name}, secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading Secret %s: %w", from.name, err)
		}
		api, err := kubeapi.FromKubeconfigBytes(secret.Data[from.key])
		if err != nil {
			return nil, fmt.Errorf("key %s of Secret %s is no kubeconfig that can be used here: its credentials must be embedded", from.key, from.name)
		}
		return api, nil
	}
	return nil, fmt.Errorf("Secret %s: %w", credentials.InfraKubeConfigSecret.Name, errNoKubeconfig)
}

func selector(pool types.UID) client.MatchingLabels {
	return client.MatchingLabels{cacheRoleLabel: cacheRole, cachePoolLabel: string(pool)}
}

type managementVolumes struct {
	client    client.Client
	live      client.Reader
	namespace string
}

func (m managementVolumes) list(ctx context.Context, pool types.UID) ([]kept, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(dataVolumeKind.GroupVersion().WithKind("DataVolumeList"))
	err := m.live.List(ctx, found, client.InNamespace(m.namespace), selector(pool), client.Limit(maxVolumes))
	switch {
	case isMissing(err):
		return nil, nil // what creates one says so
	case err != nil:
		return nil, fmt.Errorf("listing DataVolumes: %w", err)
	}
	var list []kept
	for i := range found.Items {
		if found.Items[i].DeletionTimestamp.IsZero() {
			list = append(list, kept{found.Items[i].Name, found.Items[i].Annotations[cacheHash]})
		}
	}
	return list, nil
}

// objectOf is a DataVolume as an API server takes it.
func objectOf(dv dataVolumeTemplate, namespace string) (*unstructured.Unstructured, error) {
	dv.Metadata.Namespace = namespace
	raw, err := json.Marshal(dv)
	if err != nil {
		return nil, fmt.Errorf("encoding DataVolume %s: %w", dv.Metadata.Name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return nil, fmt.Errorf("encoding DataVolume %s: %w", dv.Metadata.Name, err)
	}
	u.SetGroupVersionKind(dataVolumeKind)
	return u, nil
}

func (m managementVolumes) create(ctx context.Context, dv dataVolumeTemplate) error {
	u, err := objectOf(dv, m.namespace)
	if err != nil {
		return err
	}
	err = m.client.Create(ctx, u, client.FieldOwner(operatorName))
	switch {
	case isMissing(err):
		return errors.New("the management cluster serves no DataVolumes, by which boot images are kept: install KubeVirt's containerized data importer there, or leave out rootVolume.cacheStrategy")
	case client.IgnoreAlreadyExists(err) != nil:
		return fmt.Errorf("creating DataVolume %s: %w", dv.Metadata.Name, err)
	}
	return nil
}

func (m managementVolumes) remove(ctx context.Context, name string) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(dataVolumeKind)
	u.SetNamespace(m.namespace)
	u.SetName(name)
	if err := m.client.Delete(ctx, u); err != nil && !isMissing(err) {
		return fmt.Errorf("deleting DataVolume %s: %w", name, err)
	}
	return nil
}

func (managementVolumes) close() {}

// otherVolumes are those of a cluster that a user's kubeconfig leads to. Its answers are not repeated.
type otherVolumes struct {
	api       *kubeapi.Client
	namespace string
}

var errOtherVolumes = errors.New("the cluster that runs the virtual machines refuses, or can't be asked for, the DataVolume that keeps the boot image: " +
	"its kubeconfig must allow to list, create, patch and delete DataVolumes in infraNamespace; or leave out rootVolume.cacheStrategy")

func (o otherVolumes) path() string {
	return "/apis/cdi.kubevirt.io/v1beta1/namespaces/" + url.PathEscape(o.namespace) + "/datavolumes"
}

func (o otherVolumes) list(ctx context.Context, pool types.UID) ([]kept, error) {
	ctx, cancel := context.WithTimeout(ctx, domainTimeout)
	defer cancel()
	query := url.Values{"labelSelector": {cacheRoleLabel + "=" + cacheRole + "," + cachePoolLabel + "=" + string(pool)}, "limit": {fmt.Sprint(maxVolumes)}}
	var found metav1.PartialObjectMetadataList
	if err := o.api.Get(ctx, o.path()+"?"+query.Encode(), &found); err != nil {
		return nil, errOtherVolumes
	}
	var list []kept
	for i := range found.Items[:min(len(found.Items), maxVolumes)] {
		// The other cluster is not ours: what it calls its objects becomes part of requests.
		if m := found.Items[i].ObjectMeta; m.DeletionTimestamp.IsZero() && len(validation.IsDNS1123Subdomain(m.Name)) == 0 {
			list = append(list, kept{m.Name, m.Annotations[cacheHash]})
		}
	}
	return list, nil
}

func (o otherVolumes) create(ctx context.Context, dv dataVolumeTemplate) error {
	ctx, cancel := context.WithTimeout(ctx, domainTimeout)
	defer cancel()
	u, err := objectOf(dv, o.namespace)
	if err != nil {
		return err
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding DataVolume %s: %w", dv.Metadata.Name, err)
	}
	if err := o.api.Apply(ctx, o.path()+"/"+dv.Metadata.Name, operatorName, raw); err != nil {
		return errOtherVolumes
	}
	return nil
}

func (o otherVolumes) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, domainTimeout)
	defer cancel()
	if err := o.api.Delete(ctx, o.path()+"/"+url.PathEscape(name)); err != nil && !kubeapi.IsNotFound(err) {
		return errOtherVolumes
	}
	return nil
}

func (o otherVolumes) close() { o.api.Close() }
