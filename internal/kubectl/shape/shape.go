// Package shape defaults and checks objects by KICK's CRDs as the API server does, without one.
package shape

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/kick-dev/kick/config"
)

// Schema of a kind.
type Schema struct {
	validator  validation.SchemaValidator
	structural *structuralschema.Structural
	rules      *cel.Validator
}

// CRDs returns the CustomResourceDefinitions that belong to this version.
func CRDs() ([]apiextensionsv1.CustomResourceDefinition, error) {
	var crds []apiextensionsv1.CustomResourceDefinition
	files, err := fs.Glob(config.CRDs, "crd/bases/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := config.CRDs.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// Of returns the schema of a kind of KICK's.
func Of(kind string) (*Schema, error) {
	crds, err := CRDs()
	if err != nil {
		return nil, err
	}
	for i := range crds {
		if strings.EqualFold(crds[i].Spec.Names.Kind, kind) {
			return parse(&crds[i])
		}
	}
	return nil, fmt.Errorf("%s is no kind of KICK", kind)
}

func parse(crd *apiextensionsv1.CustomResourceDefinition) (*Schema, error) {
	var internal apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil)
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", crd.Name, err)
	}
	s := &Schema{}
	if s.structural, err = structuralschema.NewStructural(&internal); err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", crd.Name, err)
	}
	if s.validator, _, err = validation.NewSchemaValidator(&internal); err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", crd.Name, err)
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s, nil
}

// Check sets the defaults of an object and returns every fault of its shape.
func (s *Schema) Check(ctx context.Context, object map[string]any) field.ErrorList {
	defaulting.Default(object, s.structural)
	faults := validation.ValidateCustomResource(nil, object, s.validator)
	if len(faults) > 0 || s.rules == nil {
		return faults // Rules are asked about what has the right shape.
	}
	broken, _ := s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return broken
}

// Unknown returns the fields of an object that its schema does not know and that the API server would drop.
func (s *Schema) Unknown(object map[string]any) []string {
	return unknown(object, s.structural, "")
}

func unknown(value any, schema *structuralschema.Structural, path string) []string {
	var names []string
	switch typed := value.(type) {
	case map[string]any:
		for name, child := range typed {
			at := strings.TrimPrefix(path+"."+name, ".")
			if path == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
				continue
			}
			if known, ok := schema.Properties[name]; ok {
				names = append(names, unknown(child, &known, at)...)
			} else if schema.AdditionalProperties == nil && !schema.XPreserveUnknownFields {
				names = append(names, at)
			}
		}
	case []any:
		for i, child := range typed {
			if schema.Items != nil {
				names = append(names, unknown(child, schema.Items, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
	}
	return names
}
