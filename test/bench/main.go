package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// options are what the command line says.
type options struct {
	scale       float64
	release     int
	phases      []string
	repeat      int
	idle        time.Duration
	json        string
	keep        bool
	helm        []string
	environment map[string]string

	// Where the manager and the chart are, seen from the working folder.
	manager string
	chart   string
}

func parseOptions(arguments []string) (options, error) {
	o := options{manager: "../../bin/manager", chart: "../../charts/kick", environment: map[string]string{"GOMAXPROCS": "2"}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Float64Var(&o.scale, "scale", 0.02,
		"The size of the cluster, as a multiple of shape S: 200 namespaces, 2,300 Deployments, 10,000 Secrets and ConfigMaps.")
	flags.IntVar(&o.release, "release-bytes", 50<<10,
		"How large the release records of Helm are. KICK does not read them; the API server and etcd hold them.")
	flags.Func("phases", "The phases to run, separated by commas; all but the optional ones by default. One of "+phaseNames()+".",
		func(text string) error {
			for name := range strings.SplitSeq(text, ",") {
				if name != "" {
					o.phases = append(o.phases, name)
				}
			}
			return nil
		})
	flags.IntVar(&o.repeat, "repeat", 100, "How often a single change is measured.")
	flags.DurationVar(&o.idle, "idle", 5*time.Minute, "How long a cluster is watched in which nothing happens.")
	flags.StringVar(&o.json, "json", "", "A file to write all measurements to.")
	flags.BoolVar(&o.keep, "keep", false, "Keep the folder with the logs of the control plane.")
	flags.Func("helm", "A further argument of helm install, such as --set=workers=4; may be repeated.", func(text string) error {
		o.helm = append(o.helm, text)
		return nil
	})
	flags.Func("env", "A further environment variable of the manager; may be repeated.", func(text string) error {
		name, value, _ := strings.Cut(text, "=")
		o.environment[name] = value
		return nil
	})
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.scale <= 0 || o.repeat < 1 || o.idle <= 0 || o.release <= 0 {
		return o, errors.New("-scale, -repeat, -idle and -release-bytes must be positive")
	}
	return o, nil
}

func phaseNames() string {
	var names []string
	for _, p := range phases {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

func main() {
	if isBareWebhook() {
		return
	}
	o, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err == nil {
		_, err = measure(ctx, o, os.Stderr, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure runs the benchmark. Progress goes to one writer, the table to the other. What was measured before a failure is
// reported, too.
func measure(ctx context.Context, o options, progress, table io.Writer) (report *Report, err error) {
	ctrllog.SetLogger(logr.Discard())
	shape := scaled(o.scale)
	shape.ReleaseBytes = o.release
	b := &bench{options: o, shape: shape, out: progress, report: newReport(shape, version(ctx, o))}
	defer func() { err = errors.Join(err, b.stop(context.WithoutCancel(ctx))) }()
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	err = b.run(ctx)
	b.report.Markdown(table)
	if o.json != "" {
		err = errors.Join(err, b.report.write(o.json))
	}
	return b.report, err
}

// version of the manager that is measured.
func version(ctx context.Context, o options) string {
	output, err := exec.CommandContext(ctx, o.manager, "--version").Output()
	if err != nil {
		return "of an unknown version"
	}
	return strings.TrimSpace(string(output))
}
