package ledger

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kick-dev/kick/internal/core/fingerprint"
)

// KeySecret is the Secret in KICK's own namespace that holds the key of the fingerprints.
const KeySecret = "kick-fingerprint-key"

// keySecretKey is the entry of the KeySecret.
const keySecretKey = "key"

// KeyFate says what became of the key of the fingerprints.
type KeyFate string

// What may become of the key while KICK runs.
const (
	// KeyKept: the Secret holds the key in use.
	KeyKept KeyFate = "Kept"
	// KeyRestored: the Secret was deleted and holds the key in use again. Nothing is lost.
	KeyRestored KeyFate = "Restored"
	// KeyReplaced: the Secret holds another key, which is in use from now on. Every source has to be observed again, for
	// its record to be taken under it.
	KeyReplaced KeyFate = "Replaced"
)

// KeepKey brings the key in use and its Secret together again after the Secret has changed: version is its present
// resourceVersion, empty if it is gone. A Secret that holds no key is an error, and the key in use stays in use.
func (s *Store) KeepKey(ctx context.Context, version string) (KeyFate, error) {
	s.keyLock.Lock()
	defer s.keyLock.Unlock()
	if version != "" && version == s.keyVersion {
		return KeyKept, nil
	}
	inUse := s.Key()
	stored, storedVersion, err := s.readKey(ctx)
	if apierrors.IsNotFound(err) {
		s.keyVersion, err = s.storeKey(ctx, inUse)
		return KeyRestored, err
	}
	if err != nil {
		return KeyKept, err
	}
	s.keyVersion = storedVersion
	if stored.ID == inUse.ID {
		return KeyKept, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = stored
	return KeyReplaced, nil
}

// loadKey reads the key of the fingerprints, and makes one at the first start. A lost key is replaced: records made
// under the old one are then taken anew.
func (s *Store) loadKey(ctx context.Context) (fingerprint.Key, error) {
	key, version, err := s.readKey(ctx)
	if apierrors.IsNotFound(err) {
		if key, err = newKey(); err == nil {
			version, err = s.storeKey(ctx, key)
		}
	}
	if err != nil {
		return fingerprint.Key{}, err
	}
	s.keyVersion = version
	return key, nil
}

// readKey returns the key that is stored and the resourceVersion of its Secret.
func (s *Store) readKey(ctx context.Context) (key fingerprint.Key, version string, err error) {
	secret := &corev1.Secret{}
	if err := s.reader.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: KeySecret}, secret); err != nil {
		return key, "", fmt.Errorf("read the fingerprint key: %w", err)
	}
	stored := secret.Data[keySecretKey]
	if len(stored) != fingerprint.KeySize {
		return key, "", fmt.Errorf("the Secret %s/%s must hold %d bytes of %q; delete it to have the key in use, or a new one, stored",
			s.namespace, KeySecret, fingerprint.KeySize, keySecretKey)
	}
	return fingerprint.NewKey(stored), secret.ResourceVersion, nil
}

func newKey() (fingerprint.Key, error) {
	random := make([]byte, fingerprint.KeySize)
	if _, err := rand.Read(random); err != nil {
		return fingerprint.Key{}, fmt.Errorf("make a fingerprint key: %w", err)
	}
	return fingerprint.NewKey(random), nil
}

// storeKey makes the Secret of a key and returns its resourceVersion.
func (s *Store) storeKey(ctx context.Context, key fingerprint.Key) (version string, err error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: KeySecret},
		Data:       map[string][]byte{keySecretKey: key.Secret},
	}
	if err := s.writer.Create(ctx, secret); err != nil {
		return "", fmt.Errorf("store the fingerprint key: %w", err)
	}
	return secret.ResourceVersion, nil
}
