package configoperator

import (
	"context"
	"strconv"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
