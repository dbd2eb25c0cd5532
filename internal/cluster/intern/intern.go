// Package intern lets equal values that many cached objects hold share one copy. It changes nothing about what they say.
package intern

import "unique"

// String returns a string equal to the given one, the same copy for all that ask while anybody holds on to it. It is meant
// for what many objects say alike, such as namespaces, kinds and reasons; for what each says differently it is a waste.
func String(text string) string {
	if text == "" {
		return ""
	}
	return unique.Make(text).Value()
}
