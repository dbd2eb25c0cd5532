package kubelet

import "strings"

// Repository is an image reference without its tag and digest.
func Repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	colon := strings.LastIndex(image, ":")
	// A colon before a slash belongs to the port of a registry.
	if colon > strings.LastIndex(image, "/") {
		return image[:colon]
	}
	return image
}
