package faults

import (
	"crypto/md5"  //nolint:gosec // What is looked for is a leak of it.
	"crypto/sha1" //nolint:gosec // What is looked for is a leak of it.
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kick-dev/kick/api/v1alpha1"
)

// hashes finds unkeyed hashes of guessable values in a text: the beginnings of md5, sha1, sha256 and sha512, in hex and
// base64, so that one that was cut is found too.
type hashes map[string]string

const (
	hexLength    = 16 // 8 bytes
	base64Length = 10 // 7 bytes
)

func newHashes(values []string) hashes {
	known := hashes{}
	for _, value := range values {
		md5Sum, sha1Sum := md5.Sum([]byte(value)), sha1.Sum([]byte(value)) //nolint:gosec // as above
		sha256Sum, sha512Sum := sha256.Sum256([]byte(value)), sha512.Sum512([]byte(value))
		for _, sum := range [][]byte{md5Sum[:], sha1Sum[:], sha256Sum[:], sha512Sum[:]} {
			known[hex.EncodeToString(sum)[:hexLength]] = value
			known[base64.StdEncoding.EncodeToString(sum)[:base64Length]] = value
			known[base64.URLEncoding.EncodeToString(sum)[:base64Length]] = value
		}
	}
	return known
}

// in returns what the text gives away, empty for nothing.
func (h hashes) in(text string) string {
	for i := range len(text) - base64Length + 1 {
		for _, length := range []int{base64Length, hexLength} {
			if i+length > len(text) {
				continue
			}
			if value, found := h[text[i:i+length]]; found {
				return fmt.Sprintf("a hash of %q: …%s…", value, text[max(0, i-60):min(len(text), i+80)])
			}
		}
	}
	return ""
}

// pins are all values of a source that anybody could try.
func pins() []string {
	var all []string
	for pin := range 10000 {
		all = append(all, fmt.Sprintf("%04d", pin))
	}
	return all
}

func TestTheSearchForHashesFindsThem(t *testing.T) {
	known := newHashes(pins())
	sum := sha256.Sum256([]byte("0815"))
	for name, text := range map[string]string{
		"hex": hex.EncodeToString(sum[:]), "base64": base64.StdEncoding.EncodeToString(sum[:]),
		"cut": base64.StdEncoding.EncodeToString(sum[:8]), "in JSON": `{"digest":"` + hex.EncodeToString(sum[:]) + `"}`,
	} {
		if known.in(text) == "" {
			t.Errorf("%s: not found in %s", name, text)
		}
	}
	if found := known.in("the quick brown fox, 0815, jumps over the lazy dog"); found != "" {
		t.Errorf("found %s", found)
	}
}

// C009: what can be read without rights on Secrets gives away nothing about their content, at debug level either.
func TestNothingIsGivenAway(t *testing.T) {
	m := alone(t)
	f := newFleet(t, 3)
	values := []string{"v4lue-of-a-passw0rd", "s3cond-of-a-passw0rd"}
	for _, value := range append(values, "4711", "0815") {
		for _, name := range f.names {
			f.stamps[name]++
			must(t, rewrite(t.Context(), f.namespace, name, value))
		}
		f.check(t)
	}
	m.Kill() // so that there is something to say about a start, too
	must(t, m.Start())
	for _, name := range f.names {
		eventually(t, func() error { return settled(t.Context(), f.namespace, name, name, v1alpha1.PhaseSucceeded) })
	}
	ready(t, m)
	known := newHashes(pins())
	for source, text := range corpus(t, m) {
		for _, value := range values {
			for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value))} {
				if strings.Contains(text, form) {
					t.Errorf("%s holds %q", source, form)
				}
			}
		}
		if found := known.in(text); found != "" {
			t.Errorf("%s holds %s", source, found)
		}
	}
}

// corpus is everything that is readable: all objects but Secrets, events among them, the metrics, the logs.
func corpus(t *testing.T, m *Manager) map[string]string {
	t.Helper()
	texts := map[string]string{}
	listed, err := bed.Kubectl(t.Context(), "api-resources", "--verbs=list", "--output=name")
	must(t, err)
	kinds := slices.DeleteFunc(strings.Fields(listed), func(kind string) bool { return kind == "secrets" })
	objects, err := bed.Kubectl(t.Context(), "get", strings.Join(kinds, ","), "--all-namespaces", "--output=yaml", "--show-managed-fields")
	must(t, err)
	for _, needed := range []string{"KickLedger", "KickRequest", "Event", "Deployment"} {
		if !strings.Contains(objects, "kind: "+needed) {
			t.Errorf("the corpus lacks objects of kind %s", needed)
		}
	}
	texts["the objects of the API"] = objects
	texts["metrics"] = scrape(t, m)
	files, err := filepath.Glob(filepath.Join(logs, "*.log"))
	must(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		must(t, err)
		texts[filepath.Base(file)] = string(content)
	}
	return texts
}

// scrape reads the metrics of a manager as an administrator.
func scrape(t *testing.T, m *Manager) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+m.metrics+"/metrics", http.NoBody)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+bed.RESTConfig().BearerToken)
	// The manager makes the certificate of its metrics by itself.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // see above
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK || !strings.Contains(string(body), "kick_") {
		t.Fatalf("the metrics are not served: %s %s", response.Status, body)
	}
	return string(body)
}
