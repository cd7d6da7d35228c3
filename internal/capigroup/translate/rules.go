package translate

// The rules of bodies: which positions hold groups. Names are those of the client's view; as σ is its own inverse, and as nothing
// else is in a group's place, the same rules serve the storage's.

var (
	gv       = leaf(formGV)
	group    = leaf(formGroup)
	groups   = array(group)
	sentence = leaf(formText)
)

// Metadata and what stands in place of any object: rules of everything.
var (
	ownerReferences = array(object(at("apiVersion", 5, gv)))
	managedFields   = array(object(at("apiVersion", 3, gv)))
)

func metadata(more ...field) *node {
	return object(at("ownerReferences", 13, ownerReferences), at("managedFields", 17, managedFields)).with(more...)
}

// typed is one object of a type: what is true of every object, and the type's own rules. named is the form of its name, if that holds a group.
func typed(named form, rules ...field) *node {
	sentence := sentence
	if named != formNone {
		sentence = leaf(formNamedText)
	}
	meta, details := metadata(), object(at("group", 2, group), at("causes", 4, array(object(at("message", 2, sentence)))))
	if named != formNone {
		meta.with(at("name", 1, leaf(named)))
		details.with(at("name", 1, leaf(named)))
	}
	root := object(at("apiVersion", 0, gv), at("kind", 0, leaf(formKind)), at("metadata", 1, meta)).with(rules...)
	row := object(at("object", 0, root))
	if named != formNone {
		row.with(at("cells", 0, &node{first: leaf(named)}))
	}
	return root.with(
		field{name: "message", node: sentence, kinds: kindStatus},
		field{name: "details", node: details, kinds: kindStatus},
		field{name: "rows", node: array(row), kinds: kindTable},
	)
}

// anywhere is spec and status of Cluster API's objects: references are at many depths, and a new kind may have them anywhere.
// What users put there freely is left alone.
var anywhere = func() *node {
	deep, variable, patch := &node{spelt: true}, &node{}, &node{}
	deep.other, deep.elem = deep, deep
	deep.with(at("apiVersion", 0, gv), at("apiGroup", 0, group))
	for _, opaque := range []string{
		"metadata", "labels", "annotations", "matchLabels", "additionalTags", // maps of the user's
		"requestHook", // names a protocol, not a group of objects
		"schema", "default", "example", "openAPIV3Schema", "userData", "files",
	} {
		deep.with(at(opaque, 0, nil))
	}
	// Variables and patches of topologies hold fragments of any object, of any cluster.
	*variable = *deep.copy()
	variable.other, variable.elem = deep, variable
	variable.with(at("value", 0, nil), at("overrides", 0, variable), at("definitions", 0, variable))
	*patch = *deep.copy()
	patch.other, patch.elem = deep, patch
	patch.with(at("value", 0, nil), at("valueFrom", 0, nil))
	return deep.with(at("variables", 0, variable), at("jsonPatches", 0, patch))
}()

var (
	plainObject = typed(formNone)
	capiObject  = typed(formNone, at("spec", 0, anywhere), at("status", 0, anywhere))
)

// agentGroup is the one provider's group outside the suffix; it keeps its name, and its references are renamed.
const agentGroup = "capi-provider.agent-install.openshift.io"

var (
	reference   = object(at("apiVersion", 5, gv))
	scaleTarget = object(at("apiVersion", 3, gv))
	matchRules  = array(object(at("apiGroups", 0, groups), at(protobufOnly, 2, object(at(protobufOnly, 2, object(at(protobufOnly, 1, groups)))))))
	matchObject = object(at("resourceRules", 3, matchRules), at("excludeResourceRules", 4, matchRules))
	webhooks    = array(object(at("rules", 3, array(object(at("apiGroups", 0, groups), at(protobufOnly, 2, object(at(protobufOnly, 1, groups))))))))
	review      = typed(formNone, at("spec", 2, object(at("resourceAttributes", 1, object(at("group", 3, group))),
		at("nonResourceAttributes", 2, object(at("path", 1, leaf(formURL)))))))
	quota   = &node{keys: formCount}
	policy  = typed(formNone, at("spec", 2, object(at("paramKind", 1, object(at("apiVersion", 1, gv))), at("matchConstraints", 2, matchObject))))
	binding = typed(formNone, at("spec", 2, object(at("matchResources", 3, matchObject))))
	role    = typed(formNone, at("rules", 2, array(anyPolicyRule)))
	// What one may do, and what flows are about: rules like a role's, with the paths in a list of their own.
	allowed = typed(formNone, at("status", 3, object(at("resourceRules", 1, array(anyPolicyRule)), at("nonResourceRules", 2, array(object(at("nonResourceURLs", 2, array(leaf(formURL)))))))))
	flow    = typed(formNone, at("spec", 2, object(at("rules", 4, array(object(
		at("resourceRules", 2, array(object(at("apiGroups", 2, groups)))), at("nonResourceRules", 3, array(object(at("nonResourceURLs", 6, array(leaf(formURL))))))))))))
)

// protobufOnly is the name of a field that JSON doesn't have: no key has a NUL that isn't escaped, and none decodes to this.
const protobufOnly = "\x00protobuf\x00"

// policyRule is an RBAC rule. Names of resources are those of CustomResourceDefinitions only if the rule is about these.
var (
	policyRule    = object(at("apiGroups", 2, groups), at("nonResourceURLs", 5, array(leaf(formURL))))
	policyRuleCRD = policyRule.copy().with(at("resourceNames", 4, array(leaf(formCRD))))
	anyPolicyRule = picking(policyRule, pickPolicyRule)
)

func pickPolicyRule(raw []byte, _ bool) (*node, bool) {
	for _, resource := range elements(find(raw, "resources")) {
		if r := string(unquote(resource)); r == crds || len(r) > len(crds) && r[:len(crds)+1] == crds+"/" {
			return policyRuleCRD, true
		}
	}
	return policyRule, true
}

const crds = "customresourcedefinitions"

// CustomResourceDefinitions. The mirrored ones have short names and a category of their own.
var (
	crdNames    = object(at("shortNames", 3, array(leaf(formShort))), at("categories", 6, array(leaf(formShort))))
	crdSpec     = object(at("group", 1, group))
	crdStatus   = object(at("conditions", 1, array(object(at("message", 5, sentence)))))
	foreignCRD  = typed(formCRD, at("spec", 2, crdSpec), at("status", 3, crdStatus))
	mirroredCRD = typed(formCRD, at("spec", 2, crdSpec.copy().with(at("names", 3, crdNames))), at("status", 3, crdStatus.copy().with(at("acceptedNames", 2, crdNames))))
	anyCRD      = picking(foreignCRD, pickByName(formCRD, foreignCRD, mirroredCRD))
	apiService  = typed(formAPIService, at("spec", 2, object(at("group", 2, group))))
	anyService  = picking(apiService, pickByName(formAPIService, apiService, apiService))
)

// picking is n, for walking without contents, with a pick for what has contents.
func picking(n *node, p pick) *node {
	n = n.copy()
	n.pick = p
	return n
}

// pickByName chooses by the group in metadata.name, and hides what belongs to another owner.
func pickByName(f form, foreign, mirrored *node) pick {
	return func(raw []byte, hide bool) (*node, bool) {
		name := unquote(find(raw, "metadata", "name"))
		if name == nil { // a row of a table
			name = unquote(find(raw, "object", "metadata", "name"))
		}
		_, changed, theirs := f.apply(nil, name)
		if !changed {
			return foreign, true
		}
		return mirrored, !theirs || !hide
	}
}

// types are the rules by group and resource. Groups in σ's domain and agentGroup have capiObject, all others plainObject.
var types = map[string]*node{
	"/events":                                                        typed(formNone, at("involvedObject", 2, reference), at("related", 13, reference)),
	"events.k8s.io/events":                                           typed(formNone, at("regarding", 8, reference), at("related", 9, reference)),
	"/resourcequotas":                                                quotaObject,
	"apiextensions.k8s.io/" + crds:                                   foreignCRD,
	"apiregistration.k8s.io/apiservices":                             apiService,
	"authorization.k8s.io/subjectaccessreviews":                      review,
	"authorization.k8s.io/selfsubjectaccessreviews":                  review,
	"authorization.k8s.io/localsubjectaccessreviews":                 review,
	"authorization.k8s.io/selfsubjectrulesreviews":                   allowed,
	"flowcontrol.apiserver.k8s.io/flowschemas":                       flow,
	"rbac.authorization.k8s.io/roles":                                role,
	"rbac.authorization.k8s.io/clusterroles":                         role,
	"admissionregistration.k8s.io/mutatingwebhookconfigurations":     typed(formNone, at("webhooks", 2, webhooks)),
	"admissionregistration.k8s.io/validatingwebhookconfigurations":   typed(formNone, at("webhooks", 2, webhooks)),
	"admissionregistration.k8s.io/validatingadmissionpolicies":       policy,
	"admissionregistration.k8s.io/mutatingadmissionpolicies":         policy,
	"admissionregistration.k8s.io/validatingadmissionpolicybindings": binding,
	"admissionregistration.k8s.io/mutatingadmissionpolicybindings":   binding,
	"autoscaling/horizontalpodautoscalers":                           autoscaler,
	"autoscaling.k8s.io/verticalpodautoscalers":                      typed(formNone, at("spec", 0, path(gv, "targetRef", "apiVersion"))),
	"keda.sh/scaledobjects":                                          typed(formNone, at("spec", 0, path(gv, "scaleTargetRef", "apiVersion"))),
	"storagemigration.k8s.io/storageversionmigrations":               typed(formNone, at("spec", 2, object(at("resource", 1, object(at("group", 1, group)))))),
}

// quotaObject has groups in keys, and so in what its managed fields call these.
var quotaObject = func() *node {
	counts := object(at("f:hard", 0, quota), at("f:used", 0, quota))
	managed := array(object(at("apiVersion", 3, gv), at("fieldsV1", 0, object(at("f:spec", 0, counts), at("f:status", 0, counts)))))
	return typed(formNone, at("spec", 2, object(at("hard", 1, quota))), at("status", 3, object(at("hard", 1, quota), at("used", 2, quota))),
		at("metadata", 1, metadata(at("managedFields", 17, managed))))
}()

var autoscaler = func() *node {
	// The same field has another number in what is wanted than in what is.
	metrics := func(number int) *node {
		return array(object(at("object", 2, object(at("describedObject", number, scaleTarget)))))
	}
	return typed(formNone,
		at("spec", 2, object(at("scaleTargetRef", 1, scaleTarget), at("metrics", 4, metrics(1)))),
		at("status", 3, object(at("currentMetrics", 5, metrics(3)))))
}()
