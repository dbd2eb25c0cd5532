// Package pictures looks at the drawings and pages of the kubectl plugin with a real browser: the golden files of its tests,
// which are what it writes. It is a module of its own, so that nothing of a browser is among the product's dependencies.
package pictures
