package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

//go:embed all:template
var templates embed.FS

// penstock is the module that a connector needs.
const penstock = "github.com/penstock-dev/penstock"

// Connector is what to write.
type Connector struct {
	// Name of the connector and its package: lower case letters and digits.
	Name string
	// Module is its module path; empty means example.com/penstock- and the name.
	Module string
	// Dir is where it goes; empty means a new folder of the connector's name in the present one. It must not exist, or be empty.
	Dir string
	// Version of the module that the connector requires, as in a go.mod; empty when the present build has none.
	Version string
}

// Written is what was written.
type Written struct {
	Dir   string
	Files []string // relative to Dir, with slashes
	// Checkout is the development checkout that the connector's go.mod refers to, relative to Dir; empty outside of one.
	Checkout string
}

var (
	validName   = regexp.MustCompile(`^[a-z][a-z0-9]{0,39}$`)
	validModule = regexp.MustCompile(`^[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*$`)
	release     = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.?[0-9]+)?$`)
)

// Released answers version when it is one that can be required from elsewhere, and else nothing: development builds have versions too.
func Released(version string) string {
	if release.MatchString(version) {
		return version
	}
	return ""
}

func (c *Connector) complete() error {
	var errs []error
	if !validName.MatchString(c.Name) || token.IsKeyword(c.Name) || c.Name == "main" || c.Name == "internal" {
		errs = append(errs, fmt.Errorf("connector name %q: it becomes the name of a Go package (lower case letters and digits, at most 40, "+
			"beginning with a letter, no word of the language)", c.Name))
	}
	if c.Module == "" {
		c.Module = "example.com/penstock-" + c.Name
	}
	if !validModule.MatchString(c.Module) {
		errs = append(errs, fmt.Errorf("module path %q: use the path of its repository, for example github.com/you/penstock-%s", c.Module, c.Name))
	}
	if c.Dir == "" {
		c.Dir = c.Name
	}
	return errors.Join(errs...)
}

// Write writes a connector. It overwrites nothing.
func Write(c Connector) (Written, error) {
	if err := c.complete(); err != nil {
		return Written{}, err
	}
	switch entries, err := os.ReadDir(c.Dir); {
	case err == nil && len(entries) > 0:
		return Written{}, fmt.Errorf("%s is there already and not empty: choose another name, or --dir", c.Dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Written{}, fmt.Errorf("look at %s: %w", c.Dir, err)
	}
	w := Written{Dir: c.Dir}
	var err error
	if w.Checkout, err = checkout(c.Dir); err != nil {
		return Written{}, err
	}
	files, err := c.files(w.Checkout)
	if err != nil {
		return Written{}, err
	}
	for _, f := range files {
		target := filepath.Join(c.Dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return w, fmt.Errorf("write the connector: %w", err)
		}
		if err := os.WriteFile(target, f.data, 0o644); err != nil {
			return w, fmt.Errorf("write the connector: %w", err)
		}
		w.Files = append(w.Files, f.name)
	}
	return w, nil
}

type file struct {
	name string
	data []byte
}

// files fills in the templates. A name that begins with dot- stands for a hidden file, and one that begins with name for the connector's.
func (c *Connector) files(checkout string) (files []file, err error) {
	values := struct {
		Connector
		Penstock, Checkout string
	}{*c, penstock, filepath.ToSlash(checkout)}
	err = fs.WalkDir(templates, "template", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := templates.ReadFile(name)
		if err != nil {
			return err
		}
		// The delimiters are in none of the languages.
		t, err := template.New(path.Base(name)).Delims("<%", "%>").Parse(string(text))
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, values); err != nil {
			return err
		}
		target := strings.TrimSuffix(strings.TrimPrefix(name, "template/"), ".tmpl")
		target = strings.ReplaceAll(target, "dot-", ".")
		target = strings.ReplaceAll(target, "NAME", c.Name)
		files = append(files, file{target, b.Bytes()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("fill in the templates: %w", err)
	}
	return files, nil
}

// Here is the folder of the development checkout that the working directory is in, empty outside of one.
func Here() string {
	here, err := filepath.Abs("any")
	if err != nil {
		return ""
	}
	root, err := checkout(here)
	if err != nil || root == "" {
		return ""
	}
	return filepath.Join(here, root)
}

// checkout answers the development checkout of Penstock that dir is in, relative to dir, or nothing.
func checkout(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("look for a checkout around %s: %w", dir, err)
	}
	for root := filepath.Dir(dir); ; root = filepath.Dir(root) {
		text, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err == nil && declares(text, penstock) {
			return filepath.Rel(dir, root)
		}
		if root == filepath.Dir(root) {
			return "", nil
		}
	}
}

// declares reports whether a go.mod is that of the module.
func declares(gomod []byte, module string) bool {
	for line := range strings.Lines(string(gomod)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "module" {
			return strings.Trim(fields[1], `"`) == module
		}
	}
	return false
}
