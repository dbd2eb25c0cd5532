package pictures

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browserEnv names the browser; without it the usual names are looked for.
const browserEnv = "KICK_TEST_BROWSER"

// patience ends what has failed; nothing is asserted about time.
const patience = 2 * time.Minute

// browser returns the path of a Chromium, and skips the test where there is none.
func browser(t *testing.T) string {
	t.Helper()
	if named := os.Getenv(browserEnv); named != "" {
		return named
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("No Chromium is on the PATH. Install one, such as Debian's package chromium, or name it with " + browserEnv + ".")
	return ""
}

// startBrowser starts a browser that ends with the test and speaks to nobody.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(browser(t)), chromedp.UserDataDir(t.TempDir()), chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(patience))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to have one as root.
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Errorf("end the browser: %v", err)
		}
		cancel()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return ctx
}

// view is how a page is looked at.
type view struct {
	scheme string // light or dark
	width  int64
}

// sight is what is seen of a page.
type sight struct {
	layout     layout
	screenshot []byte
	// requests are for anything but the page itself, complaints what it writes to the console.
	requests, complaints []string
}

// witness notes what a page does.
type witness struct {
	mu    sync.Mutex
	url   string
	sight sight
}

func (w *witness) see(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if e.Request.URL != w.url {
			w.sight.requests = append(w.sight.requests, e.Request.URL)
		}
	case *runtime.EventConsoleAPICalled:
		for _, argument := range e.Args {
			w.sight.complaints = append(w.sight.complaints, string(argument.Value))
		}
	case *runtime.EventExceptionThrown:
		w.sight.complaints = append(w.sight.complaints, e.ExceptionDetails.Exception.Description)
	case *cdplog.EventEntryAdded:
		w.sight.complaints = append(w.sight.complaints, e.Entry.Text)
	}
}

// look opens a page in a tab of its own.
func look(t *testing.T, browser context.Context, url string, as view) sight {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser)
	defer closeTab()
	ctx, cancel := context.WithTimeout(tab, patience)
	defer cancel()
	w := &witness{url: url}
	if err := chromedp.Do(tab); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	if err := chromedp.Listen(tab, w.see); err != nil {
		t.Fatalf("listen to a tab: %v", err)
	}
	if err := w.open(ctx, as); err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sight
}

// open opens the page.
func (w *witness) open(ctx context.Context, as view) error {
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		return err
	}
	if _, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}); err != nil {
		return err
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: as.scheme}}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
		return err
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(as.width, 800), chromedp.Navigate(w.url)); err != nil {
		return err
	}
	seen, err := chromedp.Run(ctx, chromedp.Evaluate[layout](measure))
	if err != nil {
		return err
	}
	screenshot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sight.layout, w.sight.screenshot = seen, screenshot
	return nil
}
