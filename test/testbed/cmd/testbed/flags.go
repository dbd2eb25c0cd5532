package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
)

// settings are the flags of up, which it hands to supervise.
type settings struct {
	dir         string
	cache       string
	nodes       int
	certManager bool
	images      imageFlags
}

func parseSettings(name string, arguments []string) (*settings, error) {
	s := &settings{images: imageFlags{}}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	addDir(flags, &s.dir)
	addCache(flags, &s.cache)
	flags.IntVar(&s.nodes, "nodes", 3, "number of Nodes")
	flags.BoolVar(&s.certManager, "cert-manager", false, "also run cert-manager")
	flags.Var(s.images, "image", "`repository[:tag]=path` of an image whose Pods run as processes; may be repeated")
	if err := parse(flags, arguments); err != nil {
		return nil, err
	}
	var err error
	s.dir, err = filepath.Abs(s.dir)
	return s, err
}

// arguments are the flags that give the same settings again.
func (s *settings) arguments() []string {
	all := []string{
		"--dir=" + s.dir,
		"--cache=" + s.cache,
		fmt.Sprintf("--nodes=%d", s.nodes),
		fmt.Sprintf("--cert-manager=%t", s.certManager),
	}
	for repository, path := range s.images {
		all = append(all, fmt.Sprintf("--image=%s=%s", repository, path))
	}
	return all
}

// imageFlags is the value of a repeated repository=path flag.
type imageFlags map[string]string

func (i imageFlags) String() string { return "" }

func (i imageFlags) Set(value string) error {
	repository, path, found := strings.Cut(value, "=")
	if !found {
		return fmt.Errorf("want repository=path")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	i[repository] = absolute
	return nil
}

func addDir(flags *flag.FlagSet, dir *string) {
	flags.StringVar(dir, "dir", ".testbed", "folder of the testbed")
}

func addCache(flags *flag.FlagSet, cache *string) {
	flags.StringVar(cache, "cache", "", "folder of the built components (default: .cache/testbed in the repository)")
}

func parse(flags *flag.FlagSet, arguments []string) error {
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes no arguments: %q", flags.Name(), flags.Args())
	}
	return nil
}
