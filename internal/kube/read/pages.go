package read

import (
	"context"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pages lists page by page, each of size objects at most: list holds one after the other, and the sequence has nil for each. It ends with the last page
// or with the error of a request, as it came. c must not be a cache: caches have no pages.
//
// Callers may keep the objects of a page. A list that is decoded into twice would write the second page over the first one's objects, down to their maps.
//
//	for err := range read.Pages(ctx, c, list, 500, client.InNamespace(ns)) {
//		if err != nil { … }
//		use(list.Items)
//	}
func Pages(ctx context.Context, c client.Reader, list client.ObjectList, size int64, options ...client.ListOption) iter.Seq[error] {
	return func(yield func(error) bool) {
		for next := ""; ; {
			err := meta.SetList(list, nil)
			if err == nil {
				err = c.List(ctx, list, append(slices.Clip(options), client.Limit(size), client.Continue(next))...)
			}
			if !yield(err) || err != nil {
				return
			}
			if next = list.GetContinue(); next == "" {
				return
			}
		}
	}
}
