package docs_test

import (
	"strings"
	"testing"
)

const originalPage = `# Title

First ` + "`a.b`" + `, see [options](#options) and
[other](other.md#end).

` + "```yaml job.yaml" + `
job: x # a comment
` + "```" + `

## Options

<!-- generated: things -->

| option | type | default | meaning |
|---|---|---|---|
| ` + "`one`" + ` | a \| b | ` + "`1`" + ` | The first. |
| ` + "`two`" + ` | text | | The second. |

<!-- generated: end -->

1. do
   this
2. do that

## End

- last [elsewhere](https://example.org/)
`

const mirrorPage = `# 标题

第一 ` + "`a.b`" + `，见[选项](#选项)和[另一页](other.md#结尾)。

` + "```yaml job.yaml" + `
job: x # a comment
` + "```" + `

## 选项

<!-- generated: things -->

| 选项 | 类型 | 默认值 | 含义 |
|---|---|---|---|
| ` + "`one`" + ` | a \| b | ` + "`1`" + ` | 第一个。 |
| ` + "`two`" + ` | text | | 第二个。 |

<!-- generated: end -->

1. 做这个
2. 做那个

## 结束

* 最后[别处](https://example.org/)
`

// TestMirrorIsNoticed changes one thing at a time in a page or its mirror, and wants to hear of that alone, with the place and the remedy.
func TestMirrorIsNoticed(t *testing.T) {
	for name, test := range map[string]struct{ page, old, new, want string }{
		"nothing":               {"", "", "", ""},
		"a page is added":       {"en/new.md", "", "# New\n", "en/new.md: has no mirror: translate it as zh/new.md"},
		"a page is left over":   {"zh/old.md", "", "# 旧\n", "zh/old.md: mirrors nothing: delete it, or write en/old.md"},
		"a heading is added":    {"en/page.md", "## End", "## More\n\n## End", "en/page.md:25, zh/page.md:23: 4 headings and 3 in the mirror"},
		"a heading is missing":  {"zh/page.md", "## 结束\n\n* 最后[别处](https://example.org/)\n", "", `en/page.md:25, zh/page.md:20: 3 headings and 2 in the mirror; they, or what stands below them, are alike up to "## End" and the end`},
		"another page has more": {"en/other.md", "## End", "## New\n\n## End", "en/other.md:5, zh/other.md:3: 3 headings and 2 in the mirror"},
		"a heading is deeper":   {"zh/page.md", "## 结束", "### 结束", `en/page.md:25, zh/page.md:23: 3 headings and 3 in the mirror`},
		"code changes":          {"en/page.md", "job: x", "job: y", `en/page.md:7, zh/page.md:6: the code differs from "job: y # a comment" on`},
		"a comment of code":     {"zh/page.md", "# a comment", "# 注释", "en/page.md:7, zh/page.md:6: the code differs"},
		"code becomes longer":   {"zh/page.md", "comment\n", "comment\nmore: y\n", "en/page.md:8, zh/page.md:7: the code of the mirror is longer"},
		"the name of a block":   {"en/page.md", "yaml job", "yaml task", `en/page.md:6, zh/page.md:5: the block begins with "` + "```yaml task.yaml" + `"`},
		"a block is no code":    {"zh/page.md", "```yaml job.yaml\njob: x # a comment\n```", "job: x", "the code block"},
		"a paragraph is added":  {"en/page.md", "## End\n", "## End\n\nNew.\n", "en/page.md:27, zh/page.md:25: a paragraph stands where the mirror has a list"},
		"one is taken out":      {"zh/page.md", "* 最后[别处](https://example.org/)", "", "en/page.md:27, zh/page.md:23: a list has no counterpart"},
		"one is too much":       {"zh/page.md", "org/)\n", "org/)\n\n多余。\n", "en/page.md:27, zh/page.md:27: the original has nothing for a paragraph"},
		"a comment":             {"zh/page.md", "generated: things", "generated: 东西", `en/page.md:12, zh/page.md:11: the comment is`},
		"an option is added":    {"en/page.md", "| `two`", "| `new` | text | | |\n| `two`", "en/page.md:17, zh/page.md:16: the row of \"`new`\" stands where the mirror has that of \"`two`\""},
		"one at the end":        {"en/page.md", "second. |\n", "second. |\n| `new` | text | | |\n", "en/page.md:18, zh/page.md:16: the table of the mirror ends before the row of \"`new`\""},
		"an option is left":     {"zh/page.md", "第二个。 |\n", "第二个。 |\n| `old` | text | | |\n", "en/page.md:17, zh/page.md:17: the original has no row for \"`old`\""},
		"an option is renamed":  {"en/page.md", "`two`", "`three`", "en/page.md:17, zh/page.md:16: the row of \"`three`\""},
		"a type changes":        {"en/page.md", "a \\| b", "a \\| c", `en/page.md:16, zh/page.md:15: column 2 of the generated row`},
		"a default changes":     {"en/page.md", "`1`", "`2`", "en/page.md:16, zh/page.md:15: column 3 of the generated row of \"`one`\" is \"`2`\", in the mirror \"`1`\""},
		"a column is lost":      {"zh/page.md", "| text | |", "| text |", "en/page.md:17, zh/page.md:16: the row has 4 columns, in the mirror 3"},
		"an item is added":      {"en/page.md", "2. do that", "2. do that\n3. and that", `en/page.md:24, zh/page.md:21: the list has 3 items, in the mirror 2: translate "and that"`},
		"an item is left":       {"zh/page.md", "2. 做那个", "2. 做那个\n3. 还有", `en/page.md:23, zh/page.md:22: the list has 2 items, in the mirror 3: take out "还有"`},
		"an item is nested":     {"zh/page.md", "2. 做那个", "  - 做那个", `en/page.md:23, zh/page.md:21: the item begins with "1.", in the mirror with "  -"`},
		"code of a text":        {"en/page.md", "`a.b`", "`a.c`", "en/page.md:3, zh/page.md:3: the mirror lacks the code `a.c` and has the code `a.b`, which the original has not: translate"},
		"an address":            {"en/page.md", "example.org", "example.com", "en/page.md:27, zh/page.md:25: the mirror lacks the link https://example.com/"},
		"an English anchor":     {"zh/page.md", "#选项", "#options", "lacks the link #选项 and has the link #options, which"},
		"a heading is reworded": {"zh/other.md", "结尾", "尾声", "lacks the link other.md#尾声 and has the link other.md#结尾, which"},
		"a link to the English": {"zh/page.md", "other.md", "../en/other.md", "lacks the link other.md#结尾 and has the link ../en/other.md#结尾, which"},
		"the index":             {"README.md", "en/page.md", "en/other.md", "README.md:5, zh/README.md:5: the mirror lacks the link other.md"},
		"the other language":    {"zh/README.md", "(../README.md)", "(../en/page.md)", "lacks the link ../README.md and has the link ../en/page.md, which"},
	} {
		t.Run(name, func(t *testing.T) {
			pages := map[string]string{
				"README.md":    "# Index\n\n[中文](zh/README.md)\n\n[Page](en/page.md), [design](design.md)\n",
				"zh/README.md": "# 索引\n\n[English](../README.md)\n\n[页面](page.md)，[设计](../design.md)\n",
				"en/page.md":   originalPage, "zh/page.md": mirrorPage,
				"en/other.md": "# Other\n\n## End\n", "zh/other.md": "# 另一页\n\n## 结尾\n",
			}
			if old := pages[test.page]; strings.Count(old, test.old) != 1 && test.old != "" {
				t.Fatalf("%q is not once in\n%s", test.old, old)
			}
			if test.page != "" {
				pages[test.page] = strings.Replace(pages[test.page], test.old, test.new, 1)
			}
			found := differences(pages)
			switch {
			case test.want == "" && len(found) > 0:
				t.Errorf("%q", found)
			case test.want != "" && (len(found) != 1 || !strings.Contains(found[0], test.want)):
				t.Errorf("%q, want one with %q", found, test.want)
			}
		})
	}
}
