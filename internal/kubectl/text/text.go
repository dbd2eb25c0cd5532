// Package text writes lines and aligned tables.
package text

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Writer writes until the first error, which Err returns.
type Writer struct {
	out io.Writer
	err error
}

// NewWriter returns a writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Err is the first error.
func (w *Writer) Err() error { return w.err }

// Line writes a line.
func (w *Writer) Line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", args...)
	}
}

// Table writes rows whose cells are aligned, without blanks at the ends of lines.
func (w *Writer) Table(rows func(row func(cells ...string))) {
	var aligned strings.Builder
	table := tabwriter.NewWriter(&aligned, 0, 0, 3, ' ', 0)
	rows(func(cells ...string) {
		for i := range cells {
			cells[i] = breaks.Replace(cells[i])
		}
		fmt.Fprintln(table, strings.Join(cells, "\t")) //nolint:errcheck // Flush returns it
	})
	if err := table.Flush(); err != nil && w.err == nil {
		w.err = err
	}
	for line := range strings.Lines(aligned.String()) {
		w.Line("%s", strings.TrimRight(line, " \n"))
	}
}

// Duration writes a duration without the parts at its end that are zero.
func Duration(d time.Duration) string {
	written := d.String()
	if strings.HasSuffix(written, "m0s") {
		written = strings.TrimSuffix(written, "0s")
	}
	if strings.HasSuffix(written, "h0m") {
		written = strings.TrimSuffix(written, "0m")
	}
	return written
}

// breaks are what would break a table.
var breaks = strings.NewReplacer("\n", " ", "\t", " ", "\r", "")
