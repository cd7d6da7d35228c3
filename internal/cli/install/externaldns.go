package install

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hcp.internal/platform/internal/kube/memorylimit"
)

const (
	externalDNSName              = "external-dns"
	externalDNSCredentials       = "external-dns-credentials"
	externalDNSCredentialsFolder = "/etc/provider"
	externalDNSMetricsPort       = 7979
)

// Providers of external-dns whose flags this package knows.
const (
	dnsAWS    = "aws"
	dnsAzure  = "azure"
	dnsGoogle = "google"
)

// ExternalDNS says how external-dns makes records for published services. The zero Provider: it isn't installed.
type ExternalDNS struct {
	Provider string // aws, azure or google
	// Credentials is the content of a credentials file for a Secret that the installation makes. Exclusive with Secret and RoleARN.
	Credentials   []byte
	Secret        string // an existing Secret with the key credentials
	RoleARN       string // AWS: a role to take on by the service account's token
	DomainFilter  string // DNS suffix of the records that it may touch
	TXTOwnerID    string // marks its records in the zone; empty: the domain
	Image         string
	GoogleProject string
	Interval      time.Duration // between two looks at the services
	ZonesCache    time.Duration // AWS: how long the list of zones is kept
}

func (d ExternalDNS) validate() []error {
	if d.Provider == "" {
		if d.DomainFilter != "" || len(d.Credentials) > 0 || d.Secret != "" || d.RoleARN != "" {
			return []error{errors.New("--external-dns-… flags need --external-dns-provider")}
		}
		return nil
	}
	errs := []error{oneOf("--external-dns-provider", d.Provider, dnsAWS, dnsAzure, dnsGoogle)}
	if d.DomainFilter == "" {
		errs = append(errs, errors.New("--external-dns-domain-filter is required with --external-dns-provider: the DNS suffix of the records that it may touch"))
	}
	given := 0
	for _, is := range []bool{len(d.Credentials) > 0, d.Secret != "", d.RoleARN != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		errs = append(errs, errors.New("--external-dns-credentials, --external-dns-secret and --external-dns-role-arn exclude each other: give one"))
	case given == 0 && d.Provider != dnsGoogle:
		errs = append(errs, fmt.Errorf("--external-dns-provider %s needs --external-dns-credentials or --external-dns-secret", d.Provider))
	}
	if d.RoleARN != "" && d.Provider != dnsAWS {
		errs = append(errs, errors.New("--external-dns-role-arn needs --external-dns-provider aws"))
	}
	if d.GoogleProject != "" && d.Provider != dnsGoogle {
		errs = append(errs, errors.New("--external-dns-google-project needs --external-dns-provider google"))
	}
	if d.Interval <= 0 || d.ZonesCache < 0 {
		errs = append(errs, errors.New("--external-dns-interval must be more than 0, --external-dns-aws-zones-cache-duration not negative"))
	}
	return errs
}

// secret is the name of the Secret with credentials, empty when there is none.
func (d ExternalDNS) secret() string {
	if len(d.Credentials) > 0 {
		return externalDNSCredentials
	}
	return d.Secret
}

// externalDNS is everything that external-dns needs.
func externalDNS(o Options) []client.Object {
	d := o.ExternalDNS
	if d.Provider == "" {
		return nil
	}
	var objs []client.Object
	if len(d.Credentials) > 0 {
		objs = append(objs, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: externalDNSCredentials, Namespace: o.Namespace},
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{"credentials": d.Credentials},
		})
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: externalDNSName, Namespace: o.Namespace}}
	if d.RoleARN != "" {
		sa.Annotations = map[string]string{"eks.amazonaws.com/role-arn": d.RoleARN}
	}
	if len(o.PullSecret) > 0 {
		sa.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullSecretName}}
	}
	objs = append(objs, sa,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: externalDNSName}, Rules: []rbacv1.PolicyRule{
			rule(group(""), "endpoints,nodes,pods,services", read),
			rule(group("discovery.k8s.io"), "endpointslices", read),
			rule(group("route.openshift.io"), "routes", read),
			rule(group("externaldns.k8s.io"), "dnsendpoints", read),
			rule(group("externaldns.k8s.io"), "dnsendpoints/status", "update,patch"),
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: externalDNSName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: externalDNSName},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: externalDNSName, Namespace: o.Namespace}},
		},
		externalDNSDeployment(o))
	if o.Monitoring.Objects {
		objs = append(objs, podMonitor(o))
	}
	return objs
}

func externalDNSLabels() map[string]string { return map[string]string{"name": externalDNSName} }

func externalDNSDeployment(o Options) *appsv1.Deployment {
	d := o.ExternalDNS
	container := corev1.Container{
		Name:            externalDNSName,
		Image:           d.Image,
		ImagePullPolicy: o.ImagePullPolicy,
		Args:            externalDNSArgs(o),
		Ports:           []corev1.ContainerPort{{Name: "metrics", ContainerPort: externalDNSMetricsPort, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("20Mi"),
		}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          containerSecurity(),
	}
	var volumes []corev1.Volume
	if secret := d.secret(); secret != "" {
		volumes = []corev1.Volume{{Name: "credentials", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To[int32](0o640)},
		}}}
		container.VolumeMounts = []corev1.VolumeMount{{Name: "credentials", MountPath: externalDNSCredentialsFolder, ReadOnly: true}}
		switch d.Provider {
		case dnsAWS:
			container.Env = []corev1.EnvVar{{Name: "AWS_SHARED_CREDENTIALS_FILE", Value: externalDNSCredentialsFolder + "/credentials"}}
		case dnsGoogle:
			container.Env = []corev1.EnvVar{{Name: "GOOGLE_APPLICATION_CREDENTIALS", Value: externalDNSCredentialsFolder + "/credentials"}}
		}
	}
	memorylimit.Set(&container, externalDNSMemory)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: externalDNSName, Namespace: o.Namespace, Labels: externalDNSLabels()},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: externalDNSLabels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: externalDNSLabels()},
				Spec: corev1.PodSpec{
					ServiceAccountName: externalDNSName,
					PriorityClassName:  operatorPriorityClass,
					SecurityContext:    podSecurity(o),
					Containers:         []corev1.Container{container},
					Volumes:            volumes,
				},
			},
		},
	}
}

func externalDNSArgs(o Options) []string {
	d := o.ExternalDNS
	owner := d.TXTOwnerID
	if owner == "" {
		owner = d.DomainFilter
	}
	args := []string{"--source=service"}
	if o.OpenShift {
		args = append(args, "--source=openshift-route")
	}
	args = append(args,
		"--domain-filter="+d.DomainFilter,
		"--provider="+d.Provider,
		"--registry=txt",
		"--txt-suffix=-external-dns",
		"--txt-owner-id="+owner,
		// Names of private services mean nothing outside.
		"--label-filter=hypershift.openshift.io/route-visibility!=private",
		"--interval="+d.Interval.String(),
		"--txt-cache-interval=1h",
	)
	switch d.Provider {
	case dnsAWS:
		args = append(args, "--aws-zone-type=public", "--aws-batch-change-interval=10s", "--aws-zones-cache-duration="+d.ZonesCache.String())
	case dnsAzure:
		args = append(args, "--azure-config-file="+externalDNSCredentialsFolder+"/credentials")
	case dnsGoogle:
		args = append(args, "--google-zone-visibility=public")
		if d.GoogleProject != "" {
			args = append(args, "--google-project="+d.GoogleProject)
		}
	}
	return args
}

// splitList splits a list that is separated by commas; no blanks, no empty parts.
func splitList(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return strings.TrimSpace(s) == "" })
}
