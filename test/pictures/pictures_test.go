package pictures

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// artefacts is where the screenshots are left.
const artefacts = "artefacts"

// views are a desk and a phone, by day and by night.
var views = []view{{"light", 1280}, {"dark", 1280}, {"light", 480}, {"dark", 480}}

// Each page and each drawing of the plugin is one file that asks for nothing else, and can be read in light and dark, on a
// wide screen and on a narrow one.
func TestEveryPictureCanBeRead(t *testing.T) {
	golden, err := filepath.Glob("../../internal/kubectl/*/testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	ctx := startBrowser(t)
	if err := os.MkdirAll(artefacts, 0o755); err != nil { //nolint:gosec // for everybody to see
		t.Fatal(err)
	}
	looked := 0
	for _, path := range golden {
		name := strings.TrimSuffix(filepath.Base(path), ".golden")
		if kind := filepath.Ext(name); kind != ".html" && kind != ".svg" {
			continue
		}
		looked++
		url := page(t, path, name)
		for _, as := range views {
			if filepath.Ext(name) == ".svg" && as.width < 1000 {
				continue // A drawing has the size that it has.
			}
			shown := fmt.Sprintf("%s-%s-%s-%d", filepath.Base(filepath.Dir(filepath.Dir(path))), name, as.scheme, as.width)
			t.Run(shown, func(t *testing.T) {
				seen := look(t, ctx, url, as)
				if err := os.WriteFile(filepath.Join(artefacts, shown+".png"), seen.screenshot, 0o644); err != nil { //nolint:gosec // as above
					t.Error(err)
				}
				for _, fault := range seen.faults(as) {
					t.Errorf("%s", fault)
				}
			})
		}
	}
	if looked < 10 {
		t.Errorf("looked at %d files only", looked)
	}
}

// page copies a file to where it has the right name, and returns its URL.
func page(t *testing.T, path, name string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, name, string(content))
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// What the other test finds no fault with could be found fault with.
func TestFaultsAreFound(t *testing.T) {
	ctx := startBrowser(t)
	const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 200" width="300" height="200" style="background: #ffffff">%s</svg>`
	for name, tc := range map[string]struct{ page, fault string }{
		"a picture from elsewhere":  {`<img src="http://127.0.0.1:9/x.png">` + fmt.Sprintf(drawing, `<text x="9" y="20">a</text>`), "asks for http://127.0.0.1:9/x.png"},
		"a style from elsewhere":    {`<link rel="stylesheet" href="http://127.0.0.1:9/x.css">` + fmt.Sprintf(drawing, `<text x="9" y="20">a</text>`), "asks for http://127.0.0.1:9/x.css"},
		"a script that fails":       {`<script>nothing()</script>` + fmt.Sprintf(drawing, `<text x="9" y="20">a</text>`), "nothing is not defined"},
		"a complaint":               {`<script>console.error("oh")</script>` + fmt.Sprintf(drawing, `<text x="9" y="20">a</text>`), `complains: "oh"`},
		"no drawing":                {"<p>a</p>", "is empty"},
		"a text that is cut off":    {fmt.Sprintf(drawing, `<text x="290" y="20">long</text>`), `cuts "long" off`},
		"a text over another":       {fmt.Sprintf(drawing, `<text x="9" y="20">one text</text><text x="20" y="22">another</text>`), `has "one text" over "another"`},
		"a text over an edge":       {fmt.Sprintf(drawing, `<rect x="20" y="10" width="90" height="20" fill="#eee"/><text x="9" y="24">text</text>`), "over the edge of a bar"},
		"a text that is pale":       {fmt.Sprintf(drawing, `<text x="9" y="20" fill="#ccc">pale</text>`), `shows "pale" with a contrast of 1.6`},
		"a text that is pale on it": {fmt.Sprintf(drawing, `<rect width="200" height="40" fill="#333"/><text x="9" y="20">dark</text>`), `shows "dark" with a contrast`},
		"a text that is small":      {fmt.Sprintf(drawing, `<text x="9" y="20" font-size="6">a</text>`), "has text of 6.0 pixels"},
		"a page that is wide":       {fmt.Sprintf(drawing, `<text x="9" y="20">a</text>`) + `<p style="width: 3000px">a</p>`, "pixels wide in a window of 1280"},
		"no dark":                   {fmt.Sprintf(drawing, `<text x="9" y="20">a</text>`), "in dark"},
	} {
		t.Run(name, func(t *testing.T) {
			as := view{"dark", 1280}
			faults := look(t, ctx, write(t, "page.html", "<!DOCTYPE html>"+tc.page), as).faults(as)
			if !strings.Contains(strings.Join(faults, "\n"), tc.fault) {
				t.Errorf("found %q, want %q", faults, tc.fault)
			}
		})
	}
}
