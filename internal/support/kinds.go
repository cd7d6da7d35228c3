package support

import "slices"

// Kind is what is known about a kind as a whole. Those with a table of their own have no text.
type Kind struct {
	Group, Kind string
	Verdict     Verdict
	Text        string
	// Needs is the switch of an installation without which nobody acts on it; empty: none.
	Needs Switch
}

// Warning says why nobody acts on objects of the kind, in an installation that lacks what is off; empty: somebody does.
func (k Kind) Warning(off ...Switch) string {
	switch {
	case k.Verdict == NotHeeded:
		return k.Text
	case k.Needs != "" && slices.Contains(off, k.Needs):
		return "this installation lacks what it needs: hypershift install " + string(k.Needs)
	default:
		return ""
	}
}

const (
	hypershift   = "hypershift.openshift.io"
	certificates = "certificates.hypershift.openshift.io"
	local        = "infrastructure.cluster.x-k8s.io"
	packages     = "package-operator.run"
)

// Kinds are all that an installation serves, besides those of Cluster API.
var Kinds = []Kind{
	{hypershift, "HostedCluster", Heeded, "", ""},
	{hypershift, "NodePool", Heeded, "", ""},
	{hypershift, "HostedControlPlane", Written, "the hypershift-operator copies it from the HostedCluster; a field does there what it does in a HostedCluster", ""},
	{hypershift, "ControlPlaneComponent", Written, "it tells how far a part of a control plane is", ""},
	{hypershift, "AWSEndpointService", Written, "the operators make one for each private load balancer of a hosted cluster on AWS, see docs/aws.md", ""},
	{hypershift, "AzurePrivateLinkService", Written, "the operators make one for each internal load balancer of a private hosted cluster on Azure, see docs/platforms.md", ""},
	{hypershift, "GCPPrivateServiceConnect", Written, "the control-plane-operator makes one for the internal load balancer of a hosted cluster on GCP, and nobody here what it asks for", ""},
	{hypershift, "HCPEtcdBackup", Heeded, "with an installation of --tech-preview-no-upgrade and storage of type S3, see docs/etcd.md", ""},
	{hypershift, "CertificateSigningRequestApproval", NotHeeded, "only that of group " + certificates + " approves a request: use that", ""},
	{certificates, "CertificateSigningRequestApproval", Heeded, "see docs/decisions/0010-break-glass-on-demand.md", ""},
	{certificates, "CertificateRevocationRequest", Heeded, "see docs/decisions/0010-break-glass-on-demand.md", ""},
	{"scheduling.hypershift.openshift.io", "ClusterSizingConfiguration", Heeded, "with an installation of --enable-size-tagging, see docs/sizes.md", SizeTagging},
	{"auditlogpersistence.hypershift.openshift.io", "AuditLogPersistenceConfig", Heeded, "with an installation of --enable-audit-log-persistence, see docs/audit-logs.md", AuditLogPersistence},
	{local, "LocalCluster", Written, "platform Local makes it", ""},
	{local, "LocalMachine", Written, "platform Local makes it", ""},
	{local, "LocalMachineTemplate", Written, "platform Local makes it", ""},
	{packages, "Package", Heeded, "see docs/packages.md", ""},
	{packages, "ClusterPackage", Heeded, "see docs/packages.md", ""},
	{packages, "HostedClusterPackage", Heeded, "see docs/fleet.md", ""},
	{packages, "ObjectDeployment", Heeded, "see docs/packages.md", ""},
	{packages, "ClusterObjectDeployment", Heeded, "see docs/packages.md", ""},
	{packages, "ObjectSet", Heeded, "see docs/packages.md", ""},
	{packages, "ClusterObjectSet", Heeded, "see docs/packages.md", ""},
	{packages, "ObjectSetPhase", Heeded, "see docs/packages.md", ""},
	{packages, "ClusterObjectSetPhase", Heeded, "see docs/packages.md", ""},
	{packages, "ObjectSlice", Heeded, "see docs/packages.md", ""},
	{packages, "ClusterObjectSlice", Heeded, "see docs/packages.md", ""},
	{packages, "ObjectTemplate", Heeded, "see docs/packages.md", ""},
	{packages, "ClusterObjectTemplate", Heeded, "see docs/packages.md", ""},
}
