package main

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// indexes answer to who makes one of a field.
type indexes map[string]error

// IndexField implements client.FieldIndexer.
func (i indexes) IndexField(_ context.Context, _ client.Object, field string, _ client.IndexerFunc) error {
	return i[field]
}

func TestIndexed(t *testing.T) {
	const claims, pools = "status.providerID", "spec.template.spec.nodeClassRef.name"
	there := errors.New("indexer conflict: [field:status.providerID]")
	for name, c := range map[string]struct {
		have indexes
		ok   bool
	}{
		"When Karpenter has made its indexes it should go on":             {indexes{claims: there, pools: there}, true},
		"When it has done without that of machines it should start anew":  {indexes{pools: there}, false},
		"When it has done without that of NodePools it should start anew": {indexes{claims: there}, false},
		"When a kind is still not served it should start anew":            {indexes{claims: there, pools: &meta.NoKindMatchError{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(indexed(t.Context(), c.have) == nil).To(Equal(c.ok))
		})
	}
}
