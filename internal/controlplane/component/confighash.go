package component

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clientCA is the ConfigMap that kube-apiserver reloads, in whichever pod it is mounted.
const clientCA = "client-ca"

// configRef is an object that pods read. Without keys, all of it counts.
type configRef struct {
	kind string // ConfigMap or Secret
	name string
	keys []string
}

// configHash restarts the pods when something that they read changes, except what their program reads again by itself.
func configHash(s *scope) error {
	refs := configRefs(&s.template.Spec, s.c.reloaded.Has)
	if len(refs) == 0 && s.ctx.Release.Kubernetes {
		return nil
	}
	var lines []string
	for _, ref := range refs {
		data, err := s.configData(ref)
		if err != nil {
			return fmt.Errorf("reading %s %s for the configuration hash: %w", ref.kind, ref.name, err)
		}
		for key, value := range data {
			if len(ref.keys) == 0 || slices.Contains(ref.keys, key) {
				digest := sha256.Sum256(value)
				lines = append(lines, ref.kind+"/"+ref.name+"/"+key+"="+hex.EncodeToString(digest[:]))
			}
		}
	}
	hash := hashLines(lines)
	if len(lines) == 0 && !s.ctx.Release.Kubernetes {
		hash = "" // Pods of payloads bear the annotation always; what is absent contributes nothing to it.
	}
	setAnnotation(&s.template.ObjectMeta, ConfigHashAnnotation, hash)
	return nil
}

// hashLines is the hash of a set of lines: their order and repetition don't matter. It has the same size for any number.
func hashLines(lines []string) string {
	slices.Sort(lines)
	digest := sha256.Sum256([]byte(strings.Join(slices.Compact(lines), "\n")))
	return hex.EncodeToString(digest[:])
}

// configRefs lists the ConfigMaps and Secrets that a pod reads as files or as environment, without volumes that are skipped.
func configRefs(pod *corev1.PodSpec, skipVolume func(name string) bool) []configRef {
	var refs []configRef
	add := func(kind, name string, items []corev1.KeyToPath) {
		if name == "" || kind == "ConfigMap" && name == clientCA {
			return
		}
		ref := configRef{kind: kind, name: name}
		for _, item := range items {
			ref.keys = append(ref.keys, item.Key)
		}
		refs = append(refs, ref)
	}
	for _, v := range pod.Volumes {
		if skipVolume(v.Name) {
			continue
		}
		if v.ConfigMap != nil {
			add("ConfigMap", v.ConfigMap.Name, v.ConfigMap.Items)
		}
		if v.Secret != nil {
			add("Secret", v.Secret.SecretName, v.Secret.Items)
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				add("ConfigMap", source.ConfigMap.Name, source.ConfigMap.Items)
			}
			if source.Secret != nil {
				add("Secret", source.Secret.Name, source.Secret.Items)
			}
		}
	}
	forEachContainer(pod, func(c *corev1.Container) {
		for _, from := range c.EnvFrom {
			if from.ConfigMapRef != nil {
				add("ConfigMap", from.ConfigMapRef.Name, nil)
			}
			if from.SecretRef != nil {
				add("Secret", from.SecretRef.Name, nil)
			}
		}
		for _, env := range c.Env {
			if env.ValueFrom == nil {
				continue
			}
			if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
				add("ConfigMap", ref.Name, []corev1.KeyToPath{{Key: ref.Key}})
			}
			if ref := env.ValueFrom.SecretKeyRef; ref != nil {
				add("Secret", ref.Name, []corev1.KeyToPath{{Key: ref.Key}})
			}
		}
	})
	return refs
}

// configData is the content of an object: as it was rendered just now, if the component makes it itself (reading it would
// give the previous content, and a second restart one pass later), else as it is in the cluster. An absent object is empty.
func (s *scope) configData(ref configRef) (map[string][]byte, error) {
	for _, obj := range s.rendered {
		if obj.GetName() != ref.name {
			continue
		}
		switch o := obj.(type) {
		case *corev1.ConfigMap:
			if ref.kind == "ConfigMap" {
				return configMapData(o), nil
			}
		case *corev1.Secret:
			if ref.kind == "Secret" {
				return secretData(o), nil
			}
		}
	}
	key := client.ObjectKey{Namespace: s.ctx.HCP.Namespace, Name: ref.name}
	if ref.kind == "Secret" {
		secret := &corev1.Secret{}
		if err := s.ctx.Reader.Get(s.ctx.Context, key, secret); err != nil {
			return nil, ignoreNotFound(err)
		}
		return secretData(secret), nil
	}
	cm := &corev1.ConfigMap{}
	if err := s.ctx.Reader.Get(s.ctx.Context, key, cm); err != nil {
		return nil, ignoreNotFound(err)
	}
	return configMapData(cm), nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func configMapData(cm *corev1.ConfigMap) map[string][]byte {
	data := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}
	for k, v := range cm.BinaryData {
		data[k] = v
	}
	return data
}

func secretData(secret *corev1.Secret) map[string][]byte {
	data := make(map[string][]byte, len(secret.Data)+len(secret.StringData))
	for k, v := range secret.Data {
		data[k] = v
	}
	for k, v := range secret.StringData {
		data[k] = []byte(v)
	}
	return data
}
