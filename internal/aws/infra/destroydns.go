package infra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"hcp.internal/platform/internal/aws/fault"
	"hcp.internal/platform/internal/aws/tags"
)

// appsRecords removes what the ingress operator left in the public zone. The zone itself is the user's.
func (w *wreck) appsRecords(ctx context.Context) {
	client := w.a.Cluster.route53
	zones, err := hostedZones(ctx, client, w.o.BaseDomain, false)
	if !w.try("public zone "+w.o.BaseDomain, err) {
		return
	}
	name := "*.apps." + ClusterDomain(w.o.Name, w.o.BaseDomainPrefix, w.o.BaseDomain)
	for _, zone := range zones {
		w.try("record "+name, deleteRecords(ctx, client, zoneID(zone), name, func(set types.ResourceRecordSet) bool {
			return equalFold(plainName(aws.ToString(set.Name)), name)
		}))
	}
}

// plainName is a record's name without the final dot, and with the asterisk as people write it.
func plainName(name string) string {
	return strings.TrimSuffix(strings.ReplaceAll(name, `\052`, "*"), ".")
}

// recordBatch is how many changes go into one request; AWS takes a thousand.
const recordBatch = 500

// deleteRecords deletes the sets of a zone that match, from the name start on; empty: from the first. A start limits it to that name.
func deleteRecords(ctx context.Context, client *route53.Client, zone, start string, match func(types.ResourceRecordSet) bool) error {
	var changes []types.Change
	input := &route53.ListResourceRecordSetsInput{HostedZoneId: &zone}
	if start != "" {
		input.StartRecordName = &start
	}
	for range maxPages {
		out, err := client.ListResourceRecordSets(ctx, input)
		if err != nil {
			return err
		}
		for i := range out.ResourceRecordSets {
			if set := &out.ResourceRecordSets[i]; match(*set) {
				changes = append(changes, types.Change{Action: types.ChangeActionDelete, ResourceRecordSet: set})
			}
		}
		if !out.IsTruncated || start != "" {
			break
		}
		input.StartRecordName, input.StartRecordType, input.StartRecordIdentifier = out.NextRecordName, out.NextRecordType, out.NextRecordIdentifier
	}
	for batch := range slices.Chunk(changes, recordBatch) {
		if _, err := client.ChangeResourceRecordSets(ctx, &route53.ChangeResourceRecordSetsInput{
			HostedZoneId: &zone, ChangeBatch: &types.ChangeBatch{Changes: batch}}); err != nil {
			return err
		}
	}
	return nil
}

// privateZones deletes the cluster's zones of the VPC.
func (w *wreck) privateZones(ctx context.Context, vpc string) {
	client := w.a.zones(w.o.PrivateZonesInClusterAccount).route53
	w.try("private zones", pages(func(token *string) (*string, error) {
		out, err := client.ListHostedZonesByVPC(ctx, &route53.ListHostedZonesByVPCInput{
			VPCId: &vpc, VPCRegion: types.VPCRegion(w.o.Region), NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, zone := range out.HostedZoneSummaries {
			// Zones of AWS's own services are listed, too.
			if zone.Owner != nil && aws.ToString(zone.Owner.OwningService) != "" {
				continue
			}
			id, domain := aws.ToString(zone.HostedZoneId), strings.TrimSuffix(aws.ToString(zone.Name), ".")
			what := "private zone " + domain
			if mine, err := w.ownZone(ctx, client, id, domain); !w.try(what, err) || !mine {
				continue
			}
			if err := deleteRecords(ctx, client, id, "", func(set types.ResourceRecordSet) bool {
				return set.Type != types.RRTypeNs && set.Type != types.RRTypeSoa
			}); !w.try(what, err) {
				continue
			}
			_, err := client.DeleteHostedZone(ctx, &route53.DeleteHostedZoneInput{Id: &id})
			w.deleted(what, err)
		}
		return out.NextToken, nil
	}))
}

// ownZone tells a zone of the cluster from one that somebody else put on its VPC: by its tag, or by its name when an interrupted run
// left it without.
func (w *wreck) ownZone(ctx context.Context, client *route53.Client, id, domain string) (bool, error) {
	if domain == localDomain(w.o.Name) || domain == ClusterDomain(w.o.Name, w.o.BaseDomainPrefix, w.o.BaseDomain) {
		return true, nil
	}
	have, err := zoneTags(ctx, client, id)
	if err != nil && !fault.Denied(err) {
		return false, err
	}
	return have[tags.Cluster(w.o.InfraID)] == tags.Owned, nil
}

// registryBuckets removes the image registry's, with all that is in them.
func (w *wreck) registryBuckets(ctx context.Context) {
	prefix := w.o.InfraID + "-image-registry-"
	w.try("buckets", pages(func(token *string) (*string, error) {
		out, err := w.a.Cluster.s3.ListBuckets(ctx, &s3.ListBucketsInput{Prefix: &prefix, ContinuationToken: token})
		if err != nil {
			return nil, err
		}
		for _, bucket := range out.Buckets {
			// An endpoint that doesn't know the prefix lists all.
			if name := aws.ToString(bucket.Name); strings.HasPrefix(name, prefix) {
				w.bucket(ctx, name)
			}
		}
		return out.ContinuationToken, nil
	}))
}

func (w *wreck) bucket(ctx context.Context, name string) {
	for _, empty := range []func(context.Context, string) error{w.emptyVersions, w.emptyObjects, w.abortUploads} {
		// What isn't permitted to the published tool's role isn't there in most buckets; DeleteBucket says if it was.
		if err := empty(ctx, name); !fault.Denied(err) && !w.try("bucket "+name, err) {
			return
		}
	}
	_, err := w.a.Cluster.s3.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &name})
	w.deleted("bucket "+name, err)
}

func (w *wreck) deleteObjects(ctx context.Context, bucket string, objects []s3types.ObjectIdentifier) error {
	if len(objects) == 0 {
		return nil
	}
	out, err := w.a.Cluster.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &s3types.Delete{Objects: objects, Quiet: aws.Bool(true)}})
	if err != nil {
		return err
	}
	if failed := first(out.Errors); failed != nil {
		return fmt.Errorf("object %s: %w", aws.ToString(failed.Key),
			&smithy.GenericAPIError{Code: aws.ToString(failed.Code), Message: aws.ToString(failed.Message)})
	}
	return nil
}

func (w *wreck) emptyObjects(ctx context.Context, bucket string) error {
	return pages(func(token *string) (*string, error) {
		out, err := w.a.Cluster.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket, ContinuationToken: token})
		if err != nil {
			return nil, err
		}
		var objects []s3types.ObjectIdentifier
		for _, object := range out.Contents {
			objects = append(objects, s3types.ObjectIdentifier{Key: object.Key})
		}
		return out.NextContinuationToken, w.deleteObjects(ctx, bucket, objects)
	})
}

// emptyVersions removes versions and marks of deletion, which a bucket that once had versioning keeps.
func (w *wreck) emptyVersions(ctx context.Context, bucket string) error {
	input := &s3.ListObjectVersionsInput{Bucket: &bucket}
	for range maxPages {
		out, err := w.a.Cluster.s3.ListObjectVersions(ctx, input)
		if err != nil {
			return err
		}
		var objects []s3types.ObjectIdentifier
		for _, version := range out.Versions {
			objects = append(objects, s3types.ObjectIdentifier{Key: version.Key, VersionId: version.VersionId})
		}
		for _, marker := range out.DeleteMarkers {
			objects = append(objects, s3types.ObjectIdentifier{Key: marker.Key, VersionId: marker.VersionId})
		}
		for batch := range slices.Chunk(objects, 1000) { // as many as a request takes
			if err := w.deleteObjects(ctx, bucket, batch); err != nil {
				return err
			}
		}
		if !aws.ToBool(out.IsTruncated) {
			return nil
		}
		input.KeyMarker, input.VersionIdMarker = out.NextKeyMarker, out.NextVersionIdMarker
	}
	return errors.New("the list of versions has no end")
}

func (w *wreck) abortUploads(ctx context.Context, bucket string) error {
	input := &s3.ListMultipartUploadsInput{Bucket: &bucket}
	for range maxPages {
		out, err := w.a.Cluster.s3.ListMultipartUploads(ctx, input)
		if err != nil {
			return err
		}
		for _, upload := range out.Uploads {
			if _, err := w.a.Cluster.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: upload.Key, UploadId: upload.UploadId}); err != nil && !fault.Gone(err) {
				return err
			}
		}
		if !aws.ToBool(out.IsTruncated) {
			return nil
		}
		input.KeyMarker, input.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
	return errors.New("the list of uploads has no end")
}
