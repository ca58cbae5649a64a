package kinesis

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// statements is where it is written which test shows what.
const statements = "../../docs/reliability.md"

var (
	// shownBy is a row of that table: a number, the statement, where the test runs, its package and name, and the script when it runs several.
	shownBy = regexp.MustCompile("(?m)^\\| (E[0-9]+) \\| .+ \\| (double|both|core) \\| (kinesis|lineage) `(Test[A-Za-z0-9]+)`(?: of `([a-z_]+)`)? \\|$")
	// numbered is a number in the name of a test, like TestE2E3TheEnd, or in what is written about it.
	numbered = regexp.MustCompile(`E[0-9]+`)
	rowOfOne = regexp.MustCompile(`(?m)^\| E[0-9]+ \|`)
)

// Numbers that were given to nothing, or to statements about other systems.
var without = []string{"E5", "E19", "E33", "E39", "E41", "E47", "E51", "E55"}

func TestEveryStatementAboutAReaderIsShownByATestThatNamesIt(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(statements)
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]map[string]string{"kinesis": testsIn(t, "."), "lineage": testsIn(t, "lineage")}
	shown := make(map[string]bool)
	rows := shownBy.FindAllStringSubmatch(string(text), -1)
	if n := len(rowOfOne.FindAll(text, -1)); n != len(rows) {
		t.Errorf("%d of %d rows can be read", len(rows), n)
	}
	for _, row := range rows {
		number, on, source := row[1], row[2], sources[row[3]][row[4]]
		shown[number] = true
		if row[5] != "" {
			script, err := os.ReadFile(filepath.Join("lineage/testdata/scripts", row[5]))
			if err != nil {
				t.Error(err)
			}
			source += string(script)
		}
		if !slices.Contains(numbered.FindAllString(source, -1), number) {
			t.Errorf("%s: there is no %s that names it", number, row[4])
		}
		if strings.Contains(source, "onBoth(") != (on == "both") {
			t.Errorf("%s: %s does not run on %s", number, row[4], on)
		}
	}
	for i := range 58 {
		if number := "E" + strconv.Itoa(i+1); shown[number] == slices.Contains(without, number) {
			t.Errorf("%s: shown %t", number, shown[number])
		}
	}
}

// testsIn are the tests of the package in a folder, with their source and what is written above it.
func testsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := make(map[string]string)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from := f.Pos()
			if f.Doc != nil {
				from = f.Doc.Pos()
			}
			tests[f.Name.Name] = string(text[files.Position(from).Offset:files.Position(f.End()).Offset])
		}
	}
	return tests
}
