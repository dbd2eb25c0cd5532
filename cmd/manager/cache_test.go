package main

import (
	"testing"
	"unsafe"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kick-dev/kick/api/v1alpha1"
	"github.com/kick-dev/kick/internal/cluster/source"
	"github.com/kick-dev/kick/internal/cluster/workload"
)

// What is watched in great numbers is made slim before it is cached, and is not copied at each read.
func TestTheCacheIsSlim(t *testing.T) {
	metadata := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: string([]byte("shop")), Name: name, // Each with a copy of its own.
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: &metav1.FieldsV1{}}},
		}
	}
	arriving := func(watched client.Object, name string) client.Object {
		switch watched.(type) {
		case *corev1.Secret, *corev1.ConfigMap:
			return &metav1.PartialObjectMetadata{ObjectMeta: metadata(name)}
		case *appsv1.Deployment:
			return &appsv1.Deployment{ObjectMeta: metadata(name)}
		case *appsv1.StatefulSet:
			return &appsv1.StatefulSet{ObjectMeta: metadata(name)}
		case *appsv1.DaemonSet:
			return &appsv1.DaemonSet{ObjectMeta: metadata(name)}
		case *v1alpha1.KickRequest:
			return &v1alpha1.KickRequest{ObjectMeta: metadata(name)}
		}
		t.Fatalf("%T is cached in a way of its own, and this test does not know why", watched)
		return nil
	}
	sources := &source.Cache{}
	options := cacheOptions(nil, sources)
	if want := len(workload.Objects()) + 3; len(options.ByObject) != want {
		t.Errorf("%d kinds are cached in a way of their own, want %d", len(options.ByObject), want)
	}
	for watched, by := range options.ByObject {
		if by.UnsafeDisableDeepCopy == nil || !*by.UnsafeDisableDeepCopy {
			t.Errorf("%T is copied at each read", watched)
		}
		if by.Transform == nil {
			t.Errorf("%T is cached whole", watched)
			continue
		}
		var slim []client.Object
		for _, name := range []string{"a", "b"} {
			object, err := by.Transform(arriving(watched, name))
			if err != nil {
				t.Fatal(err)
			}
			slim = append(slim, object.(client.Object))
		}
		for _, entry := range slim[0].GetManagedFields() {
			if entry.FieldsV1 != nil {
				t.Errorf("%T keeps managedFields", watched)
			}
		}
		if unsafe.StringData(slim[0].GetNamespace()) != unsafe.StringData(slim[1].GetNamespace()) {
			t.Errorf("%T: each has a namespace of its own", watched)
		}
	}
}
