package apply

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// emptyOf returns a new zero value of the Go type behind obj.
func emptyOf(obj client.Object) client.Object {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
}
