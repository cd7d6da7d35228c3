package schema

import (
	"reflect"
	"testing"
)

func TestParseFacts(t *testing.T) {
	got := Facts{}
	err := ParseFacts(`enum=["a b",""] default={"b":1,"a":[]} immutable celRules=2 items:minLength=1 celRules=3`, got)
	want := Facts{"enum": `["a b",""]`, "default": `{"a":[],"b":1}`, "immutable": "true", "celRules": "2", "items:minLength": "1", "items:celRules": "3"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, %v; want %v", got, err, want)
	}
	if err := ParseFacts(`default={`, Facts{}); err == nil {
		t.Fatal("want an error for a value that is cut off")
	}
}
