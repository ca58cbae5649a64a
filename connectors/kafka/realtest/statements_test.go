package realtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// statements is where it is written which test shows what.
const statements = "../../../docs/reliability.md"

// shownBy is the end of a row of that table: a package and one of its tests.
var shownBy = regexp.MustCompile("(?m)\\| (kafka|realtest|kafkaserver) `(Test[A-Za-z0-9]+)` \\|$")

func TestEveryStatementAboutAReaderIsShownByATestThatExists(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(statements)
	must(t, err)
	declared := map[string]map[string]bool{
		"kafka": testsIn(t, ".."), "realtest": testsIn(t, "."), "kafkaserver": testsIn(t, "../../../conformance/kafkaserver"),
	}
	rows := shownBy.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 40 {
		t.Errorf("%d statements are left in %s", len(rows), statements)
	}
	for _, row := range rows {
		if !declared[row[1]][row[2]] {
			t.Errorf("%s has no %s", row[1], row[2])
		}
	}
}

// testsIn are the tests of the package in a folder.
func testsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	must(t, err)
	tests := make(map[string]bool)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok {
				tests[f.Name.Name] = true
			}
		}
	}
	return tests
}
