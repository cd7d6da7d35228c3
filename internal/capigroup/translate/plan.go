package translate

// Plan says which positions of a body hold groups, and what the client must not see.
type Plan struct {
	root   *node
	hide   bool
	stream bool
	whole  bool
	text   bool
	proto  *node // rules of the object, or of a list's items, for protobuf
	list   bool
}

// Whole tells that the body has to be given to Append in one part: it is a document with names as keys that may be hidden.
func (p Plan) Whole() bool { return p.whole }

// NeedsScan tells that nothing but groups spelt out is ever changed or hidden, so that a body without Needles passes as it is.
func (p Plan) NeedsScan() bool { return !p.text }

// shape is the rules of a type's object, of a list of them, and of an event of a watch.
type shape struct{ object, list, event *node }

func shapeOf(obj, held *node) shape {
	if held == nil {
		held = obj
	}
	list := obj.copy()
	for i, f := range list.fields {
		if f.name == "rows" {
			row := f.node.elem.copy()
			row.pick = held.pick
			if row.pick != nil {
				row.pick = pickRow(held.pick)
			}
			list.fields[i].node = array(row)
		}
	}
	list.with(at("items", 2, array(held)))
	event := object(at("object", 2, obj))
	if held.pick != nil {
		event.pick = pickEvent(held.pick)
	}
	return shape{object: obj, list: list, event: event}
}

// pickRow chooses for a row of a table as for the object in it.
func pickRow(p pick) pick {
	return func(raw []byte, hide bool) (*node, bool) {
		n, keep := p(raw, hide)
		row := object(at("object", 0, n))
		for _, f := range n.fields {
			if f.name == "rows" {
				row = f.node.elem
			}
		}
		return row, keep
	}
}

// pickEvent chooses for an event as for its object. An event may hold a Table of one row.
func pickEvent(p pick) pick {
	return func(raw []byte, hide bool) (*node, bool) {
		obj := find(raw, "object")
		if rows := elements(find(obj, "rows")); len(rows) > 0 {
			n, keep := p(rows[0], hide)
			return object(at("object", 0, n)), keep
		}
		n, keep := p(obj, hide)
		return object(at("object", 0, n)), keep
	}
}

var (
	shapes = func() map[string]shape {
		all := make(map[string]shape, len(types))
		for name, n := range types {
			var held *node
			switch n {
			case foreignCRD:
				held = anyCRD
			case apiService:
				held = anyService
			}
			all[name] = shapeOf(n, held)
		}
		return all
	}()
	plainShape    = shapeOf(plainObject, nil)
	capiShape     = shapeOf(capiObject, nil)
	mirroredShape = shapeOf(mirroredCRD, anyCRD)
)

// Discovery.
var (
	resources = func(names *node) *node {
		sub := array(object(at("responseKind", 0, object(at("group", 0, group)))))
		return array(object(at("group", 0, group), at("shortNames", 0, names), at("categories", 0, names),
			at("responseKind", 0, object(at("group", 0, group))), at("subresources", 0, sub)))
	}
	plainResources = resources(nil)
	capiResources  = resources(array(leaf(formShort)))

	groupVersions  = object(at("groupVersion", 0, gv))
	legacyGroup    = typed(formNone, at("name", 0, group), at("versions", 0, array(groupVersions)), at("preferredVersion", 0, groupVersions))
	aggregated     = aggregatedGroup(plainResources)
	aggregatedCAPI = aggregatedGroup(capiResources)

	// groupList is what /api and /apis answer in either form.
	groupList = typed(formNone,
		at("groups", 0, array(picking(legacyGroup, pickGroup(legacyGroup, legacyGroup, "name")))),
		at("items", 0, array(picking(aggregated, pickGroup(aggregated, aggregatedCAPI, "metadata", "name")))))
	resourceList     = typed(formNone, at("groupVersion", 0, gv), at("resources", 0, plainResources))
	capiResourceList = typed(formNone, at("groupVersion", 0, gv), at("resources", 0, capiResources))
)

func aggregatedGroup(resources *node) *node {
	return object(at("metadata", 0, object(at("name", 0, group))), at("versions", 0, array(object(at("resources", 0, resources)))))
}

func pickGroup(foreign, mirrored *node, name ...string) pick {
	return func(raw []byte, hide bool) (*node, bool) {
		_, changed, theirs := formGroup.apply(nil, unquote(find(raw, name...)))
		if !changed {
			return foreign, true
		}
		return mirrored, !theirs || !hide
	}
}
