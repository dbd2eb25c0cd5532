package ledger

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/internal/core/fingerprint"
)

// KeySecret is the Secret in KICK's own namespace that holds the key of the fingerprints.
const KeySecret = "kick-fingerprint-key"

// Entries of the KeySecret.
const (
	keySecretKey = "key"
	keySecretID  = "id"
)

// keyIDSize is the length of a key's name in random bytes.
const keyIDSize = 8

// loadKey reads the key of the fingerprints, and makes one at the first start. A lost key is replaced: records made
// under the old one are then taken anew.
func (s *Store) loadKey(ctx context.Context) (fingerprint.Key, error) {
	secret := &corev1.Secret{}
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: KeySecret}, secret)
	if apierrors.IsNotFound(err) {
		return s.createKey(ctx)
	}
	if err != nil {
		return fingerprint.Key{}, fmt.Errorf("read the fingerprint key: %w", err)
	}
	key := fingerprint.Key{ID: string(secret.Data[keySecretID]), Secret: secret.Data[keySecretKey]}
	if key.ID == "" || len(key.Secret) != fingerprint.KeySize {
		return fingerprint.Key{}, fmt.Errorf("the Secret %s/%s must hold %q and %d bytes of %q; delete it to have a new key made",
			s.namespace, KeySecret, keySecretID, fingerprint.KeySize, keySecretKey)
	}
	return key, nil
}

func (s *Store) createKey(ctx context.Context) (fingerprint.Key, error) {
	random := make([]byte, fingerprint.KeySize+keyIDSize)
	if _, err := rand.Read(random); err != nil {
		return fingerprint.Key{}, fmt.Errorf("make a fingerprint key: %w", err)
	}
	key := fingerprint.Key{
		ID:     hex.EncodeToString(random[fingerprint.KeySize:]),
		Secret: random[:fingerprint.KeySize],
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: KeySecret},
		Data:       map[string][]byte{keySecretID: []byte(key.ID), keySecretKey: key.Secret},
	}
	if err := s.writer.Create(ctx, secret); err != nil {
		return fingerprint.Key{}, fmt.Errorf("store a new fingerprint key: %w", err)
	}
	return key, nil
}
