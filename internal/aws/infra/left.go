package infra

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"hcp.internal/platform/internal/aws/ec2values"
	"hcp.internal/platform/internal/aws/fault"
)

// farewell says at the end what is left: volumes and snapshots that the hosted cluster made hold data, of which a person decides. It fails nothing: all that was
// to go has gone. A role of the published tool may not list them.
func (w *wreck) farewell(ctx context.Context) {
	left, err := w.holdsData(ctx)
	if len(left) > 0 {
		w.Log("left of infrastructure %s, because they hold data: %s; delete those that nobody needs with `aws ec2 delete-volume --volume-id ID` and `aws ec2 delete-snapshot --snapshot-id ID`",
			w.o.InfraID, strings.Join(left, ", "))
	}
	switch {
	case err != nil:
		w.Log("nothing else of infrastructure %s is left, but not all volumes and snapshots could be looked for: %s", w.o.InfraID, fault.Explain(err))
	case len(left) > 0:
		w.Log("nothing else of infrastructure %s is left", w.o.InfraID)
	default:
		w.Log("nothing of infrastructure %s is left", w.o.InfraID)
	}
}

// holdsData lists what has the cluster's tag and holds data, as far as it may. It is in the cluster's own account, whoever owns the VPC.
func (w *wreck) holdsData(ctx context.Context) (left []string, _ error) {
	client := w.a.Cluster.ec2
	err := pages(func(token *string) (*string, error) {
		out, err := client.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{NextToken: token,
			Filters: ec2values.Owned(w.o.InfraID, ec2values.Filter("status", "creating", "available", "in-use", "error"))})
		if err != nil {
			return nil, err
		}
		for _, volume := range out.Volumes {
			left = append(left, "volume "+aws.ToString(volume.VolumeId))
		}
		return out.NextToken, nil
	})
	if err != nil {
		return left, err
	}
	return left, pages(func(token *string) (*string, error) {
		out, err := client.DescribeSnapshots(ctx, &ec2.DescribeSnapshotsInput{NextToken: token, OwnerIds: []string{"self"}, Filters: ec2values.Owned(w.o.InfraID)})
		if err != nil {
			return nil, err
		}
		for _, snapshot := range out.Snapshots {
			left = append(left, "snapshot "+aws.ToString(snapshot.SnapshotId))
		}
		return out.NextToken, nil
	})
}
