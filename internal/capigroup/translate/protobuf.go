package translate

import (
	"encoding/binary"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// protobufMagic is before every message of Kubernetes' protobuf encoding.
const protobufMagic = "k8s\x00"

// ErrProtobuf is what the functions on protobuf return for bytes that are none of Kubernetes'.
var ErrProtobuf = errors.New("invalid protobuf of Kubernetes")

// The envelope: runtime.Unknown with the object in its second field. What is in it is chosen by the kind in the first.
var (
	typeMeta    = object(at("apiVersion", 1, gv))
	protoStatus = object(at("message", 3, sentence), at("details", 5, object(at("name", 1, sentence), at("group", 2, group),
		at("causes", 4, array(object(at("message", 2, sentence)))))))
)

// Protobuf translates one object, or a list of them, of Kubernetes' protobuf encoding, and appends it to dst.
func Protobuf(p Plan, dst, src []byte) ([]byte, error) {
	if len(src) < len(protobufMagic) || string(src[:len(protobufMagic)]) != protobufMagic {
		return dst, ErrProtobuf
	}
	inner := p.proto
	if p.list {
		inner = object(at("items", 2, p.proto))
	}
	dst = append(dst, protobufMagic...)
	return unknown(inner, dst, src[len(protobufMagic):])
}

// ProtobufEvent translates one frame of a watch, without its length.
func ProtobufEvent(p Plan, dst, src []byte) ([]byte, error) {
	// WatchEvent{type = 1, object RawExtension = 2{raw = 1}}; raw is an object with its magic.
	return message(dst, src, func(num int, dst, value []byte) ([]byte, bool, error) {
		if num != 2 {
			return dst, false, nil
		}
		out, err := message(dst, value, func(num int, dst, value []byte) ([]byte, bool, error) {
			if num != 1 {
				return dst, false, nil
			}
			out, err := Protobuf(Plan{proto: p.proto}, dst, value)
			return out, true, err
		})
		return out, true, err
	})
}

// unknown translates a runtime.Unknown.
func unknown(inner *node, dst, src []byte) ([]byte, error) {
	return message(dst, src, func(num int, dst, value []byte) ([]byte, bool, error) {
		switch num {
		case 1:
			kind, err := stringField(value, 2)
			if err != nil {
				return dst, false, err
			}
			if kind == "Status" {
				inner = protoStatus
			}
			out, err := messageOf(typeMeta, dst, value, 0)
			return out, true, err
		case 2:
			if inner == anyCRD {
				inner = protoDefinition(value)
			}
			out, err := messageOf(inner, dst, value, 0)
			return out, true, err
		}
		return dst, false, nil
	})
}

// protoDefinition chooses the rules of a CustomResourceDefinition by its name: {metadata = 1 {name = 1}}.
func protoDefinition(value []byte) *node {
	meta, err := stringField(value, 1)
	if err != nil {
		return foreignCRD
	}
	if name, err := stringField([]byte(meta), 1); err == nil && InDomain(afterDot(name)) {
		return mirroredCRD
	}
	return foreignCRD
}

// messageOf translates a message by a node.
func messageOf(n *node, dst, src []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return dst, ErrTooDeep
	}
	return message(dst, src, func(num int, dst, value []byte) ([]byte, bool, error) {
		child := n.number(num)
		for child != nil && child.elem != nil {
			child = child.elem
		}
		if n.pick != nil || child == nil {
			return dst, false, nil
		}
		if child.pick != nil {
			child = protoRule(child, value)
		}
		switch {
		case child.keys != formNone: // an entry of a map: key = 1
			out, err := messageOf(object(at("key", 1, leaf(child.keys))), dst, value, depth+1)
			return out, true, err
		case child.objects():
			out, err := messageOf(child, dst, value, depth+1)
			return out, true, err
		case child.leaf != formNone && canRename(child.leaf, value):
			out, changed, _ := child.leaf.apply(dst, value)
			return out, changed, nil
		}
		return dst, false, nil
	})
}

// protoRule chooses the node of a rule like RBAC's by its contents: PolicyRule{resources = 3}, and so it is in reviews.
func protoRule(n *node, value []byte) *node {
	plain := n.copy()
	plain.pick = nil
	_, _ = message(nil, value, func(num int, dst, v []byte) ([]byte, bool, error) {
		if r := string(v); num == 3 && (r == crds || len(r) > len(crds) && r[:len(crds)+1] == crds+"/") {
			plain = policyRuleCRD
		}
		return dst, false, nil
	})
	return plain
}

// stringField is the last value of a field of bytes.
func stringField(src []byte, want int) (s string, err error) {
	_, err = message(nil, src, func(num int, dst, value []byte) ([]byte, bool, error) {
		if num == want {
			s = string(value)
		}
		return dst, false, nil
	})
	return s, err
}

// message copies a message's fields to dst. edit is called with each field of bytes; if it changes the value it appends the new one
// and returns true. What it appends otherwise is dropped.
func message(dst, src []byte, edit func(num int, dst, value []byte) (out []byte, changed bool, err error)) ([]byte, error) {
	for len(src) > 0 {
		num, kind, n := protowire.ConsumeTag(src)
		if n < 0 || num > protowire.MaxValidNumber || kind == protowire.StartGroupType {
			return dst, ErrProtobuf // groups are of no Kubernetes type
		}
		m := protowire.ConsumeFieldValue(num, kind, src[n:])
		if m < 0 {
			return dst, ErrProtobuf
		}
		tag, field := src[:n], src[:n+m]
		src = src[n+m:]
		if kind != protowire.BytesType {
			dst = append(dst, field...)
			continue
		}
		value, _ := protowire.ConsumeBytes(field[n:])
		mark := len(dst)
		// Room for the tag and the longest length that can come; what is too much is closed afterwards.
		var head [2 * binary.MaxVarintLen64]byte
		dst = append(dst, head[:]...)
		body := len(dst)
		out, changed, err := edit(int(num), dst, value)
		switch {
		case errors.Is(err, errDropped):
			dst = out[:mark]
		case err != nil:
			return out, err
		case !changed:
			dst = append(out[:mark], field...)
		default:
			edited := out[body:]
			dst = append(out[:mark], tag...)
			dst = protowire.AppendBytes(dst, edited) // moves to the front, within the same array
		}
	}
	return dst, nil
}
