// Reads a job from standard input and writes what became of it to standard output, both in JSON:
// {"chart": folder, "cases": [{"name", "values"}]} is linted and rendered by Helm's own code, and each object is read
// strictly into Kubernetes' own types; {"queries": [text]} are parsed by Prometheus' own parser.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	release   = "story"
	namespace = "models"
)

type job struct {
	Chart   string     `json:"chart"`
	Cases   []testCase `json:"cases"`
	Queries []string   `json:"queries"`
}

type testCase struct {
	Name   string         `json:"name"`
	Values map[string]any `json:"values"`
}

type result struct {
	Cases   []rendered `json:"cases"`
	Queries []query    `json:"queries"`
}

type rendered struct {
	Name string `json:"name"`
	// Why Helm refuses the values or cannot render the chart.
	Error   string   `json:"error"`
	Lint    []string `json:"lint"`
	Notes   string   `json:"notes"`
	Objects []object `json:"objects"`
}

type object struct {
	Template string         `json:"template"`
	Content  map[string]any `json:"content"`
	// Whether Kubernetes' own types have this kind; what strict reading found.
	Known   bool   `json:"known"`
	Problem string `json:"problem"`
}

type query struct {
	Error string `json:"error"`
	// Names of the time series.
	Names []string `json:"names"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var wanted job
	if err := json.NewDecoder(in).Decode(&wanted); err != nil {
		return err
	}
	var done result
	if wanted.Chart != "" {
		loaded, err := loader.Load(wanted.Chart)
		if err != nil {
			return err
		}
		for _, each := range wanted.Cases {
			done.Cases = append(done.Cases, render(wanted.Chart, loaded, each))
		}
	}
	for _, text := range wanted.Queries {
		done.Queries = append(done.Queries, parse(text))
	}
	return json.NewEncoder(out).Encode(done)
}

func render(folder string, loaded *chart.Chart, each testCase) rendered {
	done := rendered{Name: each.Name, Lint: []string{}, Objects: []object{}}
	options := common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValues(loaded, each.Values, options, common.DefaultCapabilities)
	if err == nil {
		var texts map[string]string
		texts, err = engine.Render(loaded, values)
		done.take(texts)
	}
	if err != nil {
		done.Error = err.Error()
		return done
	}
	for _, message := range lint.RunAll(folder, each.Values, namespace).Messages {
		if message.Severity >= support.WarningSev {
			done.Lint = append(done.Lint, message.Error())
		}
	}
	return done
}

func (done *rendered) take(texts map[string]string) {
	paths := make([]string, 0, len(texts))
	for path := range texts {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		if strings.HasSuffix(path, "NOTES.txt") {
			done.Notes = texts[path]
			continue
		}
		done.Objects = append(done.Objects, objectsOf(path, texts[path])...)
	}
}

func objectsOf(path, text string) []object {
	found := []object{}
	reader := kyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			return append(found, object{Template: path, Problem: err.Error()})
		}
		if made := objectOf(path, document); made != nil {
			found = append(found, *made)
		}
	}
}

// Nil for a document without content.
func objectOf(path string, document []byte) *object {
	made := object{Template: path}
	if err := yaml.UnmarshalStrict(document, &made.Content); err != nil {
		made.Problem = err.Error()
		return &made
	}
	if len(bytes.TrimSpace(document)) == 0 || made.Content == nil {
		return nil
	}
	strict := kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		kjson.SerializerOptions{Yaml: true, Strict: true})
	_, _, err := strict.Decode(document, nil, nil)
	made.Known = !runtime.IsNotRegisteredError(err)
	if made.Known && err != nil {
		made.Problem = err.Error()
	}
	return &made
}

func parse(text string) query {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return query{Error: err.Error()}
	}
	names := map[string]bool{}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			names[selector.Name] = true
		}
		return nil
	})
	sorted := []string{}
	for name := range names {
		sorted = append(sorted, name)
	}
	sort.Strings(sorted)
	return query{Names: sorted}
}
