package translate

// node says what to do with the value at a position. A nil node is of no interest: nothing below it is renamed. The graph has
// cycles, never changes after it is built, and is shared by everything.
//
// The same graph serves JSON, where fields have names, and protobuf, where they have numbers. Repeated fields and arrays both
// lead to elem.
type node struct {
	leaf form // of a string here

	fields  []field // of an object
	lengths uint64  // bit n: a field's name has n bytes (modulo 64)
	other   *node   // values of fields that are not listed
	keys    form    // of the names of fields that are not listed

	elem  *node // of an array
	first *node // of an array's first element, if it differs

	// spelt: nothing in an object or array here is of interest but groups that are spelt out.
	spelt bool

	// pick chooses the node of an object from its contents; the whole object is held for that. keep is false for what the client
	// must not see.
	pick pick
}

type field struct {
	name  string
	num   int // in protobuf; 0: only in JSON
	node  *node
	kinds kinds // if set, only in objects of these kinds
}

// pick is called with an object's JSON. It returns the node to rename it by, which has no pick of its own.
type pick func(raw []byte, hide bool) (n *node, keep bool)

// kinds are the kinds of objects that an API server answers with in place of what was asked for. They put kind first.
type kinds uint8

const (
	kindStatus kinds = 1 << iota
	kindTable
)

func kindOf(kind []byte) kinds {
	switch string(kind) {
	case "Status":
		return kindStatus
	case "Table":
		return kindTable
	}
	return 0
}

func leaf(f form) *node { return &node{leaf: f} }

func array(elem *node) *node { return &node{elem: elem} }

func object(fields ...field) *node { return new(node).with(fields...) }

// with adds fields in place; later ones of the same name and kind win.
func (n *node) with(fields ...field) *node {
next:
	for _, f := range fields {
		n.lengths |= 1 << (len(f.name) & 63)
		for i, old := range n.fields {
			if old.name == f.name && old.kinds == f.kinds {
				n.fields[i] = f
				continue next
			}
		}
		n.fields = append(n.fields, f)
	}
	return n
}

// copy has the fields of n and none of its later changes.
func (n *node) copy() *node {
	c := *n
	c.fields = append([]field(nil), n.fields...)
	return &c
}

func at(name string, num int, n *node) field { return field{name: name, num: num, node: n} }

// path is an object whose field leads to an object … whose last field is n. It is for positions without a number in protobuf.
func path(n *node, names ...string) *node {
	for i := len(names) - 1; i >= 0; i-- {
		n = object(at(names[i], 0, n))
	}
	return n
}

// child is the node of a field's value.
func (n *node) child(name []byte, k kinds) *node {
	if n.lengths>>(len(name)&63)&1 == 0 {
		return n.other
	}
	for i := range n.fields {
		f := &n.fields[i]
		if f.name == string(name) && (f.kinds == 0 || f.kinds&k != 0) {
			return f.node
		}
	}
	return n.other
}

// number is the node of a protobuf field.
func (n *node) number(num int) *node {
	for i := range n.fields {
		if f := &n.fields[i]; f.num == num && f.kinds == 0 {
			return f.node
		}
	}
	return nil
}

// objects tells whether anything in an object here is of interest.
func (n *node) objects() bool { return len(n.fields) > 0 || n.other != nil || n.keys != formNone }

func (n *node) arrays() bool { return n.elem != nil || n.first != nil }

// droppable tells whether something in an object or array here may be hidden.
func (n *node) droppable(array bool) bool {
	if array {
		return n.elem != nil && n.elem.pick != nil
	}
	return n.keys == formURL || n.keys == formDefinition || n.keys == formOpenAPIPath
}
