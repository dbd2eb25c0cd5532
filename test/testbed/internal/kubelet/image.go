package kubelet

import "strings"

// executable finds what plays an image: the entry of its repository and tag, or
// else of its repository.
func (k *Kubelet) executable(image string) (path string, ok bool) {
	image, _, _ = strings.Cut(image, "@")
	if path, ok = k.Images[image]; ok {
		return path, true
	}
	path, ok = k.Images[repository(image)]
	return path, ok
}

// repository is an image reference, which has no digest, without its tag.
func repository(image string) string {
	colon := strings.LastIndex(image, ":")
	// A colon before a slash belongs to the port of a registry.
	if colon > strings.LastIndex(image, "/") {
		return image[:colon]
	}
	return image
}
