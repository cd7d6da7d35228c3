package kit

import (
	"fmt"
	"strings"
)

// AzureResource is the group and the name that the ID of a resource in Azure holds:
// /subscriptions/⟨id⟩/resourceGroups/⟨group⟩/providers/⟨provider⟩/⟨kind⟩/⟨name⟩, and then maybe the parts of a resource within.
type AzureResource struct {
	Group, Name string
	// Child is the name of the last resource within Name, such as a subnet of a network; empty when there is none.
	Child string
}

// ParseAzureResource reads a resource ID; field is where it stands, for the error.
func ParseAzureResource(field, id string) (AzureResource, error) {
	parts := strings.Split(strings.Trim(id, "/"), "/")
	if len(parts) < 8 || len(parts)%2 != 0 || !strings.EqualFold(parts[0], "subscriptions") || !strings.EqualFold(parts[2], "resourceGroups") || !strings.EqualFold(parts[4], "providers") {
		return AzureResource{}, fmt.Errorf("%s: %q is not the ID of a resource: write /subscriptions/⟨id⟩/resourceGroups/⟨group⟩/providers/⟨provider⟩/⟨kind⟩/⟨name⟩", field, id)
	}
	r := AzureResource{Group: parts[3], Name: parts[7]}
	if len(parts) > 8 {
		r.Child = parts[len(parts)-1]
	}
	return r, nil
}
