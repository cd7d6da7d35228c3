package kit

import "fmt"

// AtLeast says whether a release is OpenShift 4.<minor> or newer; 5 and what follows is. What is no version is not.
func AtLeast(version string, minor int) bool {
	var gotMajor, gotMinor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &gotMajor, &gotMinor); n != 2 {
		return false
	}
	return gotMajor > 4 || (gotMajor == 4 && gotMinor >= minor)
}
