package support

// Proof says how it is known that a platform works.
type Proof struct {
	Platform string
	// Ran is what was seen to work, and by which make target or test; Rendered what is compared with golden files and definitions alone; Unproved what
	// nobody has tried. Clauses without a full stop.
	Ran, Rendered, Unproved string
}

// rendered is said of clouds of which nothing can be had to run against.
const rendered = "infrastructure objects, machine templates of each field, credentials, and the cloud's components of OpenShift payloads (test internal/platform.TestGolden, test internal/platform.TestFields)"

// Proofs are of all platforms, by name.
var Proofs = []Proof{
	{
		Platform: "AWS",
		Ran:      "on an emulated AWS: network, zones and roles made, interrupted and destroyed, also in two accounts; instances by the stock provider of Cluster API; private links, the key check, OIDC documents (make e2e-aws); nodes that boot from instances, join, get tags, are replaced, also by the Spot market, and go (make e2e-aws-live)",
		Rendered: "machine templates of each field, and the cloud's components of OpenShift payloads (test internal/platform/aws.TestFields)",
		Unproved: "AWS itself: how it evaluates the policies, its quotas and delays; bytes through a private link; components of real payloads",
	},
	{
		Platform: "Agent",
		Ran:      "with stand-ins of the provider and the installer: hosts by label join, scale, are missed and are free again, by the provider's own rights (make e2e-hosts)",
		Rendered: "infrastructure objects and machine templates of each field (test internal/platform.TestGolden, test internal/platform.TestFields)",
		Unproved: "the assisted installer, and hosts that are not pods",
	},
	{Platform: "Azure", Ran: "private links, against the fake servers of Azure's SDK (test internal/platform/azure/privatelink.TestLife)", Rendered: rendered, Unproved: "the provider and the cloud; bytes through a private link"},
	{
		Platform: "GCP", Ran: "objects are taken by an API server with the stock provider's definitions (test internal/platform/gcp.TestProviderTakesObjects)", Rendered: rendered,
		Unproved: "the provider and the cloud; there is no Private Service Connect",
	},
	{Platform: "IBMCloud", Ran: "nothing", Rendered: rendered, Unproved: "the cloud"},
	{
		Platform: "KubeVirt",
		Ran: "with stand-ins of the provider and of KubeVirt: virtual machines join and are replaced, where a kubeconfig leads to (make e2e-hosts); " +
			"boot images are kept, changed and removed (test test/virtualmachines.TestImagesAreKept)",
		Rendered: rendered,
		Unproved: "KubeVirt itself: disks, networks, moves to another host",
	},
	{Platform: "Local", Ran: "nodes that are pods, in every test on a local cluster (make e2e)", Rendered: "nothing else", Unproved: "machines of more than one host"},
	{Platform: "None", Ran: "hosted clusters whose machines others make (make e2e)", Rendered: "OpenShift payloads (make e2e-openshift runs one of stand-ins)", Unproved: "components of real payloads"},
	{Platform: "OpenStack", Ran: "nothing", Rendered: rendered, Unproved: "the provider and the cloud"},
	{Platform: "PowerVS", Ran: "nothing", Rendered: rendered, Unproved: "the provider and the cloud"},
}
