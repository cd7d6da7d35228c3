// Package ec2values gives tags and filters the types that EC2's requests have. It is not in package tags, which programs need that don't call AWS.
package ec2values

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"hcp.internal/platform/internal/aws/tags"
)

// Filter finds what has one of the values.
func Filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

// Named finds what has that name.
func Named(name string) types.Filter { return Filter("tag:"+tags.Name, name) }

// Owned finds what is a cluster's and passes the other filters.
func Owned(infraID string, more ...types.Filter) []types.Filter {
	return append([]types.Filter{Filter("tag:"+tags.Cluster(infraID), tags.Owned)}, more...)
}

// Tags are those of a set, in order.
func Tags(set tags.Set) []types.Tag {
	return tags.List(set, func(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} })
}

// Tagged gives what a request makes the tags of a set.
func Tagged(kind types.ResourceType, set tags.Set) []types.TagSpecification {
	return []types.TagSpecification{{ResourceType: kind, Tags: Tags(set)}}
}

// Set reads tags.
func Set(list []types.Tag) tags.Set {
	set := tags.Set{}
	for _, t := range list {
		set[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return set
}
