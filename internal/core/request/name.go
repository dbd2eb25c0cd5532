package request

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// maxNameLength is what the API server admits for the name of an object, in bytes.
const maxNameLength = 253

// hashLength is the number of hexadecimal digits that make a cut name unique.
const hashLength = 16

// Name is the name of the one request of a workload: its kind in lower case, a hyphen and its name. A name too long
// for an object is cut and ends in a hash of the whole.
func Name(kind v1alpha1.WorkloadKind, workload string) string {
	name := strings.ToLower(string(kind)) + "-" + workload
	if len(name) <= maxNameLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	kept := strings.TrimRight(name[:maxNameLength-hashLength-1], ".-")
	return kept + "-" + hex.EncodeToString(sum[:])[:hashLength]
}
