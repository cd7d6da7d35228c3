package kubeapiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/controlplane/component"
	kubernetes "hcp.internal/platform/internal/controlplane/kubeapiserver"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/encryption"
)

// Sockets of the plugins: their folder is a volume that the server has, too.
const (
	kmsSocket = "kms-socket"

	awsSocketDir, awsActiveSocket, awsBackupSocket       = "/var/run", "/awskmsactive.sock", "/awskmsbackup.sock"
	azureSocketDir, azureActiveSocket, azureBackupSocket = "/opt", "/azurekmsactive.socket", "/azurekmsbackup.socket"

	tokenDir = "/var/run/secrets/openshift/serviceaccount"
)

// addKMS adds the plugins by which the server has its keys encrypted. While one does not answer, what the server has read before goes on being readable; so it is
// neither started anew for it nor taken out of its Service, unless the plugin's process is down. One that starts needs them.
func addKMS(ctx component.WorkloadContext, pod *corev1.PodSpec, kms *hyperv1.KMSSpec, keys []encryption.Key) error {
	main := component.Container(pod, Name)
	main.StartupProbe = startsWithPlugins(main.ReadinessProbe)
	kubernetes.WithoutPlugins(main, max(len(keys), 1)) // IBM's has all keys
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: kmsSocket, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	switch {
	case kms.Provider == hyperv1.AWS && kms.AWS != nil:
		addAWSKMS(ctx, pod, kms.AWS, keys)
	case kms.Provider == hyperv1.Azure && kms.Azure != nil:
		addAzureKMS(ctx, pod, kms.Azure, keys)
		return aliasVault(ctx, pod)
	case kms.Provider == hyperv1.IBMCloud && kms.IBMCloud != nil:
		return addIBMKMS(ctx, pod, kms.IBMCloud)
	}
	return nil
}

// startsWithPlugins is the readiness probe as it is asked at the start of a server, with the health checks of its plugins, each of which encrypts something: a
// server with a key that can't be used, or cannot be at present, does not replace one that works, and such a key never comes to write. What a plugin needs of
// the hosted cluster, a token, it gets on the pod's own address from a server that is not ready. It succeeds once, so that nothing happens to a server that runs.
func startsWithPlugins(ready *corev1.Probe) *corev1.Probe {
	if ready == nil || ready.HTTPGet == nil {
		return nil
	}
	return &corev1.Probe{
		ProbeHandler: *ready.ProbeHandler.DeepCopy(), PeriodSeconds: 5,
		TimeoutSeconds:   int32((kmsTimeout + 5*time.Second).Seconds()), // as long as a plugin may take
		FailureThreshold: 360,                                           // half an hour: to be started anew helps a server that waits for a cloud in nothing
	}
}

func plugin(name, image, path string, port int32) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, Resources: requests("10m", "10Mi"),
		LivenessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: httpGet(path, port, corev1.URISchemeHTTP)},
			InitialDelaySeconds: 120, PeriodSeconds: 300, TimeoutSeconds: 160, FailureThreshold: 3,
		},
	}
}

// kmsTokenMinter keeps a token for the cloud in a file.
func kmsTokenMinter(name, volume string) corev1.Container {
	return corev1.Container{
		Name: name, Image: "token-minter", Resources: requests("10m", "30Mi"),
		Command: []string{"/usr/bin/control-plane-operator", "token-minter"},
		Args: []string{
			"--token-audience=openshift", "--service-account-namespace=kube-system", "--service-account-name=kms-provider",
			"--token-file=" + tokenDir + "/token", "--kubeconfig=/var/secrets/localhost-kubeconfig/kubeconfig",
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "localhost-kubeconfig", MountPath: "/var/secrets/localhost-kubeconfig"}, {Name: volume, MountPath: tokenDir}},
	}
}

func mountSocket(pod *corev1.PodSpec, dir string) {
	main := component.Container(pod, Name)
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: kmsSocket, MountPath: dir})
}

func addAWSKMS(ctx component.WorkloadContext, pod *corev1.PodSpec, kms *hyperv1.AWSKMSSpec, keys []encryption.Key) {
	const credentials, token = "aws-kms-credentials", "aws-kms-token"
	image := cmp.Or(ctx.HCP.Annotations[hyperv1.AWSKMSProviderImage], "aws-kms-encryption-provider")
	add := func(name, arn, socket string, port int32) {
		c := plugin(name, image, "/healthz", port)
		c.Args = []string{"--key=" + arn, "--region=" + kms.Region, "--listen=" + awsSocketDir + socket, fmt.Sprintf("--health-port=:%d", port)}
		c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}}
		c.Env = []corev1.EnvVar{{Name: "AWS_SHARED_CREDENTIALS_FILE", Value: "/aws/credentials"}, {Name: "AWS_SDK_LOAD_CONFIG", Value: "true"}, {Name: "AWS_EC2_METADATA_DISABLED", Value: "true"}}
		c.Env = append(c.Env, component.AWSEndpoints(ctx)...)
		c.VolumeMounts = []corev1.VolumeMount{{Name: credentials, MountPath: "/aws"}, {Name: kmsSocket, MountPath: awsSocketDir}, {Name: token, MountPath: tokenDir}}
		pod.Containers = append(pod.Containers, c)
	}
	pod.Containers = append(pod.Containers, kmsTokenMinter("aws-kms-token-minter", token))
	for place, key := range keys {
		if key.Ref.AWS != nil {
			add(placed("aws-kms-active", "aws-kms-backup", place), key.Ref.AWS.ARN, placed(awsActiveSocket, awsBackupSocket, place), 8080+int32(place))
		}
	}
	pod.Volumes = append(pod.Volumes, component.SecretVolume(credentials, "kms-creds"), memoryVolume(token))
	mountSocket(pod, awsSocketDir)
}

func addAzureKMS(ctx component.WorkloadContext, pod *corev1.PodSpec, kms *hyperv1.AzureKMSSpec, keys []encryption.Key) {
	const credentials, certs, token = "azure-kms-credentials", "kms-cert", "azure-kms-cloud-token"
	aro := kit.ARO(ctx)
	add := func(name string, key hyperv1.AzureKMSKey, socket string, health, metrics int32) {
		c := plugin(name, "azure-kms-encryption-provider", "/healthz", health)
		c.Args = []string{
			"--keyvault-name=" + key.KeyVaultName, "--key-name=" + key.KeyName, "--key-version=" + key.KeyVersion,
			"--listen-addr=unix://" + azureSocketDir + socket, "--healthz-port=" + strconv.Itoa(int(health)), "--metrics-addr=" + strconv.Itoa(int(metrics)),
			"--healthz-path=/healthz", "--config-file-path=/etc/kubernetes/azure.json", "-v=1",
		}
		if kms.KeyVaultType == hyperv1.AzureManagedHSM {
			c.Args = append(c.Args, "--managed-hsm")
		}
		c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: health, Protocol: corev1.ProtocolTCP}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: credentials, MountPath: "/etc/kubernetes"}, {Name: kmsSocket, MountPath: azureSocketDir}}
		switch {
		case aro:
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: certs, MountPath: kit.CertsDir, ReadOnly: true})
		case kms.WorkloadIdentity != nil:
			c.Env = []corev1.EnvVar{
				{Name: "AZURE_CLIENT_ID", Value: string(kms.WorkloadIdentity.ClientID)}, {Name: "AZURE_TENANT_ID", Value: ctx.HCP.Spec.Platform.Azure.TenantID},
				{Name: "AZURE_FEDERATED_TOKEN_FILE", Value: tokenDir + "/token"},
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: token, MountPath: tokenDir})
		}
		pod.Containers = append(pod.Containers, c)
	}
	for place, key := range keys {
		if key.Ref.Azure != nil {
			add(placed("azure-kms-provider-active", "azure-kms-provider-backup", place), *key.Ref.Azure, placed(azureActiveSocket, azureBackupSocket, place), 8787+int32(place), 8095+int32(place))
		}
	}
	file := component.SecretVolume(credentials, "azure-kms-config")
	file.Secret.Items = []corev1.KeyToPath{{Key: "cloud.conf", Path: "azure.json"}}
	pod.Volumes = append(pod.Volumes, file)
	if aro {
		kit.MountIdentity(pod, "", certs, "managed-azure-kms")
	} else {
		pod.Volumes = append(pod.Volumes, memoryVolume(token))
		pod.Containers = append(pod.Containers, kmsTokenMinter("azure-kms-token-minter", token))
	}
	mountSocket(pod, azureSocketDir)
}

// aliasVault has a vault without a public address be reached by the router, which has an interface in the virtual network of the hosted cluster.
func aliasVault(ctx component.WorkloadContext, pod *corev1.PodSpec) error {
	const router = "private-router"
	vault := kit.PrivateKeyVault(ctx)
	if vault == "" {
		return nil
	}
	service := &corev1.Service{}
	err := ctx.Reader.Get(ctx.Context, client.ObjectKey{Namespace: ctx.HCP.Namespace, Name: router}, service)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Service %s: %w", router, err)
	}
	if service.Spec.ClusterIP == "" {
		if ctx.Preview() {
			return nil
		}
		return fmt.Errorf("waiting for the ClusterIP of Service %s, by which the key vault is reached", router)
	}
	pod.HostAliases = append(pod.HostAliases, corev1.HostAlias{IP: service.Spec.ClusterIP, Hostnames: []string{vault}})
	return nil
}

func addIBMKMS(ctx component.WorkloadContext, pod *corev1.PodSpec, kms *hyperv1.IBMCloudKMSSpec) error {
	image := ctx.HCP.Annotations[hyperv1.IBMCloudKMSProviderImage]
	if image == "" {
		return fmt.Errorf("annotation %s is missing: it names the image of the plugin for spec.secretEncryption.kms.ibmcloud", hyperv1.IBMCloudKMSProviderImage)
	}
	const wdek, podToken = "ibmcloud-kms-kp", "pod-identity-token"
	keys := map[string]any{}
	for _, k := range kms.KeyList {
		keys[strconv.Itoa(k.KeyVersion)] = map[string]any{
			"crkID": k.CRKID, "instanceID": k.InstanceID, "correlationID": k.CorrelationID, "url": k.URL, "serviceToService": kms.Auth.Type == hyperv1.IBMCloudKMSManagedAuth,
		}
	}
	data, err := json.Marshal(keys)
	if err != nil {
		return fmt.Errorf("writing the keys of the KMS: %w", err)
	}
	c := plugin("ibmcloud-kms", image, "healthz/liveness", 8081)
	c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8001, Protocol: corev1.ProtocolTCP}}
	for _, e := range [][2]string{
		{"LOG_LEVEL", "info"}, {"NUM_LEN_BYTES", "4"}, {"CACHE_TIMEOUT_IN_HOURS", "1"}, {"RESTART_DELAY_IN_SECONDS", "0"}, {"UNIX_SOCKET_PATH", "/tmp/keyprotectprovider.sock"},
		{"KP_TIMEOUT", "10"}, {"KP_WDEK_PATH", "/tmp/kp/wdek"}, {"KP_STATE_PATH", "/tmp/kp/state"}, {"HEALTHZ_PATH", "/healthz"}, {"HEALTHZ_PORT", ":8081"},
		{"KP_DATA_JSON", string(data)}, {"REGION", kms.Region},
	} {
		c.Env = append(c.Env, corev1.EnvVar{Name: e[0], Value: e[1]})
	}
	if u := kms.Auth.Unmanaged; u != nil {
		c.Env = append(c.Env, corev1.EnvVar{Name: "API_KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: u.Credentials, Key: hyperv1.IBMCloudIAMAPIKeySecretKey,
		}}})
	}
	c.VolumeMounts = []corev1.VolumeMount{{Name: wdek, MountPath: "/tmp/kp"}, {Name: kmsSocket, MountPath: "/tmp"}, {Name: podToken, MountPath: "/etc/pod-identity-token"}}
	pod.Containers = append(pod.Containers, c)
	secret := component.SecretVolume(wdek, "kp-wdek-secret")
	secret.Secret.Optional = ptr.To(true)
	pod.Volumes = append(pod.Volumes, secret, corev1.Volume{Name: podToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: podToken, ExpirationSeconds: ptr.To[int64](900)}}},
	}}})
	mountSocket(pod, "/tmp")
	return nil
}
