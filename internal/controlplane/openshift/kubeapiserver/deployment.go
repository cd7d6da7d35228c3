package kubeapiserver

import (
	"cmp"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	hyperv1 "hcp.internal/api/hypershift/v1beta1"
	"hcp.internal/platform/internal/contract/auditlogs"
	"hcp.internal/platform/internal/controlplane/component"
	"hcp.internal/platform/internal/controlplane/etcd/shards"
	"hcp.internal/platform/internal/controlplane/openshift/kit"
	"hcp.internal/platform/internal/controlplane/settings"
)

// Containers of the asset, beside Name.
const (
	bootstrapRender     = "init-bootstrap-render"
	authBootstrapRender = "init-auth-bootstrap-render"
	waitForEtcd         = "wait-for-etcd"
	konnectivityServer  = "konnectivity-server"
)

func adaptDeployment(ctx component.WorkloadContext, d *appsv1.Deployment) error {
	hcp, pod := ctx.HCP, &d.Spec.Template.Spec
	if err := adaptMain(ctx, pod); err != nil {
		return err
	}
	for _, name := range []string{bootstrapRender, authBootstrapRender} {
		c := component.Container(pod, name)
		kit.SetPayloadVersion(ctx, c)
		if err := kit.SetFeatureGate(ctx, c); err != nil {
			return err
		}
	}
	adaptTunnel(ctx, component.Container(pod, konnectivityServer))
	if !kit.OAuthEnabled(hcp) {
		component.RemoveContainer(pod, authBootstrapRender)
	}
	if kit.ManagedEtcd(hcp) {
		component.Container(pod, waitForEtcd).Args = []string{"-c", waitScript(hcp)}
	} else {
		component.RemoveContainer(pod, waitForEtcd)
	}
	addWebhooks(ctx, pod)
	if image := hcp.Annotations[hyperv1.PortierisImageAnnotation]; image != "" {
		addPortieris(pod, image)
	}
	if err := kit.Audit(ctx, pod, Name, "kas-audit-webhook"); err != nil {
		return err
	}
	logs, err := settings.PersistentAuditLogs(hcp)
	if err != nil {
		return err
	}
	if logs != nil {
		component.Volume(pod, auditlogs.Volume).VolumeSource = logs.Source(Name)
	}
	for i, cert := range settings.APIServer(hcp).ServingCerts.NamedCertificates {
		kit.Mount(pod, Name, component.SecretVolume(fmt.Sprintf("named-cert-%d", i+1), cert.ServingCertificate.Name), namedDir(i))
	}
	if err := addEncryption(ctx, d); err != nil {
		return err
	}
	prePull(pod)
	return nil
}

// namedDir is where a certificate of the user is mounted; they are counted from 1.
func namedDir(i int) string { return fmt.Sprintf("/etc/kubernetes/certs/named-%d", i+1) }

func adaptMain(ctx component.WorkloadContext, pod *corev1.PodSpec) error {
	hcp, main := ctx.HCP, component.Container(pod, Name)
	main.Args = append(main.Args, "--v="+cmp.Or(strings.TrimSpace(hcp.Annotations[hyperv1.KubeAPIServerVerbosityLevelAnnotation]), "2"))
	main.Ports[0].ContainerPort = settings.APIPodPort(hcp)
	for _, e := range [][2]string{{"GOGC", hyperv1.KubeAPIServerGOGCAnnotation}, {"GOMEMLIMIT", hyperv1.KubeAPIServerGOMemoryLimitAnnotation}} {
		if value := hcp.Annotations[e[1]]; value != "" {
			kit.SetEnv(main, e[0], value)
		}
	}
	component.ManagementProxy(ctx, main, append(settings.ClusterCIDRs(hcp), settings.ServiceCIDRs(hcp)...)...)
	return nil
}

// prePull fetches the image of the server before anything else starts, so that the pod isn't half up while it is fetched.
func prePull(pod *corev1.PodSpec) {
	image := component.Container(pod, Name).Image
	pod.InitContainers = append([]corev1.Container{{
		Name: "pre-pull-image-" + Name, Image: image,
		Command: []string{"/bin/sh", "-c", fmt.Sprintf("echo 'Image for %s pre-pulled: %s'; exit 0", Name, image)},
	}}, pod.InitContainers...)
}

// adaptTunnel completes the server of the tunnel: agents connect to each of the replicas.
func adaptTunnel(ctx component.WorkloadContext, c *corev1.Container) {
	tls := kit.TLSOf(ctx.HCP)
	c.Args = append(c.Args, "--server-count", fmt.Sprint(replicas(ctx.HCP)), "--tls-min-version="+tls.MinVersion)
	if len(tls.CipherSuites) > 0 {
		c.Args = append(c.Args, "--cipher-suites="+strings.Join(tls.CipherSuites, ","))
	}
	c.Image = cmp.Or(ctx.HCP.Annotations[hyperv1.KonnectivityServerImageAnnotation], c.Image)
}

// replicas are how many servers there are, unless a person changes it.
func replicas(hcp *hyperv1.HostedControlPlane) int {
	switch {
	case hcp.Spec.ControllerAvailabilityPolicy == hyperv1.SingleReplica:
		return 1
	case hcp.Annotations[hyperv1.TopologyAnnotation] == hyperv1.DedicatedRequestServingComponentsTopology:
		return 2
	}
	return 3
}

// waitScript waits until the names of etcd, and of its shards, are known.
func waitScript(hcp *hyperv1.HostedControlPlane) string {
	services := []string{"etcd-client"}
	for _, s := range shards.Managed(hcp.Spec.Etcd) {
		services = append(services, shards.ClientService(s.Name))
	}
	var script strings.Builder
	for _, service := range services {
		fmt.Fprintf(&script, "while ! nslookup %s.$(POD_NAMESPACE).svc; do sleep 1; done\n", service)
	}
	return script.String()
}

// addPortieris adds the webhook that checks signatures of images, on IBM Cloud.
func addPortieris(pod *corev1.PodSpec, image string) {
	const name, certs, trust = "portieris", "portieris-certs", "portieris-trust-data"
	pod.Containers = append(pod.Containers, corev1.Container{
		Name: name, Image: image, Command: []string{"/portieris"},
		Args:      []string{"--kubeconfig=/etc/openshift/kubeconfig/kubeconfig", "--alsologtostderr", "-v=4"},
		Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8000, Protocol: corev1.ProtocolTCP}},
		Resources: requests("5m", "20Mi"),
		LivenessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: httpGet("/health/liveness", 8000, corev1.URISchemeHTTPS)},
			InitialDelaySeconds: 120, PeriodSeconds: 300, TimeoutSeconds: 160,
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "kubeconfig", MountPath: "/etc/openshift/kubeconfig"}, {Name: certs, MountPath: "/etc/certs"}, {Name: trust, MountPath: "/.trust"},
		},
	})
	secret := component.SecretVolume(certs, certs)
	secret.Secret.DefaultMode = ptr.To[int32](0o640)
	pod.Volumes = append(pod.Volumes, secret, memoryVolume(trust))
}
