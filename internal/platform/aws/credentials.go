package aws

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/payload"
)

// Secrets with credentials, and their key.
const (
	nodeManagementSecret = "node-management-creds"
	credentialsKey       = "credentials"
)

// fromSecretPrefix stands before the name of a Secret in place of a role, as an older version of the API has it.
const fromSecretPrefix = "arn-from-secret::"

// maxCredentials bounds what is read of such a Secret, in bytes.
const maxCredentials = 64 << 10

// role says which Secret holds the credentials for a role.
type role struct {
	secret, field, arn string
	// moved: the role may be named by a Secret.
	moved bool
}

// roles are those that run beside the control plane. Those of the hosted cluster's own operators are written inside it.
func roles(hc *hyperv1.HostedCluster) []role {
	r := specOf(hc).RolesRef
	const at = "spec.platform.aws.rolesRef."
	list := []role{
		{"cloud-controller-creds", at + "kubeCloudControllerARN", r.KubeCloudControllerARN, true},
		{nodeManagementSecret, at + "nodePoolManagementARN", r.NodePoolManagementARN, true},
		{"control-plane-operator-creds", at + "controlPlaneOperatorARN", r.ControlPlaneOperatorARN, true},
		{"cloud-network-config-controller-creds", at + "networkARN", r.NetworkARN, false},
		{"ebs-cloud-credentials", at + "storageARN", r.StorageARN, false},
	}
	if e := hc.Spec.SecretEncryption; e != nil && e.KMS != nil && e.KMS.AWS != nil {
		if kms := e.KMS.AWS; kms.ActiveKey.ARN != "" && kms.Auth.AWSKMSRoleARN != "" {
			list = append(list, role{"kms-creds", "spec.secretEncryption.kms.aws.auth.awsKms", kms.Auth.AWSKMSRoleARN, true})
		}
	}
	return list
}

// Credentials implements platform.Platform: a file for each role, which programs take on with a token of the hosted cluster. There is no secret in
// it.
func (Platform) Credentials(ctx context.Context, reader client.Reader, hc *hyperv1.HostedCluster, hcpNamespace string) ([]client.Object, error) {
	region := specOf(hc).Region
	if region == "" {
		return nil, errors.New("no Secret with credentials can be made: spec.platform.aws.region is empty")
	}
	var list []client.Object
	var errs []error
	for _, r := range roles(hc) {
		arn, err := r.resolve(ctx, reader, hc.Namespace)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: hcpNamespace, Name: r.secret},
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{credentialsKey: []byte(payload.AWSCredentials(arn) + "region = " + region + "\n")},
		})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return list, nil
}

// resolve finds the role's ARN.
func (r role) resolve(ctx context.Context, reader client.Reader, namespace string) (string, error) {
	name, moved := strings.CutPrefix(r.arn, fromSecretPrefix)
	switch {
	case r.arn == "":
		return "", fmt.Errorf("%s is empty, so there is no role for Secret %s: name it", r.field, r.secret)
	case !moved || !r.moved:
		return r.arn, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if err := reader.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%s: Secret %s does not exist", r.field, key)
	} else if err != nil {
		return "", fmt.Errorf("%s: reading Secret %s: %w", r.field, key, err)
	}
	if arn := roleIn(secret.Data[credentialsKey]); arn != "" {
		return arn, nil
	}
	return "", fmt.Errorf("%s: Secret %s has no role_arn in section default of key %s", r.field, key, credentialsKey)
}

// roleIn is role_arn of section default in a file of credentials.
func roleIn(file []byte) string {
	if len(file) > maxCredentials {
		return ""
	}
	section := ""
	for lines := bufio.NewScanner(strings.NewReader(string(file))); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			section = strings.TrimSpace(line[1 : len(line)-1])
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok && section == "default" && strings.TrimSpace(key) == "role_arn" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// DeleteCredentials implements platform.Platform: they go with the namespace.
func (Platform) DeleteCredentials(context.Context, client.Client, *hyperv1.HostedCluster, string) error {
	return nil
}
